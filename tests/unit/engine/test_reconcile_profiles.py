"""SchedulerProfiles in the pass: what is written when, and that nothing is written twice."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.controlplane.desired import wanted
from kube_scheduler_operator.controlplane.revision.inputs import read_inputs
from kube_scheduler_operator.engine.reconcile import reconcile
from kube_scheduler_operator.kube.resource import KUBE_SCHEDULERS, SCHEDULER_PROFILES
from kube_scheduler_operator.model.plan import Action, Plan, Replace
from kube_scheduler_operator.model.snapshot import Snapshot

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = Settings(operand_image="registry.k8s.io/kube-scheduler:v1.35.4")
GOOD = {
    "score": {"disabled": [{"name": "*"}], "enabled": [{"name": "ImageLocality", "weight": 10}]}
}
BAD = {"score": {"enabled": [{"name": "ImageLocalty"}]}}


def profile(name: str, generation: int = 1, **spec: Any) -> dict[str, Any]:
    metadata = {
        "name": name, "uid": name, "resourceVersion": "7", "generation": generation,
        "creationTimestamp": "2025-12-01T00:00:00Z",
    }  # fmt: skip
    return {"metadata": metadata, "spec": spec}


def start(*profiles: Any, **fields: Any) -> Snapshot:
    metadata = {"name": "cluster", "uid": "u", "resourceVersion": "1", "generation": 1}
    given: dict[str, Any] = {
        "scheduler": {"metadata": {"name": "cluster"}, "spec": {}},
        "kubescheduler": {"metadata": metadata, "spec": {}},
        "nodes": {"a": {"metadata": {"name": "a", "uid": "x"}, "status": {}}},
        "scheduler_profiles": {p["metadata"]["name"]: p for p in profiles},
    }
    return Snapshot(now=NOW, platform=KUBEADM, settings=SETTINGS, **{**given, **fields})


def written(plan: Plan) -> dict[str, Any]:
    """The statuses that are written, by name."""
    found = {}
    for action in plan.reports:
        if action.resource == SCHEDULER_PROFILES:
            assert isinstance(action, Replace)
            assert action.subresource == "status"
            assert action.obj["metadata"]["resourceVersion"] == "7", (
                "only what was read is replaced"
            )
            found[action.obj["metadata"]["name"]] = action.obj["status"]
    return found


def after(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """What the API has when the plan was executed, a second later."""
    statuses = written(plan)
    objects = {
        name: {**obj, "status": statuses[name]} if name in statuses else obj
        for name, obj in (snapshot.scheduler_profiles or {}).items()
    }
    kubescheduler = dict(snapshot.kubescheduler or {})
    for action in plan.actions:
        if action.resource == KUBE_SCHEDULERS and isinstance(action, Replace):
            key = action.subresource or "spec"
            kubescheduler = {**kubescheduler, key: action.obj[key]}
    return replace(
        snapshot,
        scheduler_profiles=objects,
        kubescheduler=kubescheduler,
        now=snapshot.now + timedelta(seconds=1),
    )


def edited(snapshot: Snapshot, name: str, **spec: Any) -> Snapshot:
    objects = dict(snapshot.scheduler_profiles or {})
    generation = objects[name]["metadata"]["generation"] + 1
    metadata = {**objects[name]["metadata"], "generation": generation}
    objects[name] = {**objects[name], "metadata": metadata, "spec": spec}
    return replace(snapshot, scheduler_profiles=objects)


def settled(*profiles: Any, **fields: Any) -> Snapshot:
    snapshot = start(*profiles, **fields)
    for _ in range(3):
        snapshot = after(snapshot, reconcile(snapshot))
    return snapshot


def condition(status: Any) -> tuple[str, str, str]:
    (found,) = (one for one in status["conditions"] if one["type"] == names.ACCEPTED)
    return found["status"], found["reason"], found.get("message", "")


def events(plan: Plan) -> list[tuple[str, str]]:
    actions: tuple[Action, ...] = plan.reports
    return [(e.type, e.reason) for a in actions for e in a.events if "Profile" in e.reason]


def test_what_is_accepted_is_remembered_before_anything_is_made_of_it() -> None:
    plan = reconcile(start(profile("team", plugins=GOOD)))
    (action,) = plan.actions
    assert action.obj["spec"]["observedConfig"]["profiles"][0]["schedulerName"] == "team"
    (status,) = written(plan).values()
    assert status["accepted"] == {"plugins": GOOD}
    assert (status["observedGeneration"], status["acceptedGeneration"]) == (1, 1)
    assert status["schedulerName"] == "team"
    assert status["plugins"]["score"] == "ImageLocality=10"
    assert status["plugins"]["bind"] == "DefaultBinder"
    assert "postBind" not in status["plugins"], "where nothing runs there is nothing to tell"
    assert condition(status) == ("True", "Accepted", "")
    assert events(plan) == []


def test_when_nothing_changes_no_status_is_written() -> None:
    snapshot = settled(profile("a", plugins=GOOD), profile("b", plugins=BAD), profile("c"))
    later = replace(snapshot, now=NOW + timedelta(days=1))
    assert written(reconcile(later)) == {}


def test_a_bad_edit_is_held_and_told_and_the_others_are_left_alone() -> None:
    before = settled(profile("a", plugins=GOOD), profile("b"))
    plan = reconcile(edited(before, "a", plugins=BAD))
    assert set(written(plan)) == {"a"}
    status = written(plan)["a"]
    assert (status["observedGeneration"], status["acceptedGeneration"]) == (2, 1)
    assert status["accepted"] == {"plugins": GOOD}
    assert status["plugins"]["score"] == "ImageLocality=10"
    state, reason, message = condition(status)
    assert (state, reason) == ("False", "Held")
    assert message.splitlines() == [
        "generation 1 runs on",
        "spec.plugins.score.enabled[0].name: kube-scheduler 1.35 has no plugin "
        '"ImageLocalty"; did you mean "ImageLocality"?',
    ]
    assert events(plan) == [("Warning", "SchedulerProfileNotAccepted")]
    degraded = next(
        c
        for a in plan.actions
        if a.resource == KUBE_SCHEDULERS
        for c in a.obj["status"]["conditions"]
        if c["type"] == names.SCHEDULER_PROFILES_DEGRADED
    )
    assert degraded["status"] == "True"
    assert wanted(edited(before, "a", plugins=BAD))[0] == wanted(before)[0], "no new revision"


def test_one_that_never_was_accepted_is_left_out_until_it_is_mended() -> None:
    before = settled(profile("a", plugins=BAD))
    status = (before.scheduler_profiles or {})["a"]["status"]
    assert condition(status)[:2] == ("False", "LeftOut")
    assert not {"accepted", "acceptedGeneration", "plugins", "schedulerName"} & set(status)
    plan = reconcile(edited(before, "a", plugins=GOOD))
    assert condition(written(plan)["a"]) == ("True", "Accepted", "")
    assert events(plan) == [("Normal", "SchedulerProfileAccepted")]


def test_a_memory_that_cannot_run_any_more_is_kept_for_another_version() -> None:
    accepted = {"plugins": {"placementScore": {"enabled": [{"name": "NodeResourcesFit"}]}}}
    obj = {
        **profile("a", 2, plugins=BAD),
        "status": {"accepted": accepted, "acceptedGeneration": 1},
    }
    status = written(reconcile(start(obj)))["a"]
    assert condition(status)[:2] == ("False", "LeftOut")
    assert (status["accepted"], status["acceptedGeneration"]) == (accepted, 1)


def test_a_bad_profile_does_not_keep_a_revision_from_being_made() -> None:
    plan = reconcile(start(profile("a", plugins=BAD)))
    made = [a.obj["metadata"]["name"] for a in plan.actions]
    assert "revision-status-1" in made


def test_a_revision_remembers_which_profiles_were_in_use() -> None:
    snapshot = settled(profile("a", plugins=GOOD), profile("b", plugins=BAD))
    content, _ = wanted(snapshot)
    assert content is not None
    recorded = read_inputs(content.inputs)
    assert recorded is not None
    assert recorded.profiles == {"a": {"plugins": GOOD}}
    assert recorded.kubescheduler == {"observedConfig": {}}, "not twice"
    names_in = [p["schedulerName"] for p in
                json.loads(content.parts[names.CONFIG][names.CONFIG_KEY])["profiles"]]  # fmt: skip
    assert names_in == ["default-scheduler", "a"]


@pytest.mark.parametrize("state", ["Unmanaged", "Removed"])
def test_who_is_not_managed_is_not_told_either(state: str) -> None:
    kubescheduler = start().kubescheduler or {}
    kubescheduler = {**kubescheduler, "spec": {"managementState": state}}
    plan = reconcile(start(profile("a", plugins=BAD), kubescheduler=kubescheduler))
    assert written(plan) == {}


def test_nothing_of_the_operator_stays_in_users_objects_when_it_is_removed() -> None:
    snapshot = settled(profile("a", plugins=GOOD), profile("b", plugins=BAD))
    gone = {**(snapshot.kubescheduler or {}), "spec": {"managementState": "Removed"}}
    gone["status"] = {**gone.get("status", {}), "nodeStatuses": []}
    plan = reconcile(replace(snapshot, kubescheduler=gone))
    assert written(plan) == {"a": {}, "b": {}}
    left = after(replace(snapshot, kubescheduler=gone), plan)
    assert written(reconcile(left)) == {}


def test_a_kind_that_is_not_served_stops_nothing() -> None:
    plan = reconcile(start(scheduler_profiles=None))
    assert "revision-status-1" in [a.obj["metadata"]["name"] for a in plan.actions]
    assert written(plan) == {}
