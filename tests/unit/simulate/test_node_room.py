"""What nodes have free is what kube-scheduler counts; fragmentation is what a shape cannot use."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from kube_scheduler_operator.base.decoding import FirstProblem, decode
from kube_scheduler_operator.base.field_types import document_of, type_of
from kube_scheduler_operator.base.names import LOAD_ANNOTATION
from kube_scheduler_operator.scheduling.annotator.annotation import own
from kube_scheduler_operator.scheduling.annotator.measurement import KEYS, UNKNOWN, Load
from kube_scheduler_operator.simulate.fragmentation import fragmentation
from kube_scheduler_operator.simulate.node_answer import (
    BiggestPod,
    NodesAnswer,
    NodeUse,
    Partition,
    ResourceUse,
)
from kube_scheduler_operator.simulate.node_room import nodes_answer
from kube_scheduler_operator.simulate.world import World

Object = dict[str, Any]
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
GI = 2**30


def node(name: str, cpu: str = "4", *, ready: str = "True", **fields: Any) -> Object:
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "10", **fields.pop("more", {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, **fields.pop("metadata", {})},
        "spec": fields,
        "status": {
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def pod(name: str, node: str, cpu: str, memory: str = "1Gi", **fields: Any) -> Object:
    requests = {"cpu": cpu, "memory": memory, **fields.pop("more", {})}
    spec = {"containers": [{"name": "main", "resources": {"requests": requests}}]}
    if node:
        spec["nodeName"] = node  # type: ignore[assignment]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "app", **fields.pop("metadata", {})},
        "spec": {**spec, **fields.pop("spec", {})},
        "status": {"phase": "Running", **fields},
    }


def answer(*objects: Object, **asked: Any) -> NodesAnswer:
    world = World(annotations=True)
    for obj in objects:
        world.add(obj)
    return nodes_answer(world, NOW, **asked)


def of(found: NodesAnswer, name: str) -> NodeUse:
    return next(one for one in found.nodes if one.name == name)


def cpu(found: NodesAnswer, name: str = "n") -> ResourceUse:
    return of(found, name).resources["cpu"]


# --- what counts ----------------------------------------------------------------------------------


def test_requests_overhead_init_containers_and_the_number_of_pods_count() -> None:
    large = {"name": "i", "resources": {"requests": {"cpu": "2"}}}
    made = pod("p", "n", "1", spec={"initContainers": [large], "overhead": {"cpu": "500m"}})
    made["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = "1"
    found = answer(
        node("n", more={"example.com/gpu": "2"}), made, pod("done", "n", "1", phase="Failed")
    )
    resources = of(found, "n").resources
    assert resources["cpu"] == ResourceUse(4000, 2500, 0, 0, 1500)
    assert resources["memory"].free == 7 * GI
    assert resources["pods"] == ResourceUse(10, 1, 0, 0, 9)
    assert resources["example.com/gpu"] == ResourceUse(2, 1, 0, 0, 1)
    assert list(resources)[:3] == ["cpu", "memory", "pods"]


def test_a_pod_that_terminates_counts_until_it_is_gone() -> None:
    leaving = {"deletionTimestamp": "2026-01-01T12:00:00Z"}
    found = answer(node("n"), pod("p", "n", "1", metadata=leaving), pod("q", "n", "500m"))
    assert cpu(found) == ResourceUse(4000, 1500, 0, 1000, 2500)
    assert of(found, "n").resources["pods"] == ResourceUse(10, 2, 0, 1, 8)


def test_a_resize_counts_with_the_most_that_the_pod_may_hold() -> None:
    resizing = {"type": "PodResizeInProgress", "status": "True"}
    status = {
        "name": "main",
        "allocatedResources": {"cpu": "3", "memory": "1Gi"},
        "resources": {"requests": {"cpu": "3", "memory": "1Gi"}},
    }
    resized = pod("p", "n", "1", conditions=[resizing], containerStatuses=[status])
    found = answer(node("n"), resized)
    assert cpu(found) == ResourceUse(4000, 3000, 0, 2000, 1000)
    assert of(found, "n").resources["pods"].leaving == 0


@pytest.mark.parametrize(
    ("fields", "version", "counts"),
    [
        ({}, "v1.35.4", True),
        ({"metadata": {"deletionTimestamp": "2026-01-01T12:00:00Z"}}, "v1.35.4", False),
        ({"spec": {"schedulingGates": [{"name": "example.com/wait"}]}}, "v1.36.3", False),
        ({"spec": {"schedulingGates": [{"name": "example.com/wait"}]}}, "v1.37.2", True),
    ],
)
def test_a_nominated_pod_counts_where_kube_scheduler_keeps_its_room(
    fields: dict[str, Any], version: str, counts: bool
) -> None:
    world = World(version=version)
    world.add(node("n"))
    world.add(pod("p", "", "1", phase="Pending", nominatedNodeName="n", **fields))
    found = nodes_answer(world, NOW)
    held = 1000 if counts else 0
    assert cpu(found) == ResourceUse(4000, 0, held, 0, 4000 - held)


def test_what_is_overcommitted_is_not_free_and_takes_nothing_from_others() -> None:
    found = answer(node("n", "1"), node("m", "1"), pod("p", "n", "3"))
    assert (cpu(found).free, cpu(found).percent) == (0, 300.0)
    assert found.partitions[0].resources["cpu"].free == 1000


# --- states, taints, load -------------------------------------------------------------------------


def taint(key: str, effect: str = "NoSchedule", **value: str) -> Object:
    return {"key": key, "effect": effect, **value}


def test_the_worst_nodes_come_first() -> None:
    found = answer(
        node("b"),
        node("a", "1"),
        node("tainted", taints=[taint("gpu", value="true")]),
        node("cordoned", unschedulable=True),
        node("lost", ready="Unknown"),
        pod("p", "b", "3"),
    )
    order = [(one.name, one.state) for one in found.nodes]
    assert order == [
        ("lost", "not ready"),
        ("cordoned", "unschedulable"),
        ("b", "open"),
        ("a", "open"),
        ("tainted", "tainted"),
    ]
    assert found.states == {"not ready": 1, "unschedulable": 1, "tainted": 1, "open": 2}


def test_nodes_are_sorted_as_asked() -> None:
    def sorted_by(sort: str, **asked: Any) -> list[str]:
        objects = (node("a"), node("b"), node("c"), pod("p", "b", "2"), pod("q", "c", "1", "5Gi"))
        return [one.name for one in answer(*objects, sort=sort, **asked).nodes]

    assert sorted_by("cpu") == ["b", "c", "a"]
    assert sorted_by("memory") == ["c", "b", "a"]
    assert sorted_by("name") == sorted_by("load") == ["a", "b", "c"]
    assert sorted_by("fits", shape={"cpu": 1000, "memory": GI}) == ["b", "c", "a"]


def test_nodes_with_the_same_taints_are_counted_together() -> None:
    gpu = [taint("gpu", value="true"), taint("soft", "PreferNoSchedule")]
    found = answer(
        node("a"), node("b", taints=gpu), node("c", taints=[taint("gpu", value="true")]),
        node("d", unschedulable=True), shape={"cpu": 3000},
    )  # fmt: skip
    assert [(one.taints, one.nodes, one.fits) for one in found.partitions] == [
        ((), 1, 1),
        (("gpu=true:NoSchedule",), 2, 2),
    ]
    assert of(found, "b").taints == ("gpu=true:NoSchedule", "soft:PreferNoSchedule")
    assert (found.fits, of(found, "b").fits, of(found, "d").fits) == (1, 1, 0)


def test_the_load_is_that_of_the_annotation_with_its_age() -> None:
    values = {"cpu_usage_avg_5m": 0.42}
    load = Load(NOW.timestamp() - 90, "NodeMetrics", tuple(values.get(k, UNKNOWN) for k in KEYS))
    found = answer(
        node("a", metadata={"annotations": own(load)}),
        node("b", metadata={"annotations": {LOAD_ANNOTATION: "broken"}}),
    )
    measured = of(found, "a").load
    assert measured is not None
    assert (measured.cpu, measured.memory, measured.age) == (0.42, None, 90)
    assert (measured.measured, measured.source) == ("2026-01-01T11:58:30Z", "NodeMetrics")
    assert measured.metrics == values
    assert of(found, "b").load is None


# --- what fits ------------------------------------------------------------------------------------


def open_partition(*objects: Object, **asked: Any) -> Partition:
    (partition,) = answer(*objects, **asked).partitions
    return partition


def test_the_biggest_pod_is_on_one_node() -> None:
    found = open_partition(node("a"), node("b"), pod("p", "a", "1", "6Gi"), pod("q", "b", "3"))
    assert found.biggest_by_cpu == BiggestPod("a", 3000, 2 * GI)
    assert found.biggest_by_memory == BiggestPod("b", 1000, 7 * GI)


def test_no_pod_fits_on_a_node_that_has_as_many_as_it_takes() -> None:
    found = open_partition(node("a", more={"pods": "1"}), pod("p", "a", "1"), shape={"cpu": 100})
    assert (found.biggest_by_cpu, found.biggest_by_memory, found.fits) == (None, None, 0)


@pytest.mark.parametrize(
    ("shape", "fits"),
    [
        ({"cpu": 1500}, 2),
        ({"cpu": 1000, "memory": 5 * GI}, 1),
        ({"cpu": 1, "example.com/gpu": 1}, 0),
        ({"cpu": 1}, 10),  # as many as the node takes
    ],
)
def test_a_shape_fits_as_often_as_its_scarcest_resource_allows(
    shape: dict[str, int], fits: int
) -> None:
    assert answer(node("a"), shape=shape).fits == fits


def test_fragmentation_is_the_share_of_what_is_free_that_a_shape_cannot_use() -> None:
    free = [{"cpu": 1500, "memory": 8 * GI, "pods": 5}, {"cpu": 500, "memory": 8 * GI, "pods": 5}]
    found = fragmentation(free, {(("cpu", 1000), ("memory", 2 * GI)): 1})
    assert found.shapes[0].fits == 1
    assert found.unusable == {"cpu": 0.5, "memory": 0.875}


def test_fragmentation_of_a_workload_is_the_mean_over_its_pods() -> None:
    free = [{"cpu": 1500, "pods": 5}]
    small, large = (("cpu", 500),), (("cpu", 2000),)
    assert fragmentation(free, {small: 3, large: 1}).unusable == {"cpu": 0.25}


def test_pods_of_daemon_sets_do_not_make_a_shape_of_the_workload() -> None:
    owner = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "name": "d",
        "uid": "d",
        "controller": True,
    }
    daemon = pod("d", "a", "100m", metadata={"ownerReferences": [owner]})
    assert open_partition(node("a"), daemon).fragmentation is None
    found = open_partition(node("a"), daemon, pod("p", "a", "1")).fragmentation
    assert found is not None
    assert [room.requests for room in found.shapes] == [{"cpu": 1000, "memory": GI}]
    assert found.covered == 1.0


def test_the_shapes_of_many_workloads_are_bounded() -> None:
    pods = [pod(f"p{at}", "a", f"{at + 1}m") for at in range(30)]
    found = open_partition(node("a"), *pods).fragmentation
    assert found is not None
    assert len(found.shapes) == 20
    assert found.covered == 0.6667


# --- what is not known ----------------------------------------------------------------------------


def test_the_pods_of_one_namespace_say_nothing_about_what_is_free() -> None:
    other = pod("q", "n", "1")
    other["metadata"]["namespace"] = "other"
    found = answer(node("n"), pod("p", "n", "1"), other, namespace="app", shape={"cpu": 1})
    assert cpu(found) == ResourceUse(4000, 1000, 0, 0, None)
    (partition,) = found.partitions
    assert (found.fits, partition.fits, partition.biggest_by_cpu, partition.fragmentation) == (
        None, None, None, None,
    )  # fmt: skip
    assert found.notes == [
        "the Pods of namespace app alone are counted: what others request is not known, nor what "
        "is free, the biggest Pod, what fits, and fragmentation"
    ]


def test_names_of_strangers_are_one_line_and_bounded() -> None:
    bad = "a\nerror: forged" + "x" * 1000
    labels = {"topology.kubernetes.io/zone": bad}
    found = answer(
        node(bad, metadata={"labels": labels}, taints=[taint(bad)] * 500, more={bad: "1"}),
        pod("p", bad, "1", more={bad: "1"}),
    )
    (one,) = found.nodes
    assert "\n" not in json.dumps(document_of(found))
    texts = [one.name, one.zone, *one.resources]
    assert all(len(text) <= 253 for text in texts)
    assert len(one.taints) == 100
    assert one.state == "tainted"
    assert found.partitions[0].biggest_by_cpu is not None


def test_the_document_of_nodes_has_all_of_the_answer() -> None:
    found = answer(node("n"), pod("p", "n", "1"), shape={"cpu": 500})
    document = json.loads(json.dumps(document_of(found)))
    run = FirstProblem(ignore_unknown=True)
    assert decode(type_of(NodesAnswer), document, run=run) == found
    assert document["nodes"][0]["resources"]["cpu"]["percent"] == 25.0
    assert (document["fits"], document["nodes"][0]["state"]) == (6, "open")
