"""Figures of several runs, and their picture."""

from __future__ import annotations

import random
from typing import Any
from xml.etree import ElementTree

from kube_scheduler_operator.simulate.picture import Panel, ranked, svg
from kube_scheduler_operator.simulate.placements import (
    PlacementOutcome,
    Spread,
    distribution,
    interleaved,
    node_counts,
    queue_groups,
    spread,
)
from kube_scheduler_operator.simulate.scenario import Prepared
from kube_scheduler_operator.simulate.utilization import Utilization
from kube_scheduler_operator.simulate.world import World

from ... import builders

_SVG = "{http://www.w3.org/2000/svg}"


def outcome(placed: dict[str, str], cpu: dict[str, float]) -> PlacementOutcome:
    utilization = Utilization(
        {node: {"cpu": 1000.0} for node in cpu},
        {node: {"cpu": amount} for node, amount in cpu.items()},
        {node: int(amount > 0) for node, amount in cpu.items()},
    )
    return PlacementOutcome(placed=placed, utilization=utilization)


RUNS = [
    outcome({"x": "a", "y": "a"}, {"a": 900.0, "b": 0.0}),
    outcome({"x": "a", "y": "b"}, {"a": 400.0, "b": 500.0}),
    outcome({"x": "a", "y": "b"}, {"a": 600.0, "b": 300.0}),
]


def test_figures_have_a_median_and_a_range() -> None:
    found = distribution(RUNS)
    assert found["nodesUsed"] == Spread(1, 2, 2)
    assert found["fullestNodePercent"] == Spread(50, 60, 90)
    assert found["requestsPercent.cpu"] == Spread(45, 45, 45)
    assert spread([1, 2]) == Spread(1, 1.5, 2)


def test_nodes_are_listed_with_the_spread_of_their_pods_most_first() -> None:
    assert node_counts(RUNS) == {"a": Spread(1, 1, 2), "b": Spread(0, 1, 1)}


def test_nodes_are_compared_by_rank_because_ties_exchange_them() -> None:
    shares = [run.utilization.shares("cpu") for run in RUNS]
    assert ranked(shares) == [Spread(50, 60, 90), Spread(0, 30, 40)]


def test_a_picture_has_a_panel_for_each_configuration_and_a_bar_for_each_node() -> None:
    panels = [Panel("today", RUNS, [("nodes used", "2")]), Panel("a<b>&", RUNS[:1], [])]
    root = ElementTree.fromstring(svg("web & more", panels))
    texts = [each.text for each in root.iter(f"{_SVG}text")]
    assert {"today", "a<b>&", "3 runs", "1 run", "nodes used", "web & more"} <= set(texts)
    bars = [each for each in root.iter(f"{_SVG}rect") if each.get("fill") != "#ffffff"]
    assert len(bars) == 2 * 2
    heights = sorted(float(each.get("height", "")) for each in bars)
    assert heights == [0.0, 45.0, 90.0, 135.0]  # of 150: 0 %, 30 %, 60 %, 90 %


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
