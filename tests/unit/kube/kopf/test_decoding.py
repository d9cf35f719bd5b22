"""kopf's lists and watches with objects that are nested deeper than Python's decoder allows."""

from __future__ import annotations

import asyncio
import inspect
import json
import socket
import ssl
import threading
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl

import pytest
from kopf._cogs.clients import api, fetching

from kube_scheduler_operator.base.json_text import exceeds_depth
from kube_scheduler_operator.base.limits import OBJECT_DEPTH
from kube_scheduler_operator.kube.kopf import decoding
from kube_scheduler_operator.kube.oversized import LEFT_OUT
from kube_scheduler_operator.kube.protobuf import CHANGE_LIMIT

from ....hostile_objects import hostile, large_pod
from ...conftest import CertificateFiles

ARGUMENTS: Any = {"settings": None, "logger": None}
REMEDY = "pin kopf>=1.45.2,<1.46 in pyproject.toml, or adapt kube/kopf/decoding.py"


def nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def body(name: str, arguments: str) -> str:
    return f'{{"apiVersion":"x.dev/v1","metadata":{{"name":"{name}"}},"spec":{arguments}}}'


class Content:
    def __init__(self, data: bytes) -> None:
        self._data = data

    async def iter_any(self) -> AsyncIterator[bytes]:
        for begin in range(0, len(self._data), 65536):
            yield self._data[begin : begin + 65536]


class Response:
    content_type = "application/json"
    connection = None

    def __init__(self, text: str) -> None:
        self.content_length = len(text.encode())
        self.content = Content(text.encode())

    async def __aenter__(self) -> Response:
        return self

    async def __aexit__(self, *_: object) -> None: ...


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "get", api.get)
    monkeypatch.setattr(api, "json", json)
    monkeypatch.setattr(api, "iter_jsonlines", api.iter_jsonlines)
    decoding.install_decoder()


def test_kopf_reads_lists_and_watches_where_the_decoder_is_replaced() -> None:
    assert "api.get(" in inspect.getsource(fetching.fetch_objs), REMEDY
    assert "json.loads(" in inspect.getsource(api.stream), REMEDY
    assert "iter_jsonlines(" in inspect.getsource(api.stream), REMEDY
    assert vars(fetching)["api"] is api, REMEDY


@pytest.mark.parametrize("levels", [10, 600, 1_500, 5_000])
async def test_a_list_has_all_objects_whatever_one_of_them_contains(
    installed: None, monkeypatch: pytest.MonkeyPatch, levels: int
) -> None:
    items = ",".join(body(name, nested(levels if name == "b" else 3)) for name in "abc")

    async def request(**_: Any) -> Response:
        return Response(f'{{"items":[{items}]}}')

    monkeypatch.setattr(api, "request", request)
    found = await api.get("/", settings=None, logger=None)  # type: ignore[arg-type]
    assert [item["metadata"]["name"] for item in found["items"]] == ["a", "b", "c"]


@pytest.mark.parametrize("levels", [10, 600, 1_500, 5_000])
def test_an_event_of_a_custom_resource_has_no_more_levels_than_can_be_processed(
    installed: None, levels: int
) -> None:
    text = f'{{"type":"ADDED","object":{body("a", nested(levels))}}}'
    event = decoding.event_within_limits(vars(api)["json"].loads(text))
    assert event["type"] == "ADDED"
    assert event["object"]["metadata"] == {"name": "a"}
    assert not exceeds_depth(event["object"], OBJECT_DEPTH)
    assert exceeds_depth(event["object"], OBJECT_DEPTH - 1) == (levels > OBJECT_DEPTH)


def test_an_event_of_a_built_in_kind_is_passed_on_as_it_is() -> None:
    event = {"type": "ADDED", "object": {"apiVersion": "v1", "metadata": {"name": "a"}}}
    assert decoding.event_within_limits(event) is event


# --- size -----------------------------------------------------------------------------------------


