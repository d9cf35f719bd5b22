"""Many schedulers and profiles in one cluster: an edit causes only the necessary writes."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    KUBE_SCHEDULERS,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SECONDARY_SCHEDULERS,
)

from ....expect import condition_of
from ...fake_cluster import FakeCluster

SECONDARY = ("alpha", "beta", "gamma")
MISSPELT = {"score": {"enabled": [{"name": "ImageLocalty"}]}}


@pytest.fixture
def cluster() -> FakeCluster:
    """Three secondary schedulers with two profiles each, and three of the control plane's."""
    cluster = FakeCluster()
    for scheduler in SECONDARY:
        cluster.secondary(scheduler)
        for letter in "xy":
            cluster.profile(f"{scheduler}-{letter}", scheduler, percentageOfNodesToScore=10)
    for number in range(3):
        cluster.profile(f"team-{number}", percentageOfNodesToScore=10)
    cluster.settle()
    return cluster


def kinds(writes: list[str]) -> Counter[str]:
    """The writes, with hashes in names omitted."""
    return Counter(re.sub(r"-config-\w+$", "-config", one) for one in writes)


def test_an_idle_reconcile_writes_nothing(cluster: FakeCluster) -> None:
    for _ in range(3):
        plan = cluster.reconcile()
        assert (plan.actions, plan.reports, dict(plan.write_sets)) == ((), (), {})


def test_an_edited_profile_writes_only_to_its_scheduler(cluster: FakeCluster) -> None:
    cluster.profile("beta-x", "beta", percentageOfNodesToScore=20)
    assert kinds(cluster.settle()) == {
        "create ConfigMap beta-config": 1,
        "replace Deployment beta": 1,
        # At the start and at the end of the rollout.
        "replace status SchedulerProfile beta-x": 2,
        "replace status SecondaryScheduler beta": 2,
    }


def test_an_edited_scheduler_writes_only_its_own_objects(cluster: FakeCluster) -> None:
    cluster.secondary("beta", logLevel="Debug")
    assert kinds(cluster.settle()) == {
        "create ConfigMap beta-config": 1,
        "replace Deployment beta": 1,
        "replace status SecondaryScheduler beta": 2,
    }


def test_an_edited_control_plane_profile_writes_to_no_secondary_scheduler(
    cluster: FakeCluster,
) -> None:
    cluster.profile("team-1", percentageOfNodesToScore=20)
    assert kinds(cluster.settle()) == {
        "replace status SchedulerProfile team-1": 1,
        "replace KubeScheduler cluster": 1,  # spec.observedConfig
        "replace ConfigMap config": 1,
        "create ConfigMap revision-status-2": 1,
        "create ConfigMap config-2": 1,
        "create ConfigMap kube-scheduler-pod-2": 1,
        "replace ConfigMap revision-status-2": 1,  # complete
        "replace ConfigMap revision-status-1": 1,  # superseded: no node ever ran it
        "replace status KubeScheduler cluster": 2,  # the generation; the latest revision
    }


def test_an_invalid_profile_writes_only_statuses(cluster: FakeCluster) -> None:
    cluster.profile("beta-x", "beta", plugins=MISSPELT)
    assert kinds(cluster.settle()) == {
        "replace status SchedulerProfile beta-x": 1,
        "replace status KubeScheduler cluster": 1,
        "replace status ClusterOperator kube-scheduler": 1,
    }


def test_an_invalid_scheduler_runs_its_objects_as_before(cluster: FakeCluster) -> None:
    agent = {"policies": [{"name": "safe-overload", "arguments": {"utilization": 80}}]}
    cluster.extender("safe", scheduler="beta", agent=agent)
    cluster.settle()

    def conditions() -> list[tuple[str, str, str]]:
        attached = ((SCHEDULER_PROFILES, "beta-x"), (SCHEDULER_EXTENDERS, "safe"))
        types = (names.READY, names.RECONCILING, names.STALLED)
        return [condition_of(cluster.get(*one), type_) for one in attached for type_ in types]

    before = conditions()
    cluster.secondary("beta", profiles=[{"schedulerName": "beta", "plugins": MISSPELT}])
    cluster.settle()
    assert condition_of(cluster.get(SECONDARY_SCHEDULERS, "beta"), names.STALLED)[0] == "True"
    assert conditions() == before


