"""SchedulerProfiles in the commands: compose, status, history, must-gather, render."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.__main__ import main
from kube_scheduler_operator.base import names
from kube_scheduler_operator.config.effective.control_plane.recorded_inputs import record
from kube_scheduler_operator.kube.resource import SCHEDULER_PROFILES, SCHEDULERS
from kube_scheduler_operator.operator.controlplane.revision.content import RevisionContent

from ...builders import profile
from .conftest import IMAGE, Cluster, OnFile, content

GOOD = {"score": {"enabled": [{"name": "ImageLocality", "weight": 9}]}}
BAD = {"score": {"enabled": [{"name": "ImageLocalty"}]}}


def judged(name: str, reason: str, **status: Any) -> dict[str, Any]:
    state = "True" if reason == "Accepted" else "False"
    conditions = [{"type": names.ACCEPTED, "status": state, "reason": reason, "message": "why"}]
    full = {"observedGeneration": 4, "conditions": conditions, **status}
    return {**profile(name, generation=4), "status": full}


# --- compose --------------------------------------------------------------------------------------


def test_compose_takes_profiles_and_shows_what_runs(composed: OnFile) -> None:
    code, shown, _ = composed(profile("b", plugins=GOOD), profile("a"))
    assert code == 0
    assert [p["schedulerName"] for p in shown["config"]["profiles"]] == [
        "default-scheduler", "a", "b",
    ]  # fmt: skip
    assert shown["conditions"] == []
    assert [(p["name"], p["state"]) for p in shown["schedulerProfiles"]] == [
        ("a", "Accepted"), ("b", "Accepted"),
    ]  # fmt: skip
    assert shown["schedulerProfiles"][1]["plugins"]["score"].startswith("ImageLocality=9 ")


def test_compose_without_profiles_omits_them(composed: OnFile) -> None:
    code, shown, _ = composed({"apiVersion": "config.openshift.io/v1", "kind": "Scheduler"})
    assert code == 0
    assert "schedulerProfiles" not in shown


def test_compose_fails_for_a_profile_that_is_not_accepted(composed: OnFile) -> None:
    code, shown, _ = composed(
        profile("held", accepted={"plugins": GOOD}, plugins=BAD), profile("new", plugins=BAD)
    )
    assert code == 1
    assert [p["state"] for p in shown["schedulerProfiles"]] == ["LastAcceptedInUse", "NotInUse"]
    (condition,) = shown["conditions"]
    assert condition["type"] == names.SCHEDULER_PROFILES_DEGRADED
    assert "SchedulerProfile/new spec.plugins.score.enabled[0].name: " in condition["message"]


@pytest.mark.parametrize(
    ("documents", "output"),
    [
        (
            [profile("a"), profile("a")],
            'a SchedulerProfile "a" is already defined; rename one of them',
        ),
        ([{**profile("a"), "metadata": {}}], "without metadata.name; add it"),
        ([{**profile("a"), "metadata": None}], "without metadata.name; add it"),
        ([{**profile("a"), "spec": None}], "without spec; use spec: {}"),
        ([{**profile("a"), "apiVersion": "v1"}], "use kube-scheduler-operator.dev/v1alpha1"),
    ],
)
def test_compose_refuses(composed: OnFile, documents: list[Any], output: str) -> None:
    code, _, err = composed(*documents)
    assert code == 2
    assert output in err


# --- status ---------------------------------------------------------------------------------------


async def test_status_shows_those_that_need_a_look(cluster: Cluster) -> None:
    cluster.kubescheduler({"a": 1})
    cluster.api.served.add(SCHEDULER_PROFILES)
    for obj in (
        judged("fine", "Accepted", schedulerName="fine"),
        judged("held", "LastAcceptedInUse", schedulerName="team", acceptedGeneration=3),
        judged("out", "NotInUse"),
        {**judged("edited", "Accepted"), "metadata": {"name": "edited", "generation": 5}},
    ):
        cluster.put(SCHEDULER_PROFILES, obj)
    done = await cluster.run("status")
    lines = [line.split() for line in done.out.splitlines()]
    at = lines.index(["SchedulerProfiles", "1", "of", "4", "accepted"])
    assert lines[at + 1 : at + 5] == [
        ["PROFILE", "SCHEDULERNAME", "SCHEDULER", "STATE", "RUNS"],
        ["edited", "edited", "-", "not", "observed", "-"],
        ["held", "team", "-", "LastAcceptedInUse", "generation", "3", "of", "4"],
        ["out", "out", "-", "NotInUse", "-"],
    ]
    shown = json.loads((await cluster.run("status", "-o", "json")).out)
    assert [p["state"] for p in shown["schedulerProfiles"]] == [
        "",
        "Accepted",
        "LastAcceptedInUse",
        "NotInUse",
    ]


async def test_status_names_the_field_because_of_which_nothing_is_observed(
    cluster: Cluster,
) -> None:
    cluster.operator_runs()
    cluster.kubescheduler({"a": 1}, managementState="Unmanaged")
    cluster.api.served.add(SCHEDULER_PROFILES)
    cluster.put(SCHEDULER_PROFILES, profile("new"))
    sentence = (
        "the operator does not observe SchedulerProfile new, because spec.managementState of "
        "KubeScheduler cluster is Unmanaged"
    )
    assert (await cluster.run("status")).out.count(sentence) == 1
    shown = json.loads((await cluster.run("status", "-o", "json")).out)
    assert {"object": "objects", "message": sentence} in shown["warnings"]


async def test_status_explains_how_to_correct_a_profile(cluster: Cluster) -> None:
    condition = {"type": names.SCHEDULER_PROFILES_DEGRADED, "status": "True", "reason": "X",
                 "message": "SchedulerProfile/a spec.base: why"}  # fmt: skip
    cluster.kubescheduler({"a": 1}, status={"conditions": [condition], "nodeStatuses": []})
    done = await cluster.run("status")
    assert "PROBLEM  SchedulerProfilesDegraded (X)" in done.out
    assert "kubectl edit schedulerprofile NAME" in done.out


async def test_status_omits_profiles_if_the_kind_is_not_installed(cluster: Cluster) -> None:
    cluster.kubescheduler({"a": 1})
    assert "SchedulerProfiles" not in (await cluster.run("status")).out


# --- history --------------------------------------------------------------------------------------


async def test_status_without_permission_to_list_profiles_shows_the_rest(cluster: Cluster) -> None:
    cluster.api.served.add(SCHEDULER_PROFILES)
    cluster.put(SCHEDULER_PROFILES, profile("team"))
    cluster.kubescheduler({"a": 1})
    output = 'schedulerprofiles is forbidden: User "u" cannot list resource "schedulerprofiles"'
    cluster.api.fail(403, path="/schedulerprofiles", reason="Forbidden", message=output, times=None)
    done = await cluster.run("status")
    assert (
        "note: SchedulerProfiles are not shown: no permission to list schedulerprofiles" in done.err
    )
    assert "team" not in done.out
    assert done.out


async def test_status_without_permission_to_list_load_policies_names_them(
    cluster: Cluster,
) -> None:
    cluster.kubescheduler({"a": 1})
    output = 'loadpolicies is forbidden: User "u" cannot list resource "loadpolicies"'
    cluster.api.fail(403, path="/loadpolicies", reason="Forbidden", message=output, times=None)
    done = await cluster.run("status")
    assert "note: LoadPolicies are not shown: no permission to list loadpolicies" in done.err
    assert done.out


async def test_history_names_the_edited_profile(cluster: Cluster) -> None:
    def made(percentage: int, **profiles: Any) -> RevisionContent:
        plain = content(unsupportedConfigOverrides={"percentageOfNodesToScore": percentage})
        return RevisionContent(plain.parts, record(None, {"spec": {}}, profiles))

    cluster.revision(1, made(1))
    cluster.revision(2, made(2, a={}, b={}))
    cluster.revision(3, made(3, a={"percentageOfNodesToScore": 5}))
    cluster.kubescheduler({"a": 3})
    shown = json.loads((await cluster.run("history", "-o", "json")).out)
    assert [entry["edits"] for entry in shown] == [
        ["SchedulerProfile a was edited", "SchedulerProfile b is no longer in use"],
        ["SchedulerProfile a is new", "SchedulerProfile b is new"],
        [],
    ]
    assert "by: SchedulerProfile a was edited" in (await cluster.run("history")).out


async def test_undo_names_the_profiles_that_it_leaves_to_their_owners(cluster: Cluster) -> None:
    cluster.api.served.add(SCHEDULER_PROFILES)
    cluster.put(SCHEDULERS, {"metadata": {"name": "cluster"}, "spec": {}})
    cluster.put(SCHEDULER_PROFILES, profile("team"))
    cluster.kubescheduler({"a": 2}, logLevel="Debug")
    cluster.revision(1, content())
    cluster.revision(2, content(logLevel="Debug"))
    done = await cluster.run("rollout", "undo", "--to-revision", "1", "--dry-run")
    assert done.code == 0, done.err
    assert "  - SchedulerProfile team is new" in done.out
    assert "  - profile team added" in done.out, "and its effect"


async def test_undo_of_a_new_profile_fails_and_has_the_command_that_reverts_it(
    cluster: Cluster,
) -> None:
    cluster.api.served.add(SCHEDULER_PROFILES)
    cluster.put(SCHEDULERS, {"metadata": {"name": "cluster"}, "spec": {}})
    cluster.put(SCHEDULER_PROFILES, profile("team"))
    cluster.kubescheduler({"a": 2})
    cluster.revision(1, content())
    cluster.revision(2, content(profiles=[profile("team")]))
    done = await cluster.run("rollout", "undo", "--to-revision", "1", "--yes")
    assert done.code == 1
    assert "Nothing is written" in done.out
    assert "kubectl delete schedulerprofile team" in done.out
    assert [seen for seen in cluster.api.seen if seen.method in ("PUT", "PATCH")] == []


async def test_undo_shows_what_an_edited_profile_was(cluster: Cluster) -> None:
    cluster.api.served.add(SCHEDULER_PROFILES)
    cluster.put(SCHEDULERS, {"metadata": {"name": "cluster"}, "spec": {}})
    cluster.put(SCHEDULER_PROFILES, profile("team", percentageOfNodesToScore=9))
    cluster.kubescheduler({"a": 2})
    before = content(profiles=[profile("team", percentageOfNodesToScore=5)])
    inputs = record(None, {"spec": {}}, {"team": {"percentageOfNodesToScore": 5}})
    cluster.revision(1, RevisionContent(before.parts, inputs))
    cluster.revision(2, content(profiles=[profile("team", percentageOfNodesToScore=9)]))
    done = await cluster.run("rollout", "undo", "--to-revision", "1", "--yes")
    assert done.code == 1
    assert done.out.splitlines() == [
        "Nothing is written: the settings that undo restores are those of revision 1.",
        "Objects that undo does not write, edited since revision 1:",
        "  - SchedulerProfile team was edited",
        "      - profile team: percentageOfNodesToScore: 5 → 9",
        "      To revert it: kubectl patch schedulerprofile team --type merge -p "
        """'{"spec": {"percentageOfNodesToScore": 5}}'""",
        "",
    ]


async def test_undo_names_the_object_that_causes_each_difference(cluster: Cluster) -> None:
    cluster.api.served.add(SCHEDULER_PROFILES)
    cluster.put(SCHEDULERS, {"metadata": {"name": "cluster"}, "spec": {}})
    for name in ("new", "renamed"):
        cluster.put(SCHEDULER_PROFILES, profile(name))
    cluster.kubescheduler({"a": 2})
    gone = {"percentageOfNodesToScore": 5}
    then = [profile("gone", **gone), profile("renamed", schedulerName="before")]
    image = IMAGE.replace("35.4", "35.3")
    specs: dict[str, Any] = {"gone": gone, "renamed": {"schedulerName": "before"}}
    older = content(profiles=then, image=image)
    cluster.revision(1, RevisionContent(older.parts, record(None, {"spec": {}}, specs)))
    cluster.revision(2, content(profiles=[profile("new"), profile("renamed")]))
    done = await cluster.run("rollout", "undo", "--to-revision", "1", "--yes")
    assert done.code == 1
    manifest = (
        '{"apiVersion": "kube-scheduler-operator.dev/v1alpha1", "kind": "SchedulerProfile", '
        '"metadata": {"name": "gone"}, "spec": {"percentageOfNodesToScore": 5}}'
    )
    assert done.out.splitlines()[1:] == [
        "Objects that undo does not write, edited since revision 1:",
        "  - SchedulerProfile gone is no longer in use",
        "      - profile gone removed",
        f"      To revert it: printf %s '{manifest}' | kubectl create -f -",
        "  - SchedulerProfile new is new",
        "      - profile new added",
        "      To revert it: kubectl delete schedulerprofile new",
        "  - SchedulerProfile renamed was edited",
        "      - profile before removed",
        "      - profile renamed added",
        "      To revert it: kubectl patch schedulerprofile renamed --type merge -p "
        """'{"spec": {"schedulerName": "before"}}'""",
        "",
        "No edit of an object causes these differences from revision 1:",
        f"  - image: {image} → {IMAGE}",
        "      no field of these objects sets it; to have the earlier one: kubectl -n "
        f"kube-scheduler-operator set env deployment/kube-scheduler-operator OPERAND_IMAGE={image}",
        "",
    ]


# --- a bootstrap node -----------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [{"plugins": GOOD}, {"plugins": {"bind": {"disabled": ["x"]}}}])
def test_render_makes_profiles_of_the_manifests(tmp_path: Path, spec: dict[str, Any]) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "auth").mkdir()
    (tmp_path / "auth" / "kubeconfig").write_text("clusters: [{name: c}]")
    manifest = tmp_path / "profile.yaml"
    manifest.write_text(yaml.safe_dump(profile("team", **spec)))
    out = tmp_path / "config.yaml"
    code = main([
        "render", "--asset-input-dir", str(tmp_path / "assets"),
        "--asset-output-dir", str(tmp_path / "out"), "--config-output-file", str(out),
        "--rendered-manifest-files", str(manifest),
    ])  # fmt: skip
    if spec == {"plugins": GOOD}:
        assert code == 0
        profiles = yaml.safe_load(out.read_text())["profiles"]
        assert [p["schedulerName"] for p in profiles] == ["default-scheduler", "team"]
    else:
        assert code == 2
        assert not out.exists()


# --- warnings -------------------------------------------------------------------------------------


def test_compose_names_what_a_profile_may_surprise_with(composed: OnFile) -> None:
    off = {"filter": {"disabled": [{"name": "NodePorts"}]}}
    code, shown, _ = composed(profile("calm", plugins=GOOD), profile("risky", plugins=off))
    assert code == 0, "a warning stops nothing"
    calm, risky = shown["schedulerProfiles"]
    assert "warnings" not in calm
    (reported,) = risky["warnings"]
    assert reported.startswith(
        "SchedulerProfile/risky spec.plugins.filter.disabled[0]: NodePorts does"
    )
    assert shown["conditions"] == [], "KubeScheduler reports only its own findings"


def test_compose_shows_warnings(composed: OnFile) -> None:
    kubescheduler = {
        "apiVersion": "operator.openshift.io/v1", "kind": "KubeScheduler",
        "metadata": {"name": "cluster"},
        "spec": {"unsupportedConfigOverrides": {"percentageOfNodesToScore": 1}},
    }  # fmt: skip
    code, shown, _ = composed(kubescheduler)
    assert code == 0
    found = {each["type"]: each for each in shown["conditions"]}[names.CONFIGURATION_WARNINGS]
    assert (found["status"], found["reason"]) == ("True", "SampledTooFew")


@pytest.mark.parametrize(("lines", "shown", "left"), [(2, 3, 0), (14, 10, 5)])
async def test_status_shows_warnings_after_what_is_wrong(
    cluster: Cluster, lines: int, shown: int, left: int
) -> None:
    cluster.operator_runs()
    text = "\n".join(f"field{number}: m" for number in range(lines))
    one = {"type": names.CONFIGURATION_WARNINGS, "status": "True", "reason": "X", "message": text}
    cluster.kubescheduler({"a": 1}, status={"conditions": [one]})
    cluster.api.served.add(SCHEDULER_PROFILES)
    obj = judged("team", "Accepted")
    obj["status"]["conditions"].append({
        "type": names.WARNINGS, "status": "True", "reason": "Y", "message": "spec.plugins: n",
    })  # fmt: skip
    obj["status"]["conditions"].append({"type": "Other", "status": "True", "message": "no"})
    cluster.put(SCHEDULER_PROFILES, obj)
    done = await cluster.run("status")
    printed = done.out.splitlines()
    at = printed.index(f"Warnings   {lines + 1}:")
    assert printed[at + 1] == "  KubeScheduler: field0: m"
    reported = [line for line in printed if ": m" in line or ": n" in line]
    assert len(reported) == shown
    assert (f"  and {left} more; see kubectl scheduler status -o json" in printed) == bool(left)
    assert "PROBLEM" not in done.out
    report = json.loads((await cluster.run("status", "-o", "json")).out)
    assert report["warnings"][-1] == {
        "object": "SchedulerProfile team",
        "message": "spec.plugins: n",
    }
    assert len(report["warnings"]) == lines + 1