class Server:
    """Pages of a list."""

    def __init__(self, *objects: dict[str, Any]) -> None:
        self.objects = objects
        self.asked: list[int] = []

    async def request(self, *, url: str, headers: Any, **_: Any) -> Response:
        query = dict(parse_qsl(url.partition("?")[2]))
        begin, limit = int(query.get("continue", 0)), int(query["limit"])
        self.asked.append(limit)
        page = [dict(obj) for obj in self.objects[begin : begin + limit]]
        if headers["Accept"] != "application/json":
            assert "as=PartialObjectMetadataList" in headers["Accept"]
            page = [{"metadata": obj["metadata"]} for obj in page]
        metadata = {"resourceVersion": "9"}
        if begin + limit < len(self.objects):
            metadata["continue"] = str(begin + limit)
        whole = {"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": page}
        return Response(json.dumps(whole))


async def test_a_list_of_kopf_leaves_out_what_is_too_large(
    installed: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ordinary = [hostile(f"p{number}") for number in range(6)]
    large = large_pod("hostile")
    server = Server(*ordinary[:3], large, *ordinary[3:])
    monkeypatch.setattr(api, "request", server.request)
    found: list[str] = []
    left_out: list[Any] = []
    more = ""
    while True:
        page = await api.get(f"/pods?limit=500&continue={more or 0}", **ARGUMENTS)
        found += [item["metadata"]["name"] for item in page["items"]]
        left_out += [item for item in page["items"] if LEFT_OUT in item]
        assert page["metadata"]["resourceVersion"] == "9"
        if not (more := page["metadata"]["continue"]):
            break
    assert sorted(found) == sorted(obj["metadata"]["name"] for obj in (*ordinary, large))
    assert left_out == [
        {
            "metadata": {"name": "hostile", "namespace": "tenant", "uid": "uid-hostile"},
            LEFT_OUT: "more than 100000 values",
        }
    ]
    assert "pods tenant/hostile has more than 100000 values and is left out" in caplog.text
    assert server.asked[0] == 200


async def test_a_watch_of_kopf_has_a_deletion_instead_of_what_is_too_large(
    installed: None, caplog: pytest.LogCaptureFixture
) -> None:
    pod = {**large_pod("hostile"), "kind": "Pod"}
    pod["metadata"]["resourceVersion"] = "7"
    events = [{"type": "MODIFIED", "object": pod}, {"type": "ADDED", "object": hostile("next")}]
    lines = "".join(json.dumps(event) + "\n" for event in events).encode()
    found = [
        vars(api)["json"].loads(line.decode())
        async for line in api.iter_jsonlines(Content(lines))  # type: ignore[arg-type]
    ]
    assert [event["type"] for event in found] == ["DELETED", "ADDED"]
    assert found[0]["object"]["metadata"] == {
        "name": "hostile", "namespace": "tenant", "uid": "uid-hostile", "resourceVersion": "7"
    }  # fmt: skip
    assert "Pod tenant/hostile has more than 100000 values and is left out" in caplog.text


async def test_an_endless_line_ends_the_watch(installed: None) -> None:
    class Endless:
        read = 0

        async def iter_any(self) -> AsyncIterator[bytes]:
            while self.read < 4 * CHANGE_LIMIT:
                self.read += 2**20
                yield bytes(2**20)

    content = Endless()
    with pytest.raises(ValueError, match="a watch event exceeds"):
        [line async for line in api.iter_jsonlines(content)]  # type: ignore[arg-type]
    assert content.read < 2 * CHANGE_LIMIT


def test_no_connection_outlives_its_event_loop_although_the_server_is_slow(
    first_certificate: CertificateFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A watch is closed gracefully: its TLS connection waits for the server."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(first_certificate.certificate, first_certificate.key)
    trusting = ssl.create_default_context(cafile=first_certificate.certificate)
    over = threading.Event()

    def serve(listener: socket.socket) -> None:
        with server.wrap_socket(listener.accept()[0], server_side=True):
            over.wait(30)  # it reads nothing, so it answers no end of the connection

    async def watch(port: int) -> socket.socket:
        _, writer = await asyncio.open_connection("localhost", port, ssl=trusting)

        async def request(**_: Any) -> Any:
            return SimpleNamespace(connection=SimpleNamespace(transport=writer.transport))

        monkeypatch.setattr(decoding, "_request", request)
        await decoding._recorded()
        writer.close()
        decoding.abort_connections()
        connected: socket.socket = writer.get_extra_info("socket")
        return connected

    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = threading.Thread(target=serve, args=[listener])
        serving.start()
        try:
            connected = asyncio.run(watch(listener.getsockname()[1]))
            assert connected.fileno() == -1
        finally:
            over.set()
            serving.join()
