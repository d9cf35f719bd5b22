"""When a simulation would have the result that it had before."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from kube_scheduler_operator.simulate.world import World, situation

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "shop", "uid": "1", "labels": {"app": "a"}},
    "spec": {"nodeName": "n", "containers": [{"name": "a", "image": "a:1"}]},
    "status": {"phase": "Running"},
}
NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n", "uid": "2"},
    "spec": {},
    "status": {"allocatable": {"cpu": "2"}, "conditions": [{"type": "Ready", "status": "True"}]},
}


def of(*objects: dict[str, Any], others: Any = None) -> str:
    world = World()
    for obj in objects:
        assert world.add(obj)
    return situation(world, others)


def changed(obj: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    result = deepcopy(obj)
    *parents, last = path.split(".")
    place = result
    for parent in parents:
        place = place.setdefault(parent, {})
    place[last] = value
    return result


def test_the_order_of_objects_does_not_count() -> None:
    other = changed(POD, "metadata.name", "b")
    assert of(POD, other, NODE) == of(NODE, other, POD)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.resourceVersion", "8"),
        ("metadata.annotations", {"checked": "now"}),
        ("status.conditions", [{"type": "PodScheduled", "status": "False", "message": "0/3"}]),
        ("status.podIP", "10.0.0.1"),
    ],
)
def test_what_no_filter_reads_of_a_pod_does_not_count(path: str, value: Any) -> None:
    assert of(changed(POD, path, value), NODE) == of(POD, NODE)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.resourceVersion", "8"),
        ("status.images", [{"names": ["a:1"], "sizeBytes": 1}]),
        (
            "status.conditions",
            [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}],
        ),
    ],
)
def test_what_no_filter_reads_of_a_node_does_not_count(path: str, value: Any) -> None:
    assert of(POD, changed(NODE, path, value)) == of(POD, NODE)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.uid", "9"),
        ("metadata.labels", {"app": "b"}),
        ("spec.nodeName", "m"),
        ("spec.tolerations", [{"operator": "Exists"}]),
    ],
)
def test_what_decides_about_a_pod_counts(path: str, value: Any) -> None:
    assert of(changed(POD, path, value), NODE) != of(POD, NODE)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.labels", {"zone": "a"}),
        ("spec.taints", [{"key": "a", "effect": "NoSchedule"}]),
        ("spec.unschedulable", True),
        ("status.allocatable", {"cpu": "4"}),
    ],
)
def test_what_decides_about_a_node_counts(path: str, value: Any) -> None:
    assert of(POD, changed(NODE, path, value)) != of(POD, NODE)


def test_a_pod_that_is_gone_counts() -> None:
    assert of(NODE) != of(POD, NODE)


def test_other_inputs_count() -> None:
    assert of(POD, others={"image": "a"}) != of(POD, others={"image": "b"})
    assert of(POD, others={"a": 1, "b": 2}) == of(POD, others={"b": 2, "a": 1})
