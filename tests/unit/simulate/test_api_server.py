"""The simulated API server, as kube-scheduler uses it."""

from __future__ import annotations

import time
from typing import Any
from unittest.mock import Mock

import aiohttp
import pytest
import yarl
from aiohttp import web

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


async def test_a_watch_that_kube_scheduler_does_not_wait_for_is_not_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """aiohttp logs the stack of an error."""

    async def gone(*_: object) -> None:
        raise aiohttp.ClientConnectionResetError("Cannot write to closing transport")

    monkeypatch.setattr(web.StreamResponse, "prepare", gone)
    server = WorldServer(WorldStore(World()), Mock(), time.time)
    response = await server._watch(Mock(query={}), Mock())
    assert response.status == 200


async def test_a_watch_with_initial_events_is_refused_as_without_the_feature() -> None:
    """client-go then lists, which costs kube-scheduler half the time."""
    server = WorldServer(WorldStore(World()), Mock(), time.time)
    await server.start()
    query = {"watch": "true", "sendInitialEvents": "true"}
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{server.url}/api/v1/pods", params=query) as answer,
        ):
            assert answer.status == 422
            assert (await answer.json())["reason"] == "Invalid"
    finally:
        await server.stop()
    assert server.problem == ""


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "healthz", ""),
        ("GET", "api/v1/pods?labelSelector=app%3Dweb", ""),
        ("GET", "api/v1/pods?watch=1&resourceVersion=x", ""),
        ("DELETE", "api/v1/namespaces/n/pods", ""),
        ("POST", "api/v1/namespaces/n/pods/p/eviction", "{}"),
        ("POST", "apis/resource.k8s.io/v1/namespaces/n/resourceclaims", '{"metadata": []}'),
        ("GET", "x/%1B[31mred", ""),
    ],
)
async def test_an_unexpected_request_is_one_sentence(
    caplog: pytest.LogCaptureFixture, method: str, path: str, body: str
) -> None:
    server = WorldServer(WorldStore(World()), Mock(), time.time)
    await server.start()
    try:
        async with aiohttp.ClientSession() as session:
            url = yarl.URL(f"{server.url}/{path}", encoded=True)
            async with session.request(method, url, data=body) as answer:
                assert answer.status == 501
                assert (await answer.json())["reason"] == "NotImplemented"
    finally:
        await server.stop()
    sentence = "kube-scheduler sent a request that the simulation cannot answer: "
    assert server.problem.startswith(f"{sentence}{method} /{path[:2]}")
    assert server.problem.isprintable()
    assert not caplog.records  # aiohttp logs tracebacks


async def test_no_request_of_kube_scheduler_is_a_problem() -> None:
    server = WorldServer(WorldStore(World()), Mock(), time.time)
    await server.start()
    try:
        async with aiohttp.ClientSession() as session:
            for path in ("api/v1/pods", "apis/example.com/v1/things", "version", "apis"):
                async with session.get(f"{server.url}/{path}") as answer:
                    assert answer.status == 200
            async with session.get(f"{server.url}/api/v1/namespaces/n/pods/p") as answer:
                assert answer.status == 404
    finally:
        await server.stop()
    assert (server.problem, server.unknown) == ("", {"things.example.com"})
