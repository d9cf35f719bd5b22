"""Objects of a tenant displace no others from a simulation; those that are left out are counted."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from aiohttp import web

from kube_scheduler_operator.kube.api import LeftOut
from kube_scheduler_operator.kube.client import ApiClient
from kube_scheduler_operator.kube.resource import CONFIG_MAPS, NODES, PODS
from kube_scheduler_operator.simulate import read_cluster as reading
from kube_scheduler_operator.simulate.autoscaling_kinds import (
    AUTOSCALER_STATUS,
    MACHINE_DEPLOYMENTS,
    NODE_POOLS,
)
from kube_scheduler_operator.simulate.kinds import DAEMON_SETS, DEVICE_TAINT_RULES
from kube_scheduler_operator.simulate.kinds import RESOURCE_SLICES as SLICES
from kube_scheduler_operator.simulate.read_cluster import (
    not_simulated,
    read_cluster,
    read_nodes,
)
from kube_scheduler_operator.simulate.utilization import utilization_of
from kube_scheduler_operator.simulate.world import World

from ...new_nodes import node_pool
from ..kube.conftest import FakeApi, Handler
from ..kube.conftest import api as api

MOST = 100_000


def put(api: FakeApi, namespace: str, count: int, **spec: Any) -> None:
    for number in range(count):
        containers = [{"name": "c", "image": "i"}]
        api.put(PODS, f"p{number}", namespace, spec={"containers": containers, **spec})


async def read(api: FakeApi) -> World:
    async with ApiClient(api.credentials(), field_manager="me") as client:
        return await read_cluster(client, most=MOST)


def size(world: World) -> int:
    return sum(len(e.content) for entries in world.objects.values() for e in entries.values())


def count(world: World, namespace: str) -> int:
    return sum(key[0] == namespace for key in world.objects[PODS])


async def test_a_tenant_displaces_objects_of_its_own_namespace_only(api: FakeApi) -> None:
    tolerations = [{"key": f"example.com/{number}"} for number in range(100)]
    api.put(NODES, "n")
    for namespace in ("another", "zoo"):
        put(api, namespace, 20)
    put(api, "tenant", 200, tolerations=tolerations)
    world = await read(api)
    assert size(world) <= MOST
    assert (count(world, "another"), count(world, "zoo"), len(world.objects[NODES])) == (20, 20, 1)
    left = count(world, "tenant")
    assert 0 < left < 200
    assert world.notes == [
        f"{200 - left} objects of namespace tenant are not in the simulation: together, the "
        f"objects of the cluster have more than {MOST} bytes"
    ]


async def test_a_cluster_within_the_size_is_complete(api: FakeApi) -> None:
    put(api, "shop", 20)
    world = await read(api)
    assert (count(world, "shop"), world.notes) == (20, [])


async def test_the_newest_version_that_is_served_is_read(api: FakeApi) -> None:
    """An API server of 1.36 serves DeviceTaintRules in v1beta2, and no CompositePodGroups."""
    of_1_36 = replace(DEVICE_TAINT_RULES, version="v1beta2")
    api.served.add(of_1_36)
    api.put(of_1_36, "a", spec={"taint": {"key": "k", "effect": "NoExecute"}})
    world = await read(api)
    rule = world.get(DEVICE_TAINT_RULES, "a")
    assert rule is not None
    assert rule["apiVersion"] == "resource.k8s.io/v1"
    assert rule["spec"] == {"taint": {"key": "k", "effect": "NoExecute"}}
    assert world.notes == []


async def test_a_kind_that_is_not_served_needs_no_right(api: FakeApi) -> None:
    """The API server answers 403 before it looks for the kind."""
    api.served.add(SLICES)
    for kind in ("resourceslices", "podgroups"):
        api.fail(403, path=f"/{kind}", times=None, reason="Forbidden")
    world = await read(api)
    assert world.notes == [
        "you have no permission to list resourceslices.resource.k8s.io, so the simulation has none"
    ]


def test_an_object_that_is_read_again_counts_once() -> None:
    world = World()
    room = reading._Room(world, MOST)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}}
    for _ in range(MOST // len(json.dumps(pod)) + 100):
        room.add(PODS, pod)
    assert (len(world.objects[PODS]), list(room.notes())) == (1, [])


def test_thousands_of_objects_that_are_too_large_are_a_note_for_each_namespace() -> None:
    large = [LeftOut("Pod", "tenant", f"p{number}", "u", "more than x") for number in range(2000)]
    other = LeftOut("Pod", "shop", "web", "u", "more than 100000 values")
    assert list(not_simulated([*large, other])) == [
        "Pod tenant/p0 and 1999 more objects of this kind and namespace are not in the simulation: "
        "they are too large",
        "Pod shop/web is not in the simulation: it has more than 100000 values",
    ]


def test_utilization_keeps_the_resources_of_nodes_only() -> None:
    world = World()
    status = {"allocatable": {"cpu": "4", "pods": "9"}}
    world.add({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "status": status})
    requests = {"cpu": "1"} | {f"example.com/{number}": "1" for number in range(1000)}
    containers = [{"name": "c", "resources": {"requests": requests}}]
    spec = {"nodeName": "a", "containers": containers}
    world.add({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    assert utilization_of(world).requests == {"a": {"cpu": 1000.0}}


def _discovery(*plurals: str) -> Handler:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"resources": [{"name": plural} for plural in plurals]})

    return answer


async def _new_nodes(api: FakeApi) -> World:
    async with ApiClient(api.credentials(), field_manager="me") as client:
        return await read_cluster(client, new_nodes=True)


async def test_kinds_of_autoscalers_that_are_not_served_are_not_noted(api: FakeApi) -> None:
    api.put(NODES, "n")
    world = await _new_nodes(api)
    assert world.notes == []
    assert not any(seen.path.endswith("/daemonsets") for seen in api.seen)


async def test_kinds_of_autoscalers_are_read_on_request_only(api: FakeApi) -> None:
    api.put(NODES, "n")
    await read(api)
    assert not [
        seen.path for seen in api.seen if "karpenter" in seen.path or "cluster.x" in seen.path
    ]


async def test_node_pools_machines_and_daemon_sets_are_read(api: FakeApi) -> None:
    old = replace(MACHINE_DEPLOYMENTS, version="v1beta1")
    api.served |= {NODE_POOLS, old, DAEMON_SETS}
    api.put(NODES, "n")
    api.put(NODE_POOLS, "general", spec=node_pool()["spec"])
    api.put(old, "md", "clusters", spec={"replicas": 3})
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    api.put(DAEMON_SETS, "logs", "kube-system", spec={"template": template})
    world = await _new_nodes(api)
    assert [pool["metadata"]["name"] for pool in world.all(NODE_POOLS)] == ["general"]
    assert [one["spec"]["replicas"] for one in world.all(MACHINE_DEPLOYMENTS)] == [3]
    assert len(list(world.all(DAEMON_SETS))) == 1


async def test_the_status_of_cluster_autoscaler_is_read(api: FakeApi) -> None:
    api.put(NODES, "n")
    api.put(CONFIG_MAPS, "cluster-autoscaler-status", "kube-system", data={"status": "x: y"})
    world = await _new_nodes(api)
    (status,) = world.all(AUTOSCALER_STATUS)
    assert status["data"] == {"status": "x: y"}
    assert not any(seen.path.endswith("/configmaps") for seen in api.seen)


async def test_what_may_not_be_read_is_noted_if_it_exists(api: FakeApi) -> None:
    api.put(NODES, "n")
    api.fail(403, path="/nodepools", times=None)
    api.fail(403, path="/nodeclaims", times=None)
    api.fail(403, path="/machinesets", times=None)
    api.fail(403, path="/configmaps", times=None)
    api.routes["/apis/karpenter.sh/v1"] = _discovery("nodepools")
    world = await _new_nodes(api)
    assert world.notes == [
        "you have no permission to list nodepools.karpenter.sh, so the simulation has none"
    ]


async def test_the_status_of_cluster_autoscaler_matters_where_there_are_node_groups(
    api: FakeApi,
) -> None:
    api.put(NODES, "n", labels={"eks.amazonaws.com/nodegroup": "workers"})
    api.fail(403, path="/configmaps", times=None)
    api.served.add(DAEMON_SETS)
    assert ["configmaps" in note for note in (await _new_nodes(api)).notes] == [True]


async def test_what_is_left_out_of_the_answer_about_nodes_is_stated(api: FakeApi) -> None:
    async def version(_: web.Request) -> web.StreamResponse:
        return web.json_response({"gitVersion": "v1.35.4"})

    api.routes["/version"] = version
    api.put(NODES, "n")
    put(api, "tenant", 1000)
    async with ApiClient(api.credentials(), field_manager="me") as client:
        whole = await read_nodes(client, None)
        small = await read_nodes(client, "tenant", most=MOST)
    assert (whole.notes, whole.version, count(whole, "tenant")) == ([], "v1.35.4", 1000)
    assert count(small, "tenant") < 1000
    assert small.notes[-1] == "what these objects request is not counted, so less may be free"
