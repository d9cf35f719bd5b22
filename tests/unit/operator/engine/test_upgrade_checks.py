"""The check of a newer version that OperatorSettings request, in reconciles."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.images import AllowedImages
from kube_scheduler_operator.config.effective.control_plane.recorded_inputs import (
    RecordedInputs,
    changed_objects,
)
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.kube.resource import KUBE_SCHEDULERS, OPERATOR_SETTINGS
from kube_scheduler_operator.operator.controlplane.upgrade_check import (
    CHANGED_SECONDS,
    REPEAT_SECONDS,
    RETRY_SECONDS,
    SECONDS,
    result_of,
)
from kube_scheduler_operator.operator.engine.reconcile import reconcile
from kube_scheduler_operator.operator.model.plan import Plan, UpgradeQuestion
from kube_scheduler_operator.operator.model.snapshot import Snapshot, UpgradeAnswer

from ....builders import kubescheduler, operator_settings, scheduler
from .test_reconcile import start
from .test_reconcile_managed import start as managed

FOUND = "Kubernetes 1.35 to 1.36: something changes in 1.36\n1.36, the files: refused: a gate"
MOST_CHECKS_A_DAY = 5


class Played:
    """A cluster whose statuses are written, with the answers that are given."""

    def __init__(self, request: Any, snapshot: Snapshot | None = None) -> None:
        self.snapshot = snapshot or start()
        self.answers: dict[Any, UpgradeAnswer] = {}
        self.request(request)
        self.plan = Plan()
        self.asked: list[UpgradeQuestion] = []
        self.events: list[str] = []

    def request(self, request: Any) -> None:
        spec = {} if request is None else {"upgradeCheck": request}
        obj = {**operator_settings(status=self.settings.get("status")), "spec": spec}
        self.snapshot = replace(self.snapshot, operator_settings={"cluster": obj})

    @property
    def settings(self) -> Any:
        return (self.snapshot.operator_settings or {}).get("cluster") or {}

    @property
    def record(self) -> Any:
        return (self.settings.get("status") or {}).get("upgradeCheck") or {}

    def reconcile(self, seconds: float = 1.0) -> Plan:
        """Reconcile later, and write the statuses."""
        now = self.snapshot.now + timedelta(seconds=seconds)
        self.snapshot = replace(self.snapshot, now=now, upgrade_answers=self.answers)
        self.plan = plan = reconcile(self.snapshot)
        assert plan.failures == ()
        known = {question.identity for question in self.asked}
        self.asked += [one for one in plan.upgrades or () if one.identity not in known]
        for action in (*plan.actions, *plan.reports):
            if action.resource == OPERATOR_SETTINGS:
                self.events += [event.reason for event in action.events]
                obj = json.loads(json.dumps(action.obj))
                self.snapshot = replace(self.snapshot, operator_settings={"cluster": obj})
            if action.resource == KUBE_SCHEDULERS:
                self.snapshot = replace(self.snapshot, kubescheduler=action.obj)
        return plan

    def answer(self, result: str = "Changes", message: str = FOUND, *, tried: bool = True) -> None:
        identity = self.asked[-1].identity
        self.answers = {identity: UpgradeAnswer(identity, result, message, tried)}
        self.reconcile()

    @property
    def condition(self) -> tuple[str, str, str] | None:
        for raw in self.snapshot.status.get("conditions") or ():
            if raw["type"] == names.UPGRADE_CHECK_PASSED:
                return raw["status"], raw["reason"], raw["message"]
        return None


def asked(request: Any = None, snapshot: Snapshot | None = None) -> Played:
    played = Played(request or {"version": "1.36"}, snapshot)
    played.reconcile()
    assert played.asked == [], "its identity is on record first"
    played.reconcile()
    return played


def written(plan: Plan) -> list[str]:
    return [action.obj["metadata"]["name"] for action in plan.actions]


def test_nothing_is_checked_without_a_request() -> None:
    played = Played(None)
    plan = played.reconcile()
    assert (plan.upgrades, played.condition, played.record) == ((), None, {})


def test_a_request_is_checked_beside_the_rollout_and_its_result_is_reported() -> None:
    played = asked()
    (question,) = played.asked
    assert question.image == "registry.k8s.io/kube-scheduler:v1.35.4"
    assert question.next_image == "registry.k8s.io/kube-scheduler:v1.36.0"
    assert (question.target, question.problem) == (Version(1, 36), "")
    assert [upgrade.title for upgrade in question.upgrades()] == ["the control plane's scheduler"]
    assert played.condition is not None
    assert played.condition[:2] == ("Unknown", "Checking")
    without = Played({"version": "1.99"})
    without.reconcile()
    without.reconcile()
    assert written(played.plan) == written(without.plan), "nothing of the rollout waits"
    played.answer()
    assert played.condition is not None
    status, reason, message = played.condition
    assert (status, reason) == ("False", "Changes")
    assert message.startswith(f"{FOUND}\nchecked at 20")
    assert played.events == ["UpgradeChecked"]
    assert played.record["result"] == "Changes"


@pytest.mark.parametrize(
    ("result", "status"), [("NothingFound", "True"), ("Changes", "False"), ("NotKnown", "Unknown")]
)
def test_each_result_has_a_status(result: str, status: str) -> None:
    played = asked()
    played.answer(result)
    assert played.condition is not None
    assert played.condition[:2] == (status, result)


def test_without_a_request_the_condition_and_the_memory_go() -> None:
    played = asked()
    played.answer()
    played.request(None)
    plan = played.reconcile()
    assert (plan.upgrades, played.condition, played.record) == ((), None, {})


@pytest.mark.parametrize("state", ["Unmanaged", "Removed"])
def test_the_condition_goes_also_while_nothing_is_managed(state: str) -> None:
    played = asked()
    played.answer()
    obj = {**(played.snapshot.kubescheduler or {}), "spec": {"managementState": state}}
    played.snapshot = replace(played.snapshot, kubescheduler=obj)
    played.reconcile()
    assert played.condition is not None
    assert played.condition[:2] == ("Unknown", state)
    played.request(None)
    played.reconcile()
    assert played.condition is None


def test_while_the_settings_cannot_be_read_the_last_result_stays() -> None:
    played = asked()
    played.answer()
    last = played.condition
    played.snapshot = replace(played.snapshot, operator_settings=None)
    plan = played.reconcile()
    assert (plan.upgrades, played.condition) == (None, last)


def test_a_result_is_repeated_every_few_hours_and_not_before() -> None:
    played = asked()
    played.answer()
    for _ in range(24 * 60):
        played.reconcile(60.0)
        if played.record["state"] == "Checking" and len(played.asked) > 1:
            played.answer()
    assert 2 < len(played.asked) <= MOST_CHECKS_A_DAY
    assert played.events == ["UpgradeChecked"], "the same result has no event"
    assert played.plan.requeue_after is not None
    assert played.plan.requeue_after <= REPEAT_SECONDS


def test_a_check_without_a_program_is_tried_again_after_an_hour() -> None:
    played = asked()
    played.answer("NotKnown", "no node is Ready", tried=False)
    played.reconcile(RETRY_SECONDS - 30)
    assert len(played.asked) == 1
    played.reconcile(60.0)
    played.reconcile()
    assert len(played.asked) == 2


def test_another_configuration_is_checked_again_and_edits_in_a_row_once() -> None:
    played = asked()
    played.answer()
    for value in range(2, 20):
        spec = {"unsupportedConfigOverrides": {"parallelism": value}}
        obj = {**(played.snapshot.kubescheduler or {}), "spec": spec}
        played.snapshot = replace(played.snapshot, kubescheduler=obj)
        played.reconcile(5.0)
        played.reconcile(5.0)
    assert len(played.asked) == 1
    assert played.condition is not None
    assert "the configuration has changed since, and is checked again" in played.condition[2]
    played.reconcile(CHANGED_SECONDS)
    played.reconcile()
    assert len(played.asked) == 2
    assert played.condition[1] == "Changes", "the last result stays until there is another one"


def test_another_version_is_checked_at_once() -> None:
    played = asked()
    played.answer()
    played.request({"version": "1.37"})
    played.reconcile()
    played.reconcile()
    assert played.asked[-1].target == Version(1, 37)
    assert played.condition is not None
    assert played.condition[1] == "Checking", "the result is not that of another version"


def test_a_check_without_an_answer_ends() -> None:
    played = asked()
    played.reconcile(SECONDS + 60.0)
    assert played.condition is not None
    assert played.condition[:2] == ("Unknown", "NotKnown")
    assert f"there was no answer within {SECONDS} s" in played.condition[2]


def test_another_leader_continues() -> None:
    played = asked()
    first = played.asked[0].identity
    played.asked.clear()
    played.reconcile()
    assert [question.identity for question in played.asked] == [first]


@pytest.mark.parametrize(
    ("image", "request_image", "expected"),
    [
        ("registry.k8s.io/kube-scheduler:v1.35.4", "", "registry.k8s.io/kube-scheduler:v1.36.0"),
        (
            "registry.k8s.io/kube-scheduler:v1.35.4",
            "registry.k8s.io/kube-scheduler:v1.36.3",
            "registry.k8s.io/kube-scheduler:v1.36.3",
        ),
        ("mirror.example/kube-scheduler:v1.35.4-rke2r1", "", "is not that of a release"),
        ("mirror.example/own-scheduler:v1.35.4", "", "may have plugins of its own"),
        ("registry.k8s.io/kube-scheduler:v1.35.4", "evil.example/x:1", "is not allowed"),
        ("registry.k8s.io/kube-scheduler:v1.35.4", "ok.example/x:1", "ok.example/x:1"),
    ],
)
def test_the_image_is_the_next_release_or_one_that_is_allowed(
    image: str, request_image: str, expected: str
) -> None:
    snapshot = start()
    settings = replace(
        snapshot.settings, operand_image=image, allowed_images=AllowedImages(("ok.example/x",))
    )
    snapshot = replace(snapshot, settings=settings)
    (question,) = asked({"version": "1.36", "image": request_image}, snapshot).asked
    assert expected in (question.next_image, *question.problem.split(";")) or (
        expected in question.problem
    )
    assert bool(question.problem) != bool(question.next_image)


def test_a_version_that_is_not_known_is_not_run() -> None:
    played = Played({"version": "1.99"})
    played.reconcile()
    assert played.condition == (
        "Unknown",
        "VersionUnknown",
        "1.99 is not known; the newest is 1.38",
    )
    assert played.plan.upgrades == ()


def test_what_was_found_is_reported_once_the_version_is_in_use() -> None:
    """As after `kubeadm upgrade`: the operator follows it, whatever the check had found."""
    played = asked()
    played.answer()
    settings = replace(
        played.snapshot.settings, operand_image="registry.k8s.io/kube-scheduler:v1.36.3"
    )
    played.snapshot = replace(played.snapshot, settings=settings)
    plan = played.reconcile()
    played.reconcile()
    assert plan.upgrades == ()
    assert played.condition is not None
    status, reason, message = played.condition
    assert (status, reason) == ("True", "VersionReached")
    assert message.startswith("kube-scheduler v1.36.3 is in use; the check of 1.36 at 20")
    assert message.endswith(FOUND)
    assert played.events == ["UpgradeChecked", "UpgradeReached"]


def test_a_version_in_use_is_not_checked() -> None:
    played = Played({"version": "1.35"})
    played.reconcile()
    played.reconcile()
    assert played.condition is not None
    assert played.condition[:2] == ("True", "VersionReached")
    assert (played.asked, played.events) == ([], [])


def test_the_summary_is_for_this_version_alone() -> None:
    played = asked()
    played.answer()
    assert FOUND.partition("\n")[0] in result_of(played.snapshot, Version(1, 36, 3))
    assert result_of(played.snapshot, Version(1, 37)) == ""


def test_a_check_edits_no_revision() -> None:
    def inputs(spec: Any) -> RecordedInputs:
        return RecordedInputs({}, {}, operator_settings=spec)

    assert changed_objects(inputs(None), inputs({"upgradeCheck": {"version": "1.36"}})) == ()


def test_managed_schedulers_are_checked_likewise() -> None:
    played = asked(snapshot=managed(scheduler=scheduler(), kubescheduler=kubescheduler()))
    played.answer()
    assert played.condition is not None
    assert played.condition[:2] == ("False", "Changes")
