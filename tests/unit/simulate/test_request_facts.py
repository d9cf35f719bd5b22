"""Who asks for a resource, how much of it nodes have, and what makes a node have it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.simulate.constraint import Constraint, Rank
from kube_scheduler_operator.simulate.constraints import constraints_of
from kube_scheduler_operator.simulate.less import reduce_request, reduction
from kube_scheduler_operator.simulate.request_constraints import askers
from kube_scheduler_operator.simulate.world import World

Object = dict[str, Any]
GPU = "example.com/gpu"


def container(name: str, cpu: str = "", **fields: Any) -> Object:
    return {"name": name, "resources": {"requests": {"cpu": cpu} if cpu else {}}, **fields}


SIDECAR = container("proxy", "500m", restartPolicy="Always")


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"containers": [container("app", "2"), container("log")]}, "container app"),
        ({"containers": [container("small", "1"), container("big", "2")]},
         "container big (2), container small (1)"),
        ({"containers": [container("app", "2")], "initContainers": [SIDECAR]},
         "container app (2), sidecar proxy (500m)"),
        ({"containers": [container("app", "1")], "initContainers": [container("load", "3")]},
         "init container load"),
        ({"containers": [container("app", "3")], "initContainers": [container("load", "3")]},
         "container app"),
        # A sidecar runs while the init containers after it do, and not those before it.
        ({"containers": [container("app", "1")],
          "initContainers": [SIDECAR, container("load", "2"), container("small", "1")]},
         "init container load (2), sidecar proxy (500m)"),
        ({"containers": [container("app", "1")],
          "initContainers": [container("load", "1200m"), SIDECAR]},
         "container app (1), sidecar proxy (500m)"),
        ({"containers": [container("app", "1")], "resources": {"requests": {"cpu": "4"}}},
         "the Pod (spec.resources)"),
        ({"containers": [container("app", "1")], "overhead": {"cpu": "250m"},
          "runtimeClassName": "kata"}, "container app, RuntimeClass kata (250m)"),
        ({"containers": [container(name, "1") for name in "abcde"]},
         "container a (1), container b (1), container c (1), 2 more"),
    ],
)  # fmt: skip
def test_who_asks_is_named(spec: Object, text: str) -> None:
    assert askers(spec, "cpu") == text


def found_for(
    requests: Object,
    *allocatable: Object,
    cordoned: tuple[str, ...] = (),
    capacity: Object | None = None,
    nominated: str = "",
) -> Constraint:
    world = World()
    if nominated:
        world.add({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "w", "namespace": "n"},
            "spec": {"containers": []}, "status": {"nominatedNodeName": nominated},
        })  # fmt: skip
    for number, amounts in enumerate(allocatable):
        world.add({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{number}"},
            "spec": {"unschedulable": f"node-{number}" in cordoned},
            "status": {"allocatable": amounts, "capacity": capacity or amounts},
        })  # fmt: skip
    world.add({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "r", "namespace": "n"},
        "spec": {"nodeName": "node-0", "containers": [container("c", "1")]}, "status": {},
    })  # fmt: skip
    world.complete()
    spec = {"containers": [{"name": "app", "resources": {"requests": requests}}]}
    pod = {"metadata": {"name": "p", "namespace": "n"}, "spec": spec}
    (found,) = (each for each in constraints_of(pod, world) if each.family == "requests")
    return found


def test_one_sentence_has_the_most_that_a_node_with_too_little_has() -> None:
    found = found_for({"cpu": "3"}, {"cpu": "4"}, {"cpu": "2500m"}, {"cpu": "8"})
    assert found.on is not None
    assert found.on("node-0") == (
        "less than 3 of cpu is free, requested by container app; of all nodes with too "
        "little, node-1 has most free: 2500m of 2500m"
    )
    assert found.on("node-1") == found.on("node-0")
    assert list(found.repairs()) == []


@pytest.mark.parametrize(
    ("named", "resource"),
    [(GPU, GPU), ("", "deviceclass.resource.kubernetes.io/gpu")],
    ids=["named", "of each class"],
)
def test_a_class_that_serves_a_resource_only_with_a_gate_is_named(
    named: str, resource: str
) -> None:
    world = World()
    spec = {"extendedResourceName": named} if named else {}
    slice_: Object = {"driver": "d", "nodeName": "a", "pool": {"name": "a", "generation": 1}}
    for kind, name, version, content in (
        ("DeviceClass", "gpu", "resource.k8s.io/v1", {"spec": spec}),
        ("ResourceSlice", "s", "resource.k8s.io/v1", {"spec": {**slice_, "devices": []}}),
        ("Node", "a", "v1", {"spec": {}, "status": {"allocatable": {"cpu": "1"}}}),
        ("Node", "b", "v1", {"spec": {}, "status": {"allocatable": {"cpu": "1"}}}),
    ):
        world.add({"apiVersion": version, "kind": kind, "metadata": {"name": name}, **content})
    world.complete()
    asking = {"containers": [{"name": "app", "resources": {"requests": {resource: "1"}}}]}
    pod = {"metadata": {"name": "p", "namespace": "n"}, "spec": asking}

    def found(**explicit: bool) -> Constraint:
        gates = Gates(Version(1, 35), explicit)
        every = constraints_of(pod, world, gates)
        return next(each for each in every if each.family == "requests")

    off = found()
    assert off.on is not None
    assert off.on("a").endswith(
        "requested by container app; DeviceClass gpu serves it only with the feature gate "
        "DRAExtendedResource, which is off by default in kube-scheduler 1.35"
    )
    (repair,) = off.repairs()
    assert repair.text == (
        "enable the feature gate DRAExtendedResource of kube-apiserver, kube-scheduler and kubelet"
    )
    assert [node for node in "ab" if repair.only is not None and repair.only(node)] == ["a"]
    on = found(DRAExtendedResource=True)
    assert on.on is not None
    assert "DeviceClass" not in on.on("a")


@pytest.mark.parametrize(
    ("resource", "advice"),
    [
        (GPU, f"make the device plugin of {GPU} run on a node: no node has {GPU}"),
        ("hugepages-1Gi", "reserve huge pages of 1Gi on a node and restart its kubelet: no node "
         "has hugepages-1Gi"),
    ],
)  # fmt: skip
def test_a_resource_that_no_node_has_is_to_be_provided_first(resource: str, advice: str) -> None:
    found = found_for({resource: "1Gi"}, {"cpu": "4"})
    assert found.on is not None
    assert found.on("node-0").startswith(f"no node has {resource}, of which 1")
    assert found.on("node-0").endswith(" is requested by container app")
    (repair,) = found.repairs()
    assert (repair.text, repair.rank) == (advice, Rank.MEND)
    assert list(found_for({resource: "2Gi"}, {resource: "1Gi"}).repairs()) == []


SHARED = "example.com/gpu.shared"


@pytest.mark.parametrize(
    ("listed", "first"),
    [
        ({SHARED: "16"}, f"request {SHARED} instead of {GPU}"),
        ({SHARED: "16", GPU: "0"}, f"request {SHARED} instead of {GPU}"),
        ({GPU: "0"}, f"see why the device plugin on node-0 provides 0 of {GPU}"),
        ({"other.example/gpu": "1"}, f"make the device plugin of {GPU} run on a node: no node has"),
    ],
)
def test_a_device_plugin_that_runs_is_not_to_be_started(listed: Object, first: str) -> None:
    repairs = sorted(found_for({GPU: "1"}, listed).repairs(), key=lambda repair: repair.rank)
    assert repairs[0].text.startswith(first)
    if SHARED in listed:
        changed: Object = {"spec": {"containers": [{"resources": {"limits": {GPU: "2"}}}]}}
        (renamed,) = (repair for repair in repairs if repair.text.startswith("request"))
        renamed.change(changed)
        assert changed["spec"]["containers"][0]["resources"]["limits"] == {SHARED: "2"}


def test_devices_that_a_node_has_and_does_not_offer_are_counted() -> None:
    found = found_for({GPU: "1"}, {GPU: "0"}, capacity={GPU: "4"})
    (repair,) = found.repairs()
    assert repair.text == (
        f"see why the device plugin on node-0 provides 0 of {GPU}; the node's capacity is 4, so "
        "the plugin does not run or reports its devices as unhealthy"
    )


def test_huge_pages_of_cordoned_nodes_are_named() -> None:
    pages = "hugepages-2Mi"
    found = found_for({pages: "2Mi"}, {pages: "4Mi"}, {pages: "0"}, cordoned=("node-0",))
    (repair,) = found.repairs()
    assert repair.text.endswith(f"only node-0, which is cordoned, has {pages}")


def test_a_node_that_has_none_of_a_resource_is_not_one_that_has_used_it_up() -> None:
    found = found_for({GPU: "2"}, {GPU: "1"}, {"cpu": "4"})
    assert found.on is not None
    assert found.on("node-0") == (
        f"less than 2 of {GPU} is free, requested by container app; of all nodes with too little, "
        "node-0 has most free: 1 of 1"
    )
    assert found.on("node-1") == f"the node has no {GPU}, of which 2 is requested by container app"


@pytest.mark.parametrize(
    ("spec", "to", "text"),
    [
        ({"containers": [container("app", "2")]}, 500, "request 500m of cpu instead of 2"),
        ({"containers": [container("app", "3")], "overhead": {"cpu": "1"}}, 2000,
         "request 1 of cpu instead of 3 in container app"),
        ({"containers": [container("app", "30m")], "initContainers": [container("load", "3")]},
         620, "request 620m of cpu instead of 3 in init container load"),
        ({"containers": [container("app", "1"), container("log", "1")]}, 1500,
         "request 500m of cpu instead of 1 in container log"),
    ],
)  # fmt: skip
def test_a_smaller_request_is_that_of_the_container_whose_field_is_edited(
    spec: Object, to: float, text: str
) -> None:
    changed = copy.deepcopy(spec)
    assert reduce_request(changed, "cpu", to)
    assert reduction(spec, changed, "cpu") == text


def test_room_that_nominated_pods_hold_is_named() -> None:
    found = found_for({"cpu": "2"}, {"cpu": "4"}, nominated="node-0")
    assert found.on is not None
    assert found.on("node-0").endswith("; pods that are nominated to nodes hold room there")
