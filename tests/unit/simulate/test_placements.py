"""Figures of several runs."""

from __future__ import annotations

import random
from typing import Any

from kube_scheduler_operator.simulate.placements import (
    Spread,
    distribution,
    interleaved,
    node_counts,
    queue_groups,
    spread,
)
from kube_scheduler_operator.simulate.scenario import Prepared
from kube_scheduler_operator.simulate.world import World

from ... import builders
from .outcomes import RUNS


def test_figures_have_a_median_and_a_range() -> None:
    found = distribution(RUNS)
    assert found["nodesUsed"] == Spread(1, 2, 2)
    assert found["fullestNodePercent"] == Spread(50, 60, 90)
    assert found["requestsPercent.cpu"] == Spread(45, 45, 45)
    assert spread([1, 2]) == Spread(1, 1.5, 2)


def test_nodes_are_listed_with_the_spread_of_their_pods_most_first() -> None:
    assert node_counts(RUNS) == {"a": Spread(1, 1, 2), "b": Spread(0, 1, 1)}


def _pod(name: str, owner: str, kind: str = "ReplicaSet", **metadata: str) -> dict[str, Any]:
    owned = builders.controlled_by(kind, owner)
    return builders.pod(name, namespace="shop", metadata={**owned, **metadata})


def test_new_pods_come_in_the_growing_batches_of_their_controllers() -> None:
    waiting = [_pod(f"w{at}", "old", creationTimestamp="2026-01-01T00:00:00Z") for at in range(3)]
    first = [_pod(f"a{at}", "a") for at in range(10)]
    second = [_pod(f"b{at}", "b") for at in range(10)]
    third = [_pod(f"c{at}", "c", "StatefulSet") for at in range(4)]
    pods = [*waiting, *first, *second, *third]
    orders = [interleaved(pods, random.Random(number)) for number in range(5)]
    for order in orders:
        assert order[:3] == waiting
        for own in (first, second, third):
            assert [pod for pod in order if pod in own] == own
        names = "".join(pod["metadata"]["name"][0] for pod in order[3:])
        begin, rest = names[:3], names[3:]
        assert sorted(begin) == ["a", "b", "c"], "one each"
        assert sorted(rest[:5]) == ["a", "a", "b", "b", "c"], "two, or the next of a StatefulSet"
        assert sorted(rest[5:14]) == [*"aaaabbbbc"]
        assert {"aaaa", "bbbb"} <= {rest[at : at + 4] for at in range(5, 11)}
    assert orders[0] != orders[1]
    assert interleaved(pods, random.Random(0)) == orders[0]


def test_new_pods_are_alone_in_the_queue_and_waiting_ones_together() -> None:
    waiting = [_pod(f"w{at}", "old", creationTimestamp="2026-01-01T00:00:00Z") for at in range(3)]
    new = [_pod(f"a{at}", "a") for at in range(3)]

    def groups(*pods: dict[str, Any], in_order: bool = False) -> list[list[str]]:
        prepared = Prepared(World(), list(pods), set(), in_order=in_order)
        return [[pod["metadata"]["name"] for pod in group] for group in queue_groups(prepared)]

    assert groups(*waiting, *new) == [["w0", "w1", "w2"], ["a0"], ["a1"], ["a2"]]
    assert groups() == []
    important = {**new[0], "spec": {"priority": 10}}
    assert groups(*waiting, important, new[1]) == [["w0", "w1", "w2", "a0", "a1"]]
    gang = [{**pod, "spec": {"workloadRef": {"name": "a", "podGroup": "g"}}} for pod in new]
    assert groups(*gang) == [["a0", "a1", "a2"]]
    assert groups(important, *new[1:], in_order=True) == [["a0"], ["a1", "a2"]]
    many = [_pod(f"m{at}", "m") for at in range(1001)]
    assert len(groups(*many)) == 1
