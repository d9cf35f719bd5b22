"""A list has all objects that can be decoded, and names those that cannot."""

from __future__ import annotations

import asyncio
import json
import random
import tracemalloc
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

import pytest
from aiohttp import web

from kube_scheduler_operator.base import limits
from kube_scheduler_operator.base.backoff import NO_RETRIES
from kube_scheduler_operator.base.progress import Step, collect
from kube_scheduler_operator.kube import protobuf
from kube_scheduler_operator.kube.api import LeftOut
from kube_scheduler_operator.kube.client import ApiClient, Patience
from kube_scheduler_operator.kube.errors import ApiRequest, TooLarge, Unavailable
from kube_scheduler_operator.kube.pages import FIRST_PAGE, Pages, PageSize
from kube_scheduler_operator.kube.protobuf import UnreadableError
from kube_scheduler_operator.kube.protobuf_list import ListReader
from kube_scheduler_operator.kube.resource import CONFIG_MAPS, NODES, PODS, ObjectRef
from kube_scheduler_operator.operator.diagnostics import unknown_scheduler_names

from ...hostile_objects import HOSTILE, large_pod
from . import encoding
from .conftest import FakeApi

FIELDS = unknown_scheduler_names.FIELDS


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[ApiClient]:
    async with ApiClient(
        api.credentials(), field_manager="me", patience=Patience(backoff=NO_RETRIES)
    ) as made:
        yield made


def put(api: FakeApi, obj: dict[str, Any]) -> None:
    api.objects.setdefault(PODS, {})[obj["metadata"]["namespace"], obj["metadata"]["name"]] = obj


def names(items: Any) -> list[str]:
    return [item["metadata"]["name"] for item in items]


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("binary", [False, True], ids=["JSON", "protobuf"])
async def test_an_object_hides_no_other_one_and_is_read_or_named(
    api: FakeApi, client: Any, what: str, *, binary: bool
) -> None:
    api.protobuf = binary
    for number in range(9):
        api.put(PODS, f"a{number}", "shop")
    put(api, HOSTILE[what])
    for number in range(9):
        api.put(PODS, f"z{number}", "shop")
    found = await client.list(PODS)
    ordinary = [f"a{number}" for number in range(9)] + [f"z{number}" for number in range(9)]
    assert [name for name in names(found.items) if name != "hostile"] == ordinary
    assert ("hostile" in names(found.items)) != bool(found.left_out)
    for each in found.left_out:
        assert (each.kind, each.namespace, each.name, each.uid) == (
            "Pod", "tenant", "hostile", "uid-hostile"
        )  # fmt: skip
        assert str(each).startswith("Pod tenant/hostile has more than ")
        assert str(each).endswith(" and is left out")


async def test_what_is_left_out_has_too_many_values(api: FakeApi, client: Any) -> None:
    put(api, large_pod("hostile"))
    found = await client.list(PODS)
    assert found.items == []
    assert str(found.left_out[0]) == (
        "Pod tenant/hostile has more than 100000 values and is left out"
    )


async def test_pages_shrink_to_what_can_be_decoded_and_grow_again(
    api: FakeApi, client: Any
) -> None:
    for number in range(600):
        api.put(PODS, f"a{number:03}", "shop")
    put(api, large_pod("hostile"))
    for number in range(600):
        api.put(PODS, f"z{number:03}", "shop")
    found = await client.list(PODS)
    assert len(found.items) == 1200
    asked = [int(seen.query["limit"]) for seen in api.requests("GET", "/pods")]
    assert asked[:2] == [200, 500]
    assert min(asked) == 1
    assert asked[-1] == 500
    assert len(asked) < 30


async def test_pages_are_as_large_as_the_values_of_their_objects_allow() -> None:
    size = PageSize(500, 500)
    size.received(500, 1.25)
    assert size.limit == 300
    size.received(300, 0.1)
    assert size.limit == 500
    assert size.exceeded()
    assert size.limit == 125
    size.received(125, 0.01)
    assert size.limit == 125, "what was too large is among the next 375"
    size.received(375, 0.01)
    assert size.limit == 500
    for _ in range(10):
        size.exceeded()
    assert size.limit == 1
    assert not size.exceeded()
    size.received(7, 0.0)
    assert size.limit == 4


