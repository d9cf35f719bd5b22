"""A real API server and that of the simulation answer a real kube-scheduler in the same way.

In generated worlds everything between the two real programs is recorded, and each kind of write is
sent again with what would be wrong: twice, to a name that does not exist, with another UID and with
an old resourceVersion. Each request is then sent to the simulation's API server with the same
object in its world. Equal are the status code, the reason of a refusal, the object of the answer
and the object afterwards, as far as scheduling reads them; of lists and watches, all objects.
"""

from __future__ import annotations

import asyncio
import copy
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from unittest.mock import Mock

import aiohttp
import pytest

from kube_scheduler_operator.kube.resource import EVENTS_V1, PODS
from kube_scheduler_operator.simulate.api_server import WorldServer
from kube_scheduler_operator.simulate.configuration import default_configuration, simulated
from kube_scheduler_operator.simulate.kinds import CLAIMS, KINDS, RESOURCE_CLAIMS, VOLUMES, strip
from kube_scheduler_operator.simulate.process import binary_version
from kube_scheduler_operator.simulate.store import WorldStore
from kube_scheduler_operator.simulate.targets import RequestTarget, target_of
from kube_scheduler_operator.simulate.world import World

from ..seeds import number, some_in_presubmit
from .conftest import ApiServer
from .played_nodes import until
from .recording_proxy import END_OF_LIST, Exchange, RecordingProxy
from .simulated_worlds import generate
from .test_simulation_against_cluster import Client, Cluster, Spy
from .test_simulation_against_cluster import cluster as cluster

Object = dict[str, Any]

COUNT: Final = number("KSO_WORLDS", 10, soak=100)
JSON: Final = "application/json"
PLAYED: Final = (CLAIMS, VOLUMES)
"""Kinds that controllers change at once: here those of the world, there kube-controller-manager."""
OLD: Final = "1"
"""A resourceVersion that no object has any more."""


class OneAtATime(Client):
    """Writes between those of kube-scheduler, never while one is recorded."""

    def __init__(self, api: ApiServer, proxy: RecordingProxy) -> None:
        super().__init__(api)
        self._proxy = proxy

    def request(self, method: str, path: str, body: Any = None) -> Object:
        if method == "GET":
            return super().request(method, path, body)
        with self._proxy.writing:
            return super().request(method, path, body)


@pytest.fixture(scope="module")
def counts() -> Iterator[Counter[str]]:
    counted: Counter[str] = Counter()
    yield counted
    print(f"\n{counted.total()} requests, all with the answer of a real API server:")
    for text, times in sorted(counted.items()):
        print(f"  {times:5} {text}")


@pytest.mark.timeout(300, func_only=True)
@pytest.mark.parametrize("seed", some_in_presubmit(list(range(COUNT)), 1))
def test_requests_are_answered_as_by_a_real_api_server(
    cluster: ApiServer,
    kube_scheduler_binary: Path,
    tmp_path: Path,
    counts: Counter[str],
    seed: int,
) -> None:
    generated = generate(seed)
    proxy, spy = RecordingProxy(cluster, tmp_path), Spy()
    client = OneAtATime(cluster, proxy)
    real = Cluster(client, generated, spy)
    profile = generated.profile
    config = {
        **simulated({**default_configuration(), "profiles": [profile]}, (), ()),
        "clientConnection": {"contentType": JSON, "acceptContentTypes": JSON},
    }
    try:
        real.create()
        world = real.read()
        world.version = str(binary_version(kube_scheduler_binary))
        client.kubeconfig = proxy.kubeconfig
        real.start(kube_scheduler_binary, config, tmp_path)
        until(lambda: _has_listed_pods(proxy), "kube-scheduler lists no Pods")
        for pod in generated.waiting:
            pod["spec"]["schedulerName"] = profile["schedulerName"]
            real.decide(pod, between=lambda: _again(proxy))
    finally:
        real.close()
        client.close()
        spy.close()
        proxy.close()
    asyncio.run(_compare(world, list(proxy.exchanges), counts))


def _has_listed_pods(proxy: RecordingProxy) -> bool:
    """Whether it knows all Pods of the world; its lists are without those that come later.

    Up to 1.34 it lists them before it watches; a newer one gets them as the first events.
    """
    watches = [each for each in list(proxy.exchanges) if each.watches and each.parts[-1] == "pods"]
    return any(
        "sendInitialEvents" not in each.path
        or (each.events and each.events[-1]["type"] == "BOOKMARK")
        for each in watches
    )


def _again(proxy: RecordingProxy) -> None:
    """Send each kind of write once more with each of the mistakes."""
    latest = {_kind(each): each for each in list(proxy.exchanges) if each.method != "GET"}
    for exchange in latest.values():
        if exchange.status < 300:
            for wrong in _mistakes(exchange):
                proxy.send(wrong)


