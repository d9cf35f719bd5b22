"""A step that raises an unexpected error becomes a condition, and the others do their work."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base import defects, names
from kube_scheduler_operator.base.bounded_cache import Recent
from kube_scheduler_operator.kube.resource import KUBE_SCHEDULERS, SECONDARY_SCHEDULERS
from kube_scheduler_operator.operator.controlplane import desired
from kube_scheduler_operator.operator.engine import reconcile as module
from kube_scheduler_operator.operator.engine.stages import FAILURES, Containment

from ...fake_cluster import FakeCluster


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster()
    cluster.profile("team", percentageOfNodesToScore=10)
    cluster.secondary("mine")
    cluster.settle()
    return cluster


STEPS = (
    "record platform",
    "find image",
    "reconcile secondary schedulers",
    "reconcile load policies",
    "diagnose",
    "adopt",
    "decide",
    "keep edits back",
    "run agents",
    "write observed config",
    "check upgrade",
    "fill revision",
    "check placements",
    "release edits",
    "revise",
    "roll out",
    "report",
)
"""The steps of a Managed KubeScheduler with static Pods."""


def break_step(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("x")

    class Breaking(Containment):
        def __call__(self, step: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
            function = broken if step == name else function
            return super().__call__(step, function, *args, **kwargs)

    monkeypatch.setattr(module, "Containment", Breaking)


def test_these_are_the_steps(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []

    class Listed(Containment):
        def __call__(self, step: Any, *args: Any, **kwargs: Any) -> Any:
            taken.append(step)
            return super().__call__(step, *args, **kwargs)

    monkeypatch.setattr(module, "Containment", Listed)
    cluster.reconcile()
    assert tuple(taken[: len(STEPS)]) == STEPS


def condition(cluster: FakeCluster, type_: str) -> Any:
    conditions = cluster.get(KUBE_SCHEDULERS, "cluster")["status"]["conditions"]
    return next(one for one in conditions if one["type"] == type_)


@pytest.mark.parametrize("name", STEPS)
def test_a_failed_step_is_reported_in_its_condition(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    break_step(monkeypatch, name)
    type_, _ = FAILURES[name]
    plan = cluster.reconcile()
    assert len(plan.failures) == 1
    cluster.settle()
    found = condition(cluster, type_)
    assert (found["status"], found["reason"]) == ("True", "OperatorError")
    assert f'step "{name}" failed: ZeroDivisionError: x' in found["message"]


@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_works_again_withdraws_its_condition(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with monkeypatch.context() as patch:
        break_step(patch, name)
        cluster.settle()
    cluster.settle()
    assert condition(cluster, FAILURES[name][0])["status"] == "False"
    assert cluster.reconcile().failures == ()


@pytest.mark.parametrize("name", STEPS)
def test_no_failed_step_changes_what_runs(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    break_step(monkeypatch, name)
    written = [one for one in cluster.settle() if "status" not in one]
    assert written == []


def test_what_is_observed_is_reported_while_a_step_fails(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The schedulers of this cluster have gone since the last whole report."""
    status = cluster.get(KUBE_SCHEDULERS, "cluster")["status"]
    available = {"type": names.STATIC_PODS_AVAILABLE, "status": "True"}
    others = [one for one in status["conditions"] if one["type"] != names.STATIC_PODS_AVAILABLE]
    status = {**status, "conditions": [*others, available]}
    cluster.change(KUBE_SCHEDULERS, "cluster", status=status)
    break_step(monkeypatch, "roll out")
    cluster.settle()
    assert condition(cluster, names.STATIC_PODS_AVAILABLE)["status"] == "False"


def test_secondary_schedulers_are_reconciled_while_a_step_of_the_control_plane_fails(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_step(monkeypatch, "decide")
    cluster.secondary("mine", logLevel="Debug")
    assert "replace Deployment mine" in cluster.settle()


def test_the_control_plane_is_reconciled_while_secondary_schedulers_fail(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_step(monkeypatch, "reconcile secondary schedulers")
    cluster.profile("team", percentageOfNodesToScore=20)
    assert "replace ConfigMap config" in cluster.settle()
    generation = cluster.get(SECONDARY_SCHEDULERS, "mine")["metadata"]["generation"]
    assert generation == 1


def test_an_error_is_logged_once_and_counted_each_time(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    counted: list[str] = []
    monkeypatch.setattr(defects, "_observers", [counted.append])
    monkeypatch.setattr(defects, "_logged", Recent[str, None](10))
    break_step(monkeypatch, "diagnose")
    for _ in range(3):
        cluster.reconcile()
    assert set(counted) == {"diagnose"}
    assert len(counted) >= 3
    (record,) = [one for one in caplog.records if "Defect" in one.message]
    assert record.exc_info is not None


def test_a_defect_in_facts_of_the_control_plane_stops_no_secondary_scheduler(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("x")

    monkeypatch.setattr(desired, "has_serving_certificate", broken)
    cluster.secondary("second")
    cluster.settle()
    assert condition(cluster, "TargetConfigControllerDegraded")["status"] == "True"
    assert cluster.get(SECONDARY_SCHEDULERS, "second")["status"]["observedGeneration"] == 1