async def test_a_response_is_not_read_beyond_its_limit(api: FakeApi, client: Any) -> None:
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        while sent < 2**30:
            await response.write(b"[" * 65536)
            sent += 65536
        return response

    api.routes["/configmaps/a"] = endless
    with pytest.raises(TooLarge, match=f"more than {limits.DOCUMENT.bytes} bytes"):
        await client.get(ObjectRef(CONFIG_MAPS, "shop", "a"))
    assert sent < 2 * limits.DOCUMENT.bytes


async def test_an_announced_length_beyond_the_limit_is_not_read(api: FakeApi, client: Any) -> None:
    async def large(request: web.Request) -> web.Response:
        return web.Response(body=b" " * (limits.DOCUMENT.bytes + 1))

    api.routes["/configmaps/a"] = large
    with pytest.raises(TooLarge):
        await client.get(ObjectRef(CONFIG_MAPS, "shop", "a"))


async def test_one_object_with_too_many_values_is_an_error(api: FakeApi, client: Any) -> None:
    put(api, large_pod("hostile"))
    with pytest.raises(TooLarge, match="the response has more than 100000 values"):
        await client.get(ObjectRef(PODS, "tenant", "hostile"))


async def test_a_refusal_that_is_too_large_is_an_error_as_every_other(
    api: FakeApi, client: Any
) -> None:
    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=422, body=b"[" * (limits.REFUSAL.bytes + 1))

    api.routes["/configmaps/a"] = refuse
    with pytest.raises(Exception, match="more than 1048576 bytes") as raised:
        await client.get(ObjectRef(CONFIG_MAPS, "shop", "a"))
    assert raised.value.status == 422  # type: ignore[attr-defined]


# --- some fields ----------------------------------------------------------------------------------


@pytest.mark.parametrize("binary", [False, True], ids=["JSON", "protobuf"])
async def test_some_fields_are_selected_in_small_pages_first(
    api: FakeApi, client: Any, *, binary: bool
) -> None:
    api.protobuf = binary
    created = "2026-11-27T12:00:00Z"
    for number in range(300):
        api.put(PODS, f"p{number:03}", "shop", spec={"schedulerName": "x", "priority": 1})
    for obj in api.objects[PODS].values():
        obj["metadata"]["creationTimestamp"] = created
    found = await client.select(PODS, FIELDS, at_most=270)
    assert len(found.items) == 270
    assert found.items[7]["metadata"]["name"] == "p007"
    assert found.items[7]["metadata"]["creationTimestamp"] == created
    assert found.items[7]["spec"]["schedulerName"] == "x"
    assert ("priority" in found.items[7]["spec"]) != binary
    asked = [int(seen.query["limit"]) for seen in api.requests("GET", "/pods")]
    assert asked[0] == FIRST_PAGE
    assert sum(asked) == 270


async def test_fields_of_large_pods_are_read(api: FakeApi, client: Any) -> None:
    api.protobuf = True
    put(api, large_pod("hostile", schedulerName="unknown", schedulingGates=[{"name": "g"}]))
    found = await client.select(PODS, FIELDS, at_most=500)
    (pod,) = found.items
    assert pod["metadata"] == {"name": "hostile", "namespace": "tenant", "uid": "uid-hostile"}
    assert pod["spec"] == {"schedulerName": "unknown", "schedulingGates": True}


def page(*objects: dict[str, Any]) -> bytes:
    return encoding.listed(list(objects), {"resourceVersion": "5", "continue": "token"})