def _kind(exchange: Exchange) -> str:
    if exchange.method == "GET" and not exchange.watches:
        return f"GET {exchange.path}"
    target = _target(exchange)
    subresource = f"/{target.subresource}" if target.subresource else ""
    verb = "WATCH" if exchange.watches else exchange.method
    return f"{verb} {target.requested.api_version} {target.resource.plural}{subresource}"


def _target(exchange: Exchange) -> RequestTarget:
    target = target_of(exchange.parts)
    assert target is not None, exchange.path
    return target


def _mistakes(exchange: Exchange) -> Iterator[Exchange]:
    target = _target(exchange)
    if _is_event(target):  # the simulation takes all of them
        return
    yield _like(exchange)
    if not target.name:
        return
    body = copy.deepcopy(exchange.body)
    if "name" in body.get("metadata", {}):
        body["metadata"]["name"] = "missing"
    yield _like(exchange, exchange.path.replace(f"/{target.name}", "/missing", 1), body)
    for field, wrong in (("uid", "another"), ("resourceVersion", OLD)):
        body = copy.deepcopy(exchange.body)
        if exchange.method == "DELETE":
            body["preconditions"] = {field: wrong}
        elif field == "uid" or "resourceVersion" in body.get("metadata", {}):
            body.setdefault("metadata", {})[field] = wrong
        else:
            continue
        yield _like(exchange, body=body)


def _is_event(target: RequestTarget) -> bool:
    return target.resource.name == EVENTS_V1.name


def _like(exchange: Exchange, path: str = "", body: Object | None = None) -> Exchange:
    return Exchange(
        exchange.method,
        path or exchange.path,
        exchange.content_type,
        copy.deepcopy(exchange.body) if body is None else body,
    )


async def _compare(world: World, exchanges: list[Exchange], counts: Counter[str]) -> None:
    initial = WorldStore(world)
    latest = max(
        str(obj["metadata"]["creationTimestamp"])
        for kind in world.objects
        for obj in world.all(kind)
    )
    different: list[str] = []
    async with aiohttp.ClientSession() as session:
        for exchange in exchanges:
            try:
                if exchange.watches and "sendInitialEvents" not in exchange.path:
                    continue  # it follows a list, and has what the world is changed by
                if exchange.watches:
                    await _compare_watch(session, initial, exchange, latest)
                elif exchange.method == "GET" and exchange.parts[-1] == EVENTS_V1.version:
                    await _compare_discovery(session, exchange)
                elif exchange.method == "GET":
                    await _compare_list(session, initial, exchange, latest)
                else:
                    await _compare_write(session, world, _target(exchange), exchange)
            except AssertionError as error:
                different.append(f"{_kind(exchange)}: {error}")
                continue
            refused = f": {exchange.status} {exchange.answer.get('reason')}"
            counts[_kind(exchange) + (refused if exchange.status >= 400 else "")] += 1
    assert not different, "\n".join(different)


async def _asked(
    session: aiohttp.ClientSession, store: WorldStore, path: str
) -> tuple[int, Object]:
    """The status and the answer to a GET request."""
    server = WorldServer(store, Mock(), time.time)
    await server.start()
    try:
        async with session.get(server.url + path) as response:
            answer = await response.json()
    finally:
        await server.stop()
    assert server.problem == ""
    return response.status, answer


async def _compare_discovery(session: aiohttp.ClientSession, exchange: Exchange) -> None:
    """kube-scheduler asks whether events.k8s.io/v1 is served."""
    status, answer = await _asked(session, WorldStore(World()), exchange.path)
    assert status == exchange.status
    for found in (answer, exchange.answer):
        assert found["groupVersion"] == EVENTS_V1.api_version
        assert EVENTS_V1.plural in {resource["name"] for resource in found["resources"]}


async def _compare_list(
    session: aiohttp.ClientSession, store: WorldStore, exchange: Exchange, latest: str
) -> None:
    """Compare the objects of a list; up to 1.34, kube-scheduler lists before it watches.

    Other tests create objects after the `latest` of the world.
    """
    status, listed = await _asked(session, store, exchange.path)
    assert status == exchange.status
    real = exchange.answer
    for field in ("kind", "apiVersion"):
        assert listed[field] == real[field], exchange.path
    own, expected = (
        {
            _name_of(item): (item["metadata"]["uid"], item.get("kind"), item.get("apiVersion"))
            for item in each["items"] or ()
            if _created(item) <= latest
        }
        for each in (listed, real)
    )
    assert own == expected, exchange.path


