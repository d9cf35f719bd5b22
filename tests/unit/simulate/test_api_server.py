"""The simulated API server, as kube-scheduler uses it."""

from __future__ import annotations

import time
from typing import Any
from unittest.mock import Mock

import aiohttp

from kube_scheduler_operator.simulate.api_server import WorldServer
from kube_scheduler_operator.simulate.store import WorldStore
from kube_scheduler_operator.simulate.world import World


async def test_objects_without_a_name_get_one_of_their_own() -> None:
    """kube-scheduler creates the ResourceClaim for an extended resource this way."""
    server = WorldServer(WorldStore(World()), Mock(), time.time)
    await server.start()
    claim = {"metadata": {"generateName": "web-extended-resources-"}}
    path = f"{server.url}/apis/resource.k8s.io/v1/namespaces/shop/resourceclaims"
    try:
        async with aiohttp.ClientSession() as session:
            made: list[dict[str, Any]] = []
            for _ in range(2):
                async with session.post(path, json=claim) as answer:
                    assert answer.status == 201
                    made.append((await answer.json())["metadata"])
    finally:
        await server.stop()
    assert all(metadata["name"].startswith(claim["metadata"]["generateName"]) for metadata in made)
    assert made[0]["name"] != made[1]["name"]
    assert {metadata["namespace"] for metadata in made} == {"shop"}
