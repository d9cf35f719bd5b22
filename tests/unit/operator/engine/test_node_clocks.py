"""Differences between the clocks of nodes and the operator's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kube_scheduler_operator.base.times import rfc3339
from kube_scheduler_operator.kube.resource import NODES, PODS, SERVICES
from kube_scheduler_operator.operator.engine.node_clocks import NodeClocks, translated

from .... import builders

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Bench:
    def __init__(self) -> None:
        self.now = NOW
        self.calm = True
        self.clocks = NodeClocks(lambda: self.now, lambda: self.calm)

    def report(
        self, before: dict[str, Any] | None, skew: float, age: float = 0.0
    ) -> dict[str, Any]:
        """A kubelet writes a start that is `age` seconds old."""
        obj = pod(self.now + timedelta(seconds=skew - age))
        self.clocks.observe(PODS, before, obj)
        return obj

    @property
    def difference(self) -> float:
        return self.clocks.differences.get("a", timedelta()).total_seconds()


def pod(started: datetime) -> dict[str, Any]:
    state = {"running": {"startedAt": rfc3339(started)}}
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": rfc3339(started)}]
    status = {"containerStatuses": [{"name": "x", "state": state}], "conditions": conditions}
    metadata = {"name": "p", "creationTimestamp": rfc3339(NOW)}
    return {"metadata": metadata, "spec": {"nodeName": "a"}, "status": status}


def node(beat: datetime, status: str = "True") -> dict[str, Any]:
    times = dict.fromkeys(("lastHeartbeatTime", "lastTransitionTime"), rfc3339(beat))
    return builders.node("a", builders.condition("Ready", status, **times))


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.mark.parametrize("skew", [-1200.0, -560.0, -20.0, 20.0, 560.0])
def test_a_change_shows_the_difference(bench: Bench, skew: float) -> None:
    before = bench.report(None, skew, age=100.0)
    bench.report(before, skew)
    assert bench.difference == -skew


def test_small_differences_are_delays(bench: Bench) -> None:
    before = bench.report(None, 0.0, age=100.0)
    bench.report(before, 0.0, age=4.0)
    assert bench.difference == 0.0


def test_an_old_object_that_is_listed_shows_nothing(bench: Bench) -> None:
    bench.report(None, 0.0, age=3600.0)
    assert bench.difference == 0.0


def test_an_object_from_the_future_shows_a_difference_at_once(bench: Bench) -> None:
    bench.report(None, 560.0)
    assert bench.difference == -560.0


def test_what_an_outage_delayed_shows_nothing(bench: Bench) -> None:
    before = bench.report(None, 0.0, age=100.0)
    bench.calm = False
    bench.report(before, 0.0, age=60.0)
    assert bench.difference == 0.0


def test_the_shortest_delay_counts(bench: Bench) -> None:
    obj = bench.report(None, -560.0, age=100.0)
    for delay in (9.0, 0.0, 7.0):
        bench.now += timedelta(seconds=60)
        obj = bench.report(obj, -560.0, age=delay)
    assert bench.difference == 560.0


def test_a_clock_that_was_set_is_noticed_after_a_few_changes(bench: Bench) -> None:
    obj = bench.report(None, 0.0, age=100.0)
    for skew in (0.0, -1200.0, -1200.0, -1200.0, -1200.0):
        bench.now += timedelta(seconds=1300)
        obj = bench.report(obj, skew)
    assert bench.difference == 1200.0


def test_heartbeats_count_but_not_what_the_control_plane_writes(bench: Bench) -> None:
    old, new = NOW - timedelta(hours=1), NOW - timedelta(seconds=560)
    bench.clocks.observe(NODES, node(old), node(new, "Unknown"))
    assert bench.difference == 0.0
    bench.clocks.observe(NODES, node(old), node(new))
    assert bench.difference == 560.0
    bench.clocks.forget("a")
    assert bench.difference == 0.0


def test_other_kinds_have_no_node(bench: Bench) -> None:
    bench.clocks.observe(SERVICES, {"metadata": {"name": "a"}}, {"metadata": {"name": "a"}})
    assert bench.clocks.differences == {}


def test_times_of_the_kubelet_are_translated_and_no_others() -> None:
    obj = pod(NOW - timedelta(seconds=600))
    (found,) = translated(PODS, (obj,), {"a": timedelta(seconds=560)}, NOW)
    moment = rfc3339(NOW - timedelta(seconds=40))
    state = found["status"]["containerStatuses"][0]["state"]
    assert state["running"]["startedAt"] == moment
    assert found["status"]["conditions"][0]["lastTransitionTime"] == moment
    assert found["metadata"] == obj["metadata"]
    assert obj["status"]["containerStatuses"][0]["state"]["running"]["startedAt"] != moment


def test_no_time_is_in_the_future() -> None:
    (found,) = translated(NODES, (node(NOW),), {"a": timedelta(seconds=60)}, NOW)
    assert found["status"]["conditions"][0]["lastHeartbeatTime"] == rfc3339(NOW)


def test_what_the_control_plane_writes_about_a_silent_node_stays() -> None:
    silent = node(NOW - timedelta(seconds=60), "Unknown")
    (found,) = translated(NODES, (silent,), {"a": timedelta(seconds=30)}, NOW)
    assert found == silent