def _name_of(item: Object) -> str:
    metadata = item["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


async def _compare_watch(
    session: aiohttp.ClientSession, store: WorldStore, exchange: Exchange, latest: str
) -> None:
    """Compare what a watch begins with: here client-go lists, because that is refused.

    Other tests create objects after the `latest` of the world.
    """
    status, refusal = await _asked(session, store, exchange.path)
    assert (status, refusal["reason"]) == (422, "Invalid")
    status, listed = await _asked(session, store, exchange.path.partition("?")[0])
    assert status == exchange.status
    *expected, bookmark = exchange.events
    assert bookmark["object"]["metadata"]["annotations"] == {END_OF_LIST: "true"}
    assert listed["kind"] == f"{bookmark['object']['kind']}List", exchange.path
    assert listed["apiVersion"] == bookmark["object"]["apiVersion"], exchange.path
    kind = {field: bookmark["object"][field] for field in ("apiVersion", "kind")}
    events = [{"type": "ADDED", "object": {**kind, **obj}} for obj in listed["items"]]
    known = [each for each in expected if _created(each["object"]) <= latest]
    assert _listed(events) == _listed(known), exchange.path


def _created(obj: Object) -> str:
    return str(obj["metadata"]["creationTimestamp"])


def _listed(events: list[Object]) -> dict[str, Object]:
    """The objects that exist at the beginning, by name."""
    found = {}
    for event in events:
        obj = event["object"]
        metadata = obj["metadata"]
        name = f"{event['type']} {metadata.get('namespace')}/{metadata.get('name')}"
        found[name] = {
            "apiVersion": obj["apiVersion"],
            "kind": obj["kind"],
            "uid": metadata["uid"],
        }
    return found


async def _compare_write(
    session: aiohttp.ClientSession, world: World, target: RequestTarget, exchange: Exchange
) -> None:
    store = WorldStore(world)
    if exchange.before is None:
        store.delete(target.resource, target.key)
    else:
        store.put(target.resource, _read_by_scheduling(target, exchange.before))
    server = WorldServer(store, Mock(), time.time)
    await server.start()
    try:
        async with session.request(
            exchange.method,
            server.url + exchange.path,
            json=_with_version(store, target, exchange),
            headers={"Content-Type": exchange.content_type or JSON},
        ) as response:
            status, answer = response.status, await response.json()
    finally:
        await server.stop()
    sent = f"{exchange.method} {exchange.path} {json.dumps(exchange.body)[:600]}"
    expected = exchange.answer
    assert server.problem == ""
    assert _outcome(status, answer) == _outcome(exchange.status, expected), sent
    if status >= 400 or _is_event(target):
        return
    assert answer["kind"] == expected["kind"], sent
    if target.resource in PLAYED:
        return
    if expected["kind"] == target.resource.kind:
        assert _result(target, answer) == _result(target, expected), sent
    after = store.get(target.resource, target.key) if target.name else None
    if _was_changed_since(exchange):
        return
    if exchange.method != "DELETE" and target.name:
        assert after is not None
        assert exchange.after is not None
        assert _result(target, after) == _result(target, exchange.after), sent


def _was_changed_since(exchange: Exchange) -> bool:
    """Whether a controller changed the object before it was read: those of claims do at once."""
    answered, after = exchange.answer, exchange.after
    if after is None or answered["kind"] != after["kind"]:
        return False
    return bool(answered["metadata"]["resourceVersion"] != after["metadata"]["resourceVersion"])


def _outcome(status: int, answer: Object) -> tuple[int, Any]:
    return status, answer.get("reason") if status >= 400 else None


def _with_version(store: WorldStore, target: RequestTarget, exchange: Exchange) -> Object:
    """The body of a request with our resourceVersion for theirs."""
    body = copy.deepcopy(exchange.body)
    current = store.get(target.resource, target.key)
    before = exchange.before
    if current is None or before is None:
        return body
    for holder in (body.get("metadata"), body.get("preconditions")):
        if holder and holder.get("resourceVersion") == before["metadata"]["resourceVersion"]:
            holder["resourceVersion"] = current["metadata"]["resourceVersion"]
    return body


def _read_by_scheduling(target: RequestTarget, obj: Mapping[str, Any]) -> Object:
    kept = strip(KINDS[target.resource], {**obj, "apiVersion": target.requested.api_version})
    return {**kept, "metadata": {**kept["metadata"]}}


def _result(target: RequestTarget, obj: Mapping[str, Any]) -> Object:
    """What scheduling reads of an object, without what depends on the time."""
    kept = _read_by_scheduling(target, obj)
    for condition in kept.get("status", {}).get("conditions") or ():
        condition.pop("lastTransitionTime", None)
    if target.resource == PODS:
        kept["status"].pop("startTime", None)
        if "deletionTimestamp" in kept["metadata"]:
            kept["metadata"]["deletionTimestamp"] = "a time"
    if target.resource == RESOURCE_CLAIMS and "generateName" in obj["metadata"]:
        kept["metadata"] = {"generateName": obj["metadata"]["generateName"]}
    return kept
