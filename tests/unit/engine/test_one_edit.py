"""Many of both kinds in one cluster: an edit leads to the writes that it needs, and to no other."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    KUBE_SCHEDULERS,
    SCHEDULER_PROFILES,
    SECONDARY_SCHEDULERS,
)

from ..desk import Desk

SCHEDULERS_BESIDE = ("alpha", "beta", "gamma")
MISSPELT = {"score": {"enabled": [{"name": "ImageLocalty"}]}}


@pytest.fixture
def desk() -> Desk:
    """Three further schedulers with two profiles each, and three of the control plane's."""
    desk = Desk()
    for scheduler in SCHEDULERS_BESIDE:
        desk.secondary(scheduler)
        for letter in "xy":
            desk.profile(f"{scheduler}-{letter}", scheduler, percentageOfNodesToScore=10)
    for number in range(3):
        desk.profile(f"team-{number}", percentageOfNodesToScore=10)
    desk.rest()
    return desk


def kinds(writes: list[str]) -> Counter[str]:
    """The writes, hashes in names left out."""
    return Counter(re.sub(r"-config-\w+$", "-config", one) for one in writes)


def test_an_idle_pass_writes_nothing(desk: Desk) -> None:
    for _ in range(3):
        plan = desk.one_pass()
        assert (plan.actions, plan.reports, dict(plan.chains)) == ((), (), {})


def test_an_edit_of_a_profile_of_one_is_about_that_one(desk: Desk) -> None:
    desk.profile("beta-x", "beta", percentageOfNodesToScore=20)
    assert kinds(desk.rest()) == {
        "replace status SchedulerProfile beta-x": 1,
        "create ConfigMap beta-config": 1,
        "replace Deployment beta": 1,
        # That it begins, and that it has ended.
        "replace status SecondaryScheduler beta": 2,
    }


def test_an_edit_of_a_scheduler_is_about_that_one(desk: Desk) -> None:
    desk.secondary("beta", logLevel="Debug")
    assert kinds(desk.rest()) == {
        "create ConfigMap beta-config": 1,
        "replace Deployment beta": 1,
        "replace status SecondaryScheduler beta": 2,
    }


def test_an_edit_of_a_profile_of_the_control_plane_is_about_no_further_scheduler(
    desk: Desk,
) -> None:
    desk.profile("team-1", percentageOfNodesToScore=20)
    assert kinds(desk.rest()) == {
        "replace status SchedulerProfile team-1": 1,
        "replace KubeScheduler cluster": 1,  # what was observed
        "replace ConfigMap config": 1,
        "create ConfigMap revision-status-2": 1,
        "create ConfigMap config-2": 1,
        "create ConfigMap kube-scheduler-pod-2": 1,
        "replace ConfigMap revision-status-2": 1,  # it is complete
        "replace ConfigMap revision-status-1": 1,  # it is superseded: no node ever had it
        "replace status KubeScheduler cluster": 2,  # the generation; the latest revision
    }


def test_a_mistake_in_a_profile_is_told_and_touches_nothing_that_runs(desk: Desk) -> None:
    desk.profile("beta-x", "beta", plugins=MISSPELT)
    assert kinds(desk.rest()) == {
        "replace status SchedulerProfile beta-x": 1,
        "replace status KubeScheduler cluster": 1,
        "replace status ClusterOperator kube-scheduler": 1,
    }


def test_an_edit_that_changes_nothing_is_noted_and_rolls_out_nothing(desk: Desk) -> None:
    desk.profile("beta-x", "beta", percentageOfNodesToScore=10, plugins={})
    assert desk.rest() == ["replace status SchedulerProfile beta-x"]


def test_a_deleted_scheduler_takes_what_is_its_own_and_nothing_else(desk: Desk) -> None:
    gone = desk.remove(SECONDARY_SCHEDULERS, "beta")
    owned = {re.sub(r"-config-\w+$", "-config", one) for one in gone}
    assert owned == {
        "ServiceAccount beta",
        "ClusterRoleBinding beta-as-kube-scheduler",
        "ClusterRoleBinding beta-as-volume-scheduler",
        "RoleBinding beta-authentication-reader",
        "RoleBinding beta",
        "Role beta",
        "Service beta",
        "PodDisruptionBudget beta",
        "ConfigMap beta-config",
        "Deployment beta",
    }
    # Its profiles have nobody to run them, and are told so; nothing else is of interest.
    assert kinds(desk.rest()) == {
        "replace status SchedulerProfile beta-x": 1,
        "replace status SchedulerProfile beta-y": 1,
        "replace status KubeScheduler cluster": 1,
        "replace status ClusterOperator kube-scheduler": 1,
    }
    assert {one["metadata"]["name"] for one in desk.list(SECONDARY_SCHEDULERS)} == {
        "alpha", "gamma",
    }  # fmt: skip


# --- what kube-scheduler itself refuses -----------------------------------------------------------


def accepted(desk: Desk, name: str) -> tuple[str, str, str]:
    conditions = desk.get(SCHEDULER_PROFILES, name)["status"]["conditions"]
    (found,) = (one for one in conditions if one["type"] == names.ACCEPTED)
    return found["status"], found["reason"], found.get("message", "")


def refuse(desk: Desk, revision: int, words: str, outcome: str = names.OUTCOME_REFUSED) -> None:
    marks = {names.OUTCOME_ANNOTATION: outcome, names.OUTCOME_MESSAGE_ANNOTATION: words}
    namespace = KUBEADM.target_namespace
    desk.mark(CONFIG_MAPS, f"revision-status-{revision}", namespace, **marks)


WORDS = "profiles[2].percentageOfNodesToScore: Invalid value: 20: the thing itself said so"


def test_a_refused_revision_is_told_to_the_profile_that_is_to_blame(desk: Desk) -> None:
    desk.profile("team-1", percentageOfNodesToScore=20)
    desk.rest()
    refuse(desk, 2, WORDS)
    writes = kinds(desk.rest())
    assert writes["replace status SchedulerProfile team-1"] == 1
    assert sum(count for one, count in writes.items() if "SchedulerProfile" in one) == 1
    assert accepted(desk, "team-1") == (
        "False",
        "Refused",
        "spec.percentageOfNodesToScore: kube-scheduler refused revision 2, mend this or take it "
        f"back: {WORDS}",
    )
    conditions = {
        one["type"]: one for one in desk.get(KUBE_SCHEDULERS, "cluster")["status"]["conditions"]
    }
    assert conditions[names.PREFLIGHT_DEGRADED]["status"] == "True"
    assert conditions[names.SCHEDULER_PROFILES_DEGRADED]["status"] == "False", "once is enough"
    assert desk.rest() == []
    desk.profile("team-1", percentageOfNodesToScore=30)
    desk.rest()
    assert accepted(desk, "team-1") == ("True", "Accepted", "")


def test_one_that_does_not_stay_healthy_is_told_as_well(desk: Desk) -> None:
    desk.profile("team-2", percentageOfNodesToScore=20)
    desk.rest()
    words = 'node "a": creating profile for scheduler name team-2: something broke'
    refuse(desk, 2, words, names.OUTCOME_FAILED)
    desk.rest()
    assert accepted(desk, "team-2") == (
        "False",
        "Refused",
        "spec: kube-scheduler did not stay healthy with revision 2, mend this or take it back: "
        f"{words}",
    )
