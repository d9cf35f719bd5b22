"""`simulate -f` over files and without the right to create pods: admission counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.config.language.schema import DEFAULT_SCHEDULER
from kube_scheduler_operator.kube.resource import NODES, PODS
from kube_scheduler_operator.simulate.kinds import QUOTAS

from ..conftest import Cluster
from .simulated_world import World

Object = dict[str, Any]


@pytest.fixture
def world(cluster: Cluster, tmp_path: Path) -> World:
    return World(cluster, tmp_path)


def obj(kind: str, version: str = "v1", **fields: Any) -> Object:
    metadata = {"name": "x", "namespace": "shop"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def quota(**hard: str) -> Object:
    return obj("ResourceQuota", spec={"hard": hard}, status={"hard": hard, "used": {}})


async def simulate(world: World, *objects: Object, flags: tuple[str, ...] = ()) -> tuple[int, Any]:
    """Two pods of 500m on two nodes with 2 CPUs; others request 2.5."""
    nodes = world.cluster.api.objects[NODES].values()
    listed = [{**node, "apiVersion": "v1", "kind": "Node"} for node in nodes]
    file = world.folder / "cluster.json"
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [*listed, *objects]}))
    workload = world.workload(DEFAULT_SCHEDULER)
    command = ("simulate", "-f", workload, "--from-files", str(file), "--repeat", "1")
    return await world.answer(*command, *flags)


async def test_kinds_of_admission_that_files_do_not_have_are_named(world: World) -> None:
    code, found = await simulate(world)
    assert (code, found["refused"]) == (0, [])
    (note,) = (note for note in found["notes"] if note.startswith("admission"))
    assert note == (
        "admission of new pods: the files have no LimitRange, ResourceQuota, RuntimeClass or "
        "PriorityClass, and webhooks are not considered"
    )


async def test_pods_that_quotas_refuse_do_not_fit(world: World) -> None:
    code, found = await simulate(world, quota(pods="1"))
    assert (code, found["fits"]) == (1, False)
    assert found["refused"] == [
        "Deployment shop/new: the API server refuses 1 of its 2 pods: exceeded quota: x, "
        "requested: pods=1, used: pods=1, limited: pods=1"
    ]
    code, found = await simulate(world, quota(**{"limits.cpu": "9", "requests.memory": "1Gi"}))
    assert code == 1
    (refused,) = found["refused"]
    assert refused.endswith(
        "refuses its pods: failed quota: x: must specify limits.cpu for: main; requests.memory "
        "for: main"
    )


async def test_the_largest_number_of_pods_is_bounded_by_quotas(world: World) -> None:
    code, found = await simulate(world, quota(pods="3"), flags=("--max",))
    assert code == 0
    (note,) = (note for note in found["notes"] if "ResourceQuotas" in note)
    assert note.startswith("Deployment shop/new: ResourceQuotas admit 3 pods: exceeded quota: x")


async def test_defaults_and_overhead_count(world: World) -> None:
    limits = {"type": "Container", "defaultRequest": {"memory": "7Gi"}}
    code, found = await simulate(world, obj("LimitRange", spec={"limits": [limits]}))
    assert code == 0
    figures = found["configurations"][0]["figures"]
    assert figures["requestsPercent.memory"]["median"] > 80
    limits = {"type": "Container", "max": {"cpu": "100m"}}
    code, found = await simulate(world, obj("LimitRange", spec={"limits": [limits]}))
    assert code == 1
    assert "maximum cpu usage per Container is 100m, but request is 500m" in found["refused"][0]


@pytest.mark.parametrize("pods", ["1", "9"])
async def test_without_the_right_to_create_pods_quotas_count_as_well(
    world: World, pods: str
) -> None:
    """The API server refuses the dry run; what it would do is predicted."""
    world.cluster.api.served |= {QUOTAS}
    world.cluster.api.remove(PODS, f"runs-{DEFAULT_SCHEDULER}", "shop")
    world.cluster.put(QUOTAS, quota(pods=pods))
    message = 'pods is forbidden: User "u" cannot create resource "pods" in API group ""'
    world.cluster.api.fail(403, path="/pods", method="POST", reason="Forbidden", message=message)
    workload = world.workload(DEFAULT_SCHEDULER)
    code, found = await world.answer("simulate", "-f", workload, "--repeat", "1")
    assert any("webhooks are not considered" in note for note in found["notes"])
    assert (code, len(found["refused"])) == ((1, 1) if pods == "1" else (0, 0))