def test_an_edit_without_effect_rolls_out_nothing(cluster: FakeCluster) -> None:
    cluster.profile("beta-x", "beta", percentageOfNodesToScore=10, plugins={})
    assert cluster.settle() == ["replace status SchedulerProfile beta-x"]


def test_a_deleted_scheduler_removes_only_its_own_objects(cluster: FakeCluster) -> None:
    gone = cluster.remove(SECONDARY_SCHEDULERS, "beta")
    assert len([one for one in gone if one.startswith("Pod beta-")]) == 2
    owned = {re.sub(r"-config-\w+$", "-config", one) for one in gone if "Pod " not in one}
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
    # No scheduler runs its profiles, which report it; nothing else changes.
    assert kinds(cluster.settle()) == {
        "replace status SchedulerProfile beta-x": 1,
        "replace status SchedulerProfile beta-y": 1,
        "replace status KubeScheduler cluster": 1,
        "replace status ClusterOperator kube-scheduler": 1,
    }
    assert {one["metadata"]["name"] for one in cluster.list(SECONDARY_SCHEDULERS)} == {
        "alpha", "gamma",
    }  # fmt: skip


# --- refusals by kube-scheduler ------------------------------------------------------------------


def accepted(cluster: FakeCluster, name: str) -> tuple[str, str, str]:
    return condition_of(cluster.get(SCHEDULER_PROFILES, name), names.ACCEPTED)


def refuse(
    cluster: FakeCluster, revision: int, words: str, outcome: str = names.OUTCOME_REFUSED
) -> None:
    marks = {names.OUTCOME_ANNOTATION: outcome, names.OUTCOME_MESSAGE_ANNOTATION: words}
    namespace = KUBEADM.target_namespace
    cluster.change(CONFIG_MAPS, f"revision-status-{revision}", namespace, annotations=marks)


WORDS = "profiles[2].percentageOfNodesToScore: Invalid value: 20: the message of kube-scheduler"


def test_a_refused_revision_is_attributed_to_its_profile(cluster: FakeCluster) -> None:
    cluster.profile("team-1", percentageOfNodesToScore=20)
    cluster.settle()
    refuse(cluster, 2, WORDS)
    writes = kinds(cluster.settle())
    assert writes["replace status SchedulerProfile team-1"] == 1
    # No node runs an earlier revision, so the refusal concerns those of the control plane.
    assert sum(count for one, count in writes.items() if "SchedulerProfile" in one) == 3
    assert accepted(cluster, "team-1") == (
        "False",
        "Refused",
        "spec.percentageOfNodesToScore: kube-scheduler refused revision 2; "
        "correct or revert this setting: "
        f"{WORDS}",
    )
    conditions = {
        one["type"]: one for one in cluster.get(KUBE_SCHEDULERS, "cluster")["status"]["conditions"]
    }
    assert conditions[names.PREFLIGHT_DEGRADED]["status"] == "True"
    assert conditions[names.SCHEDULER_PROFILES_DEGRADED]["status"] == "False", "reported once"
    assert cluster.settle() == []
    cluster.profile("team-1", percentageOfNodesToScore=30)
    cluster.settle()
    assert accepted(cluster, "team-1") == ("True", "Accepted", "")


def test_a_profile_of_a_refused_revision_is_not_reported_as_in_use(cluster: FakeCluster) -> None:
    """The error names no profile, so none is at fault; the others run in the revision before."""
    cluster.profile("team-1", percentageOfNodesToScore=20)
    cluster.settle()
    refuse(cluster, 2, "something broke")
    cluster.settle()
    status, reason, message = accepted(cluster, "team-1")
    assert (status, reason) == ("True", "Accepted")
    assert message == "kube-scheduler refused revision 2, which has this"
    assert accepted(cluster, "team-2") == ("True", "Accepted", "")
    assert cluster.settle() == []
    cluster.profile("team-1", percentageOfNodesToScore=30)
    cluster.settle()
    assert accepted(cluster, "team-1") == ("True", "Accepted", "")


def test_a_failed_revision_is_attributed_to_its_profile(cluster: FakeCluster) -> None:
    cluster.profile("team-2", percentageOfNodesToScore=20)
    cluster.settle()
    words = 'node "a": creating profile for scheduler name team-2: something broke'
    refuse(cluster, 2, words, names.OUTCOME_FAILED)
    cluster.settle()
    assert accepted(cluster, "team-2") == (
        "False",
        "Refused",
        "spec: kube-scheduler did not stay healthy with revision 2; "
        "correct or revert this setting: "
        f"{words}",
    )
