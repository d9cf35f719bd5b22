"""The node view follows the API."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest

from kube_scheduler_operator.base.backoff import NO_RETRIES, Backoff
from kube_scheduler_operator.kube.client import ApiClient, Patience
from kube_scheduler_operator.kube.reflector import ReflectorTuning
from kube_scheduler_operator.kube.resource import CONFIG_MAPS, NODES, PODS
from kube_scheduler_operator.scheduling.extender.cluster_feed import BOUND, ClusterFeed
from kube_scheduler_operator.scheduling.policies.cluster import Cluster

from ...kube.conftest import FakeApi
from ...kube.conftest import api as api

QUICK = ReflectorTuning(batch=0.002, backoff=Backoff.exponential(0.01, 0.05), page=2)


class World:
    def __init__(self, api: FakeApi) -> None:
        self.api = api
        self.cluster = Cluster(lambda: 0.0)
        self.reported: list[tuple[str, str, Mapping[str, str] | None]] = []
        self.view: ClusterFeed

    def bind(self, name: str, node: str, **status: Any) -> None:
        container = {"name": "c", "resources": {"requests": {"cpu": "500m"}}}
        spec = {"nodeName": node, "containers": [container]}
        self.api.put(PODS, name, "shop", spec=spec, status=status)

    def requested(self, node: str) -> float:
        index = self.cluster.index.get(node)
        return -1.0 if index is None else self.cluster.requested("cpu")[index]


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - there is nothing to wait for
            await asyncio.sleep(0.002)


@pytest.fixture(params=["json", "protobuf"])
async def world(
    request: pytest.FixtureRequest, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[World]:
    api.protobuf = request.param == "protobuf"
    # The API that is played here knows `=` alone, and the cluster sorts out the rest by itself.
    monkeypatch.setattr("kube_scheduler_operator.scheduling.extender.cluster_feed.BOUND", "")
    made = World(api)
    for number in range(5):
        api.put(NODES, f"n{number}", status={"allocatable": {"cpu": "4"}})
    made.bind("p", "n0")
    api.put(PODS, "pending", "shop", spec={"containers": []})
    async with ApiClient(
        api.credentials(), field_manager="test", patience=Patience(backoff=NO_RETRIES)
    ) as client:
        made.view = ClusterFeed(
            made.cluster,
            client,
            lambda *reported: made.reported.append(reported),
            pace=QUICK,
        )
        task = asyncio.create_task(made.view.run())
        yield made
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def test_only_bound_and_unfinished_pods_are_watched() -> None:
    assert BOUND == "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"


async def test_nodes_and_bound_pods_are_listed(world: World) -> None:
    assert not any(one.state.synced for one in world.view.watched())
    await asyncio.wait_for(world.view.synced(), 20)
    assert sorted(world.cluster.index) == [f"n{number}" for number in range(5)]
    assert world.requested("n0") == 500.0
    assert len(world.cluster.pod_keys()) == 1
    nodes, pods = world.view.watched()
    assert (nodes.resource, nodes.state.synced, nodes.state.lists) == (NODES, True, 1)
    assert (pods.resource, pods.state.synced) == (PODS, True)


async def test_events_update_the_view(world: World) -> None:
    await asyncio.wait_for(world.view.synced(), 20)
    await world.api.until_watched(NODES)
    await world.api.until_watched(PODS)
    world.bind("q", "n1")
    world.bind("p", "n0", phase="Succeeded")
    world.api.remove(NODES, "n4")
    await until(lambda: world.requested("n1") == 500.0 and "n4" not in world.cluster.index)
    await until(lambda: world.requested("n0") == 0.0)
    world.api.remove(PODS, "q", "shop")
    await until(lambda: world.requested("n1") == 0.0)
    assert not world.cluster.pod_keys()


async def test_a_relist_removes_deleted_objects(world: World) -> None:
    await asyncio.wait_for(world.view.synced(), 20)
    await world.api.until_watched(NODES)
    await world.api.stop()
    world.api.remove(NODES, "n3")
    world.api.remove(PODS, "p", "shop")
    world.bind("r", "n2")
    world.api.lose_history()
    await world.api.start()
    await until(lambda: world.requested("n2") == 500.0 and "n3" not in world.cluster.index)
    await until(lambda: world.requested("n0") == 0.0)


async def test_config_maps_are_watched_while_they_are_needed(world: World) -> None:
    await world.view.watch_config_maps([("ns", "state")])
    await world.api.until_watched(CONFIG_MAPS)
    world.api.put(CONFIG_MAPS, "state", "ns", data={"a": "1"})
    world.api.put(CONFIG_MAPS, "other", "ns", data={"a": "2"})
    await until(lambda: world.reported)
    world.api.remove(CONFIG_MAPS, "state", "ns")
    await until(lambda: len(world.reported) == 2)
    assert world.reported == [("ns", "state", {"a": "1"}), ("ns", "state", None)]
    await world.view.watch_config_maps([])
    world.api.put(CONFIG_MAPS, "state", "ns", data={"a": "3"})
    world.bind("last", "n1")
    await until(lambda: world.requested("n1") == 500.0)
    assert len(world.reported) == 2


async def test_pods_are_watched_while_a_policy_needs_them(world: World) -> None:
    await asyncio.wait_for(world.view.synced(), 20)
    await world.view.watch_pods(False)
    assert not world.cluster.pod_keys()
    assert [one.resource for one in world.view.watched()] == [NODES]
    world.bind("q", "n1")
    world.api.put(NODES, "n5", status={"allocatable": {"cpu": "4"}})
    await until(lambda: "n5" in world.cluster.index)
    assert world.requested("n1") == 0.0
    await world.view.watch_pods(True)
    await asyncio.wait_for(world.view.synced(), 20)
    assert (world.requested("n0"), world.requested("n1")) == (500.0, 500.0)
