"""SchedulerProfiles in a reconcile: which statuses are written, and when."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.config.effective.control_plane.recorded_inputs import read_inputs
from kube_scheduler_operator.kube.resource import KUBE_SCHEDULERS, SCHEDULER_PROFILES
from kube_scheduler_operator.operator.controlplane.desired import desired_content
from kube_scheduler_operator.operator.engine.reconcile import reconcile
from kube_scheduler_operator.operator.model.plan import Action, Plan, Replace
from kube_scheduler_operator.operator.model.snapshot import Snapshot

from ....builders import (
    OPERAND_IMAGE,
    by_name,
    kubescheduler,
    node,
    profile,
    ready_condition,
    scheduler,
    snapshot,
)
from ....expect import condition_in, expect_accepted, expect_forgotten, expect_rejected

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = Settings(operand_image=OPERAND_IMAGE)
GOOD = {
    "score": {"disabled": [{"name": "*"}], "enabled": [{"name": "ImageLocality", "weight": 10}]}
}
BAD = {"score": {"enabled": [{"name": "ImageLocalty"}]}}


def versioned(obj: Any) -> Any:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": "7"}}


def start(*profiles: Any, **fields: Any) -> Snapshot:
    objects: dict[str, Any] = {
        "scheduler": scheduler(),
        "kubescheduler": kubescheduler(),
        "nodes": {"a": node("a", ready_condition(None))},
        "scheduler_profiles": by_name(versioned(profile) for profile in profiles),
    }
    return snapshot(now=NOW, settings=SETTINGS, **{**objects, **fields})


def written(plan: Plan) -> dict[str, Any]:
    """The written statuses, by name."""
    found = {}
    for action in plan.reports:
        if action.resource == SCHEDULER_PROFILES:
            assert isinstance(action, Replace)
            assert action.subresource == "status"
            assert action.obj["metadata"]["resourceVersion"] == "7", "the write is conditional"
            found[action.obj["metadata"]["name"]] = action.obj["status"]
    return found


def after(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """The cluster a second later, after the plan was executed."""
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


def events(plan: Plan) -> list[tuple[str, str]]:
    actions: tuple[Action, ...] = plan.reports
    return [(e.type, e.reason) for a in actions for e in a.events if "Profile" in e.reason]


def test_an_accepted_spec_is_recorded_before_it_is_used() -> None:
    plan = reconcile(start(profile("team", plugins=GOOD)))
    (action,) = plan.actions
    assert action.obj["spec"]["observedConfig"]["profiles"][0]["schedulerName"] == "team"
    (status,) = written(plan).values()
    assert status["accepted"] == {"plugins": GOOD}
    assert (status["observedGeneration"], status["acceptedGeneration"]) == (1, 1)
    assert status["schedulerName"] == "team"
    assert status["plugins"]["score"] == "ImageLocality=10"
    assert status["plugins"]["bind"] == "DefaultBinder"
    assert "postBind" not in status["plugins"], "an extension point without plugins is not listed"
    expect_accepted(status)
    assert events(plan) == []


def test_unchanged_profiles_get_no_status_write() -> None:
    snapshot = settled(profile("a", plugins=GOOD), profile("b", plugins=BAD), profile("c"))
    later = replace(snapshot, now=NOW + timedelta(days=1))
    assert written(reconcile(later)) == {}


def test_after_a_bad_edit_the_last_accepted_version_stays_in_use() -> None:
    before = settled(profile("a", plugins=GOOD), profile("b"))
    plan = reconcile(edited(before, "a", plugins=BAD))
    assert set(written(plan)) == {"a"}
    status = written(plan)["a"]
    assert (status["observedGeneration"], status["acceptedGeneration"]) == (2, 1)
    assert status["accepted"] == {"plugins": GOOD}
    assert status["plugins"]["score"] == "ImageLocality=10"
    expect_rejected(status, "LastAcceptedInUse")
    assert condition_in(status["conditions"], names.ACCEPTED)[2].splitlines() == [
        "generation 1 stays in use",
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
    assert desired_content(edited(before, "a", plugins=BAD))[0] == desired_content(before)[0], (
        "no new revision"
    )


def test_a_profile_that_was_never_accepted_is_not_in_use_until_it_is_fixed() -> None:
    before = settled(profile("a", plugins=BAD))
    status = (before.scheduler_profiles or {})["a"]["status"]
    expect_rejected(status, "NotInUse")
    assert not {"accepted", "acceptedGeneration", "plugins", "schedulerName"} & set(status)
    plan = reconcile(edited(before, "a", plugins=GOOD))
    expect_accepted(written(plan)["a"])
    assert events(plan) == [("Normal", "SchedulerProfileAccepted")]


def test_an_accepted_version_that_no_longer_validates_is_kept_for_another_release() -> None:
    accepted = {"plugins": {"placementScore": {"enabled": [{"name": "NodeResourcesFit"}]}}}
    objects = {"accepted": accepted, "acceptedGeneration": 1}
    obj = profile("a", generation=2, status=objects, plugins=BAD)
    status = written(reconcile(start(obj)))["a"]
    expect_rejected(status, "NotInUse")
    assert (status["accepted"], status["acceptedGeneration"]) == (accepted, 1)


def test_a_bad_profile_blocks_no_revision() -> None:
    plan = reconcile(start(profile("a", plugins=BAD)))
    made = [a.obj["metadata"]["name"] for a in plan.actions]
    assert "revision-status-1" in made


def test_a_revision_records_the_profiles_in_use() -> None:
    snapshot = settled(profile("a", plugins=GOOD), profile("b", plugins=BAD))
    content, _ = desired_content(snapshot)
    assert content is not None
    recorded = read_inputs(content.inputs)
    assert recorded is not None
    assert recorded.profiles == {"a": {"plugins": GOOD}}
    assert recorded.kubescheduler == {"observedConfig": {}}, "not recorded twice"
    names_in = [p["schedulerName"] for p in
                json.loads(content.parts[names.CONFIG][names.CONFIG_KEY])["profiles"]]  # fmt: skip
    assert names_in == ["default-scheduler", "a"]


@pytest.mark.parametrize("state", ["Unmanaged", "Removed"])
def test_unmanaged_and_removed_validate_no_profile(state: str) -> None:
    kubescheduler = start().kubescheduler or {}
    kubescheduler = {**kubescheduler, "spec": {"managementState": state}}
    plan = reconcile(start(profile("a", plugins=BAD), kubescheduler=kubescheduler))
    for status in written(plan).values():
        expect_forgotten(status)


def test_removal_clears_the_status_of_profiles() -> None:
    snapshot = settled(profile("a", plugins=GOOD), profile("b", plugins=BAD))
    gone = {**(snapshot.kubescheduler or {}), "spec": {"managementState": "Removed"}}
    gone["status"] = {**gone.get("status", {}), "nodeStatuses": []}
    plan = reconcile(replace(snapshot, kubescheduler=gone))
    assert set(written(plan)) == {"a", "b"}
    for status in written(plan).values():
        expect_forgotten(status)
    left = after(replace(snapshot, kubescheduler=gone), plan)
    assert written(reconcile(left)) == {}


def test_a_kind_that_is_not_installed_blocks_nothing() -> None:
    plan = reconcile(start(scheduler_profiles=None))
    assert "revision-status-1" in [a.obj["metadata"]["name"] for a in plan.actions]
    assert written(plan) == {}
