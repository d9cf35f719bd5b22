"""`kubectl scheduler rollout undo`: the inputs of an older revision, through the front door."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.cli.console.errors import CommandError
from kube_scheduler_operator.cli.rollout.later_edits import attribute
from kube_scheduler_operator.cli.rollout.undo import plan_undo
from kube_scheduler_operator.config.effective.control_plane.recorded_inputs import ObjectEdit
from kube_scheduler_operator.kube.resource import KUBE_SCHEDULERS, SCHEDULERS
from kube_scheduler_operator.operator.controlplane.desired import desired_content
from kube_scheduler_operator.operator.controlplane.revision.content import RevisionContent
from kube_scheduler_operator.operator.controlplane.revision.history import Revision, read

from ....builders import extender, snapshot
from ..conftest import IMAGE, Cluster, content, objects

FAILED, REFUSED = names.OUTCOME_FAILED, names.OUTCOME_REFUSED
REMOVED_FLAG = {"arguments": {"bind-address": None, "vmodule": "a=5"}, "parallelism": 8}


def history(*made: RevisionContent | tuple[RevisionContent, str]) -> tuple[Revision, ...]:
    found: dict[str, Any] = {}
    for number, each in enumerate(made, start=1):
        one, outcome = each if isinstance(each, tuple) else (each, names.OUTCOME_INSTALLED)
        found |= objects(number, one, outcome, message="why" if outcome == FAILED else "")
    return read(found, KUBEADM.parts)


def plan(
    revisions: tuple[Revision, ...],
    profile: str | None = None,
    to: int | None = None,
    **spec: Any,
) -> Any:
    metadata = {"name": "cluster", "resourceVersion": "7"}
    scheduler = {"metadata": metadata, "spec": {"profile": profile} if profile else {}}
    kubescheduler = {"metadata": metadata, "spec": {"managementState": "Managed", **spec}}
    found = snapshot(scheduler=scheduler, kubescheduler=kubescheduler)
    return plan_undo(found, revisions, str(to) if to is not None else None)


def test_every_input_comes_back_and_nothing_else_is_touched() -> None:
    first = content("NoScoring", logLevel="Trace", unsupportedConfigOverrides=REMOVED_FLAG)
    found = plan(
        history(first, content(logLevel="Debug", forceRedeploymentReason="now")),
        logLevel="Debug",
        forceRedeploymentReason="now",
        failedRevisionLimit=3,
    )
    assert found.target == "revision 1"
    assert found.objects[SCHEDULERS]["spec"] == {"profile": "NoScoring"}
    assert found.objects[KUBE_SCHEDULERS]["spec"] == {
        "managementState": "Managed",
        "failedRevisionLimit": 3,
        "logLevel": "Trace",
        "unsupportedConfigOverrides": REMOVED_FLAG,
    }
    assert found.objects[KUBE_SCHEDULERS]["metadata"]["resourceVersion"] == "7"
    assert found.left == ()
    assert {"-  logLevel: Debug", "+  logLevel: Trace", "-  forceRedeploymentReason: now"} <= set(
        found.patch
    )


def test_gates_and_tls_settings_come_back_as_well() -> None:
    old = content(
        featureGates={"SchedulerAsyncPreemption": False}, tlsSecurityProfile={"type": "Modern"}
    )
    found = plan(history(old, content()))
    assert found.objects[KUBE_SCHEDULERS]["spec"]["featureGates"] == {
        "SchedulerAsyncPreemption": False
    }
    assert found.objects[KUBE_SCHEDULERS]["spec"]["tlsSecurityProfile"] == {"type": "Modern"}
    assert found.left == ()


def test_renewed_credentials_are_not_a_difference() -> None:
    def renewed(made: RevisionContent, ca: str) -> RevisionContent:
        return RevisionContent({**made.parts, names.CA_BUNDLE: {"ca-bundle.crt": ca}}, made.inputs)

    found: dict[str, Any] = {}
    for number, ca in enumerate(("old", "old", "new"), start=1):
        profile = "NoScoring" if number > 1 else "LowNodeUtilization"
        found |= objects(number, renewed(content(profile), ca))
    revisions = read(found, (*KUBEADM.parts, names.CA_BUNDLE))
    undo = plan(revisions, "NoScoring")
    assert (undo.target, undo.left) == ("revision 1", ())


def test_an_object_that_is_right_is_not_written() -> None:
    found = plan(
        history(content("NoScoring"), content("HighNodeUtilization")), "HighNodeUtilization"
    )
    assert found.objects[SCHEDULERS]["spec"]["profile"] == "NoScoring"
    assert KUBE_SCHEDULERS not in found.objects


@pytest.mark.parametrize(
    ("revisions", "profile", "chosen"),
    [
        # All is well: the one before.
        ((content(), content("NoScoring")), "NoScoring", 1),
        # The newest was refused: what runs.
        ((content(), (content("NoScoring"), REFUSED)), "NoScoring", 1),
        # It failed, and a higher one has the good content: what runs.
        ((content(), (content("NoScoring"), FAILED), content()), "NoScoring", 3),
        # The inputs are not even accepted: what runs.
        ((content(), content("NoScoring")), "Nope", 2),
        # The same content twice is one step.
        ((content(), content("NoScoring"), content("NoScoring")), "NoScoring", 1),
    ],
    ids=["well", "refused", "failed", "not-accepted", "twice"],
)
def test_default_revision_of_undo(revisions: tuple[Any, ...], profile: str, chosen: int) -> None:
    assert plan(history(*revisions), profile).target == f"revision {chosen}"


def test_inputs_of_another_revision_with_the_same_content_serve_as_well() -> None:
    unrecorded = RevisionContent(content().parts)
    found = plan(history(unrecorded, content(), content("NoScoring")), "NoScoring", to=1)
    assert found.objects[SCHEDULERS]["spec"] == {}


def test_remaining_differences_are_reported() -> None:
    newer = IMAGE.replace("35.4", "35.5")
    revisions = history(content(image=IMAGE), content("NoScoring", image=newer))
    assert plan(revisions, "NoScoring").left == (f"image: {IMAGE} → {newer}",)


def test_a_deleted_extender_is_named_although_its_agents_run_no_more() -> None:
    obj = extender("safe", agent={"policies": [{"name": "safe-overload"}]})
    plain = snapshot(scheduler={"spec": {}}, kubescheduler={"spec": {}})
    with_image = replace(plain, settings=replace(plain.settings, operand_image=IMAGE))
    before, _ = desired_content(
        replace(with_image, scheduler_extenders={"safe": obj}), planned=True
    )
    assert before is not None
    (edit,) = plan(history(before, content()), to=1).remaining.edits
    assert edit.what == "SchedulerExtender safe is no longer in use"
    (effect,) = edit.effects
    assert effect.startswith("extender http")
    assert effect.endswith(" removed")
    assert "kubectl create -f -" in edit.command


def test_differences_that_several_edits_cause_are_not_of_one() -> None:
    edits = [ObjectEdit("SchedulerProfile", name, None, {}) for name in ("a", "b", "c")]
    found = attribute(["x", "y", "z"], edits, [["y", "z"], ["x", "y", "z"], None, ["z"]], {})
    assert [edit.effects for edit in found.edits] == [("x",), (), None]
    assert (found.together, found.others) == (("y",), ("z",))


def test_current_settings_need_no_write() -> None:
    found = plan(history(content()), to=1)
    assert (found.patch, found.objects) == ((), {})


@pytest.mark.parametrize(
    ("revisions", "to", "output"),
    [
        ((content(),), None, "no older healthy revision"),
        ((content(), content("NoScoring")), 9, "revision 9 does not exist"),
        (
            (content(), (content("NoScoring"), FAILED)),
            2,
            "revision 2 cannot be restored: revision 2 failed: why",
        ),
        ((RevisionContent(content().parts), content("NoScoring")), 1, "no recorded settings"),
    ],
    ids=["none", "unknown", "bad", "unrecorded"],
)
def test_what_cannot_be_undone_is_explained(revisions: Any, to: int | None, output: str) -> None:
    current = "LowNodeUtilization" if to is None else "NoScoring"
    with pytest.raises(CommandError, match=output):
        plan(history(*revisions), current, to=to)


def test_inputs_that_are_not_accepted_any_more_are_refused_with_the_field() -> None:
    outdated = replace(content(), inputs='{"scheduler":{"profile":"Old"},"kubescheduler":{}}')
    with pytest.raises(CommandError, match=r'spec\.profile: profile "Old" is not known'):
        plan(history(outdated, content("NoScoring")), "NoScoring")


def serve(cluster: Cluster) -> None:
    cluster.revision(1, content("LowNodeUtilization", logLevel="Normal"))
    cluster.revision(2, content("NoScoring", logLevel="Debug"))
    cluster.kubescheduler({"a": 2}, logLevel="Debug")
    cluster.put(SCHEDULERS, {"metadata": {"name": "cluster"}, "spec": {"profile": "NoScoring"}})


def specs(cluster: Cluster) -> tuple[Any, Any]:
    found = (cluster.api.objects[kind][None, "cluster"] for kind in (SCHEDULERS, KUBE_SCHEDULERS))
    return tuple(obj["spec"] for obj in found)


async def test_it_writes_what_it_showed(cluster: Cluster) -> None:
    serve(cluster)
    done = await cluster.run("rollout", "undo", "--yes")
    assert (done.code, done.err) == (0, "")
    assert "+  profile: LowNodeUtilization" in done.out
    assert "kubectl scheduler rollout watch" in done.out
    assert specs(cluster) == ({"profile": "LowNodeUtilization"}, {"logLevel": "Normal"})
    puts = cluster.api.requests("PUT")
    assert all(put.body["metadata"]["resourceVersion"] for put in puts)
    assert [put.query["fieldManager"] for put in puts] == ["kubectl-scheduler"] * 2


@pytest.mark.parametrize("answer", ["", "n", "no"])
async def test_undo_asks_for_confirmation(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    serve(cluster)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda _: answer)
    done = await cluster.run("rollout", "undo")
    assert done.code == 1
    assert cluster.api.requests("PUT") == []


async def test_yes_is_yes(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(cluster)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda _: "y")
    assert (await cluster.run("rollout", "undo")).code == 0
    assert len(cluster.api.requests("PUT")) == 2


async def test_undo_without_a_terminal_writes_nothing(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(cluster)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    done = await cluster.run("rollout", "undo")
    assert done.code == 1
    assert "--yes" in done.err
    assert cluster.api.requests("PUT") == []


async def test_a_dry_run_shows_and_writes_nothing(cluster: Cluster) -> None:
    serve(cluster)
    done = await cluster.run("rollout", "undo", "--dry-run")
    assert done.code == 0
    assert "-  logLevel: Debug" in done.out
    assert cluster.api.requests("PUT") == []


async def test_undo_does_not_overwrite_a_concurrent_edit(cluster: Cluster) -> None:
    serve(cluster)
    cluster.api.fail(409, method="PUT", path="/schedulers", reason="Conflict")
    done = await cluster.run("rollout", "undo", "--yes")
    assert done.code == 1
    assert "run the command again" in done.err
    assert specs(cluster) == ({"profile": "NoScoring"}, {"logLevel": "Debug"})


async def test_the_right_to_write_is_named(cluster: Cluster) -> None:
    serve(cluster)
    output = 'schedulers "cluster" is forbidden: User "u" cannot update resource "schedulers"'
    cluster.api.fail(403, method="PUT", path="/schedulers", reason="Forbidden", message=output)
    done = await cluster.run("rollout", "undo", "--yes")
    assert done.code == 1
    assert 'resources: ["schedulers"], verbs: ["update"]' in done.err