class Content:
    """A body that arrives in these pieces."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._data = bytearray()

    async def readexactly(self, n: int) -> bytes:
        assert n <= 64 * 1024, "aiohttp then lets the connection buffer twice as much"
        while len(self._data) < n:
            if not (piece := next(self._pieces, b"")):
                raise asyncio.IncompleteReadError(bytes(self._data), n)
            self._data += piece
        data = bytes(self._data[:n])
        del self._data[:n]
        return data

    async def iter_any(self) -> AsyncIterator[bytes]:
        yield bytes(self._data)
        for piece in self._pieces:
            yield piece


async def decoded(pieces: Iterable[bytes], limit: int) -> tuple[list[Any], dict[str, Any], int]:
    content: Any = Content(pieces)
    reader = ListReader("Pod", content, limit)
    return [element async for element in reader.objects()], reader.metadata, reader.size


def cut(data: bytes, sizes: list[int]) -> Iterator[bytes]:
    for size in sizes:
        yield data[:size]
        data = data[size:]
        if not data:
            return
    yield data


async def test_a_list_is_decoded_however_it_arrives() -> None:
    rng = random.Random(5)
    objects = [
        {"metadata": {"name": f"p{number}", "namespace": "n", "annotations": {"a": "x" * length}}}
        for number, length in enumerate((0, 10, 500, 5000, 20_000, 3))
    ]
    data = page(*objects)
    whole, metadata, size = await decoded([data], 1000)
    assert metadata == {"resourceVersion": "5", "continue": "token"}
    assert size == len(data)
    left_out = [element for element in whole if isinstance(element, LeftOut)]
    assert [isinstance(element, LeftOut) for element in whole] == [0, 0, 0, 1, 1, 0]
    assert [(obj.kind, obj.namespace, obj.name) for obj in left_out] == [
        ("Pod", "n", "p3"), ("Pod", "n", "p4")
    ]  # fmt: skip
    assert all(obj.excess.endswith(" bytes") for obj in left_out)
    names_ = protobuf.Message(protobuf.part(1, "metadata", protobuf.Message(*protobuf.METADATA)))
    read = [names_.read(each, 0, len(each)) for each in whole if isinstance(each, bytes)]
    assert names(read) == ["p0", "p1", "p2", "p5"]
    for _ in range(200):
        sizes = [rng.choice((1, 2, 3, 7, 100, 4000)) for _ in range(rng.randrange(1, 300))]
        assert await decoded(cut(data, sizes), 1000) == (whole, metadata, size)


async def test_the_memory_of_a_list_does_not_depend_on_its_objects() -> None:
    large = {"metadata": {"name": "p", "annotations": {"a": "x" * 1_400_000}}}
    piece = encoding.field(2, encoding.encode(large, encoding.POD))
    data = encoding.whole(encoding.field(1, encoding.field(2, b"5")) + 30 * piece, "PodList")
    content: Any = Content(data[at : at + 65536] for at in range(0, len(data), 65536))
    reader, count = ListReader("Pod", content), 0
    tracemalloc.start()
    try:
        async for _ in reader.objects():
            count += 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 30
    assert peak < 3 * limits.LIST_ITEM_BYTES


@pytest.mark.parametrize(
    "data",
    [
        b"json",
        page({"metadata": {"name": "a"}})[:-3],
        b"k8s\0\x12\x03\x12\x05a",  # an object that is longer than its list
        b"k8s\0\x12\x02\x08\x01",  # a number
        b"k8s\0\x0a\xff\xff\xff\x7f",  # an endless type
        b"k8s\0\x12\x04\x0a\x02\x12\x05",  # metadata that ends within a field
        b"k8s\0" + b"\xff" * 11,
    ],
)
async def test_a_list_that_is_damaged_is_an_error(data: bytes) -> None:
    with pytest.raises(UnreadableError):
        await decoded([data], limits.LIST_ITEM_BYTES)


async def test_nodes_come_as_they_are_without_protobuf(api: FakeApi, client: Any) -> None:
    api.protobuf = True
    api.put(NODES, "n")
    found = await client.select(NODES, FIELDS, at_most=5)
    assert names(found.items) == ["n"]
    assert json.dumps(found.items)


async def test_the_steps_name_how_far_a_list_is(api: FakeApi, client: Any) -> None:
    for number in range(450):
        api.put(PODS, f"p{number}", "shop")
    seen: list[str] = []
    steps: list[Step] = []

    def keep(obj: Any) -> Any:
        text = ": ".join(map(str, steps))
        if text not in seen:
            seen.append(text)
        return obj

    with collect(steps):
        await client.list(PODS, keep=keep)
    assert seen == ["reading pods 200 of about 450", "reading pods 450"]
    assert steps == []


@pytest.mark.parametrize(
    "text", ["<html>", "[1]", '{"metadata":7}', '{"items":{"a":1}}', '{"items":["a"]}', "\xff"]
)
async def test_a_list_of_another_server_is_an_error_of_the_api(text: str) -> None:
    """A login page or a proxy answers 200 as well."""

    class Client:
        async def take(self, *_: Any) -> Any:
            return text.encode("latin-1")

    request = ApiRequest("list", "/api/v1/nodes", NODES)
    pages = Pages(Client(), request, PageSize(10))
    with pytest.raises(
        Unavailable, match=r"cannot be read: .*check that the URL is that of an API"
    ):
        await pages.page({})
