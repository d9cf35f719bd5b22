"""Every port of every program survives clients that send without end.

The server answers with an error or closes, its memory stays bounded, and the next request is
answered. `hack/bench ports` measures more of them, for longer.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import ssl
import sys
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from unittest.mock import Mock
from urllib.parse import urlsplit

import pytest

from kube_scheduler_operator.operator.admission.decisions import ReviewAnswer
from kube_scheduler_operator.operator.admission.review_connection import (
    ReviewConnection,
    SharedDesk,
)
from kube_scheduler_operator.scheduling.extender.wire import ArgsReader, WireError
from kube_scheduler_operator.serving.certificate import ServingCertificate
from kube_scheduler_operator.serving.health import HealthServer
from kube_scheduler_operator.serving.http_types import HttpRequest, HttpResponse
from kube_scheduler_operator.simulate import questions
from kube_scheduler_operator.simulate.api_server import WorldServer
from kube_scheduler_operator.simulate.job import PATH
from kube_scheduler_operator.simulate.service import Service, ServiceOptions
from kube_scheduler_operator.simulate.store import WorldStore
from kube_scheduler_operator.simulate.world import World

from .operator.admission.webhook_client import post
from .scheduling.exporter.test_server import serving
from .scheduling.extender.conftest import running
from .simulate.test_service import asked, free_port, say

MOST_MEMORY: Final = 320
"""MiB that a flood may cost: 64 MiB of one body, its copy and its decoded values."""

MOST_SENT: Final = 72 * 2**20
GZIP: Final = 16 + zlib.MAX_WBITS
WAIT: Final = 0.5
"""Seconds for which a client waits for an answer before it sends more, or leaves."""


@dataclass(frozen=True)
class Port:
    """An open port."""

    number: int  # where it listens, on 127.0.0.1
    post: tuple[bytes, bytes]  # path and headers of requests that it reads
    good: bytes  # a request that it answers with 200
    tls: ssl.SSLContext | None = None  # the context of its clients; None: without TLS


def get(path: str) -> bytes:
    return b"GET %b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % path.encode()


@asynccontextmanager
async def telemetry(
    _folder: Path, certificate: ServingCertificate | None = None
) -> AsyncIterator[Port]:
    server = HealthServer(lambda _: HttpResponse(200, b"up 1\n"))
    client = None
    if certificate is not None:
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    _, port = await server.start("127.0.0.1", 0, certificate.context if certificate else None)
    try:
        yield Port(port, (b"/metrics", b""), get("/healthz"), client)
    finally:
        await server.stop()


def telemetry_with_tls(folder: Path) -> AbstractAsyncContextManager[Port]:
    return telemetry(folder, ServingCertificate())


@asynccontextmanager
async def exporter(_folder: Path) -> AsyncIterator[Port]:
    with serving() as connect:
        yield Port(connect.port, (b"/metrics", b""), get("/metrics"))


@asynccontextmanager
async def extender(_folder: Path) -> AsyncIterator[Port]:
    reader = ArgsReader()

    def app(given: HttpRequest) -> HttpResponse:
        if given.method == b"GET":
            return HttpResponse(200, b"ok")
        try:
            reader.read(given.body)
        except WireError as error:
            return HttpResponse(400, str(error).encode())
        return HttpResponse(200, b"read")

    async with running(app) as server:
        yield Port(server.server.port, (b"/foo/filter", b""), get("/healthz"))


@asynccontextmanager
async def simulation(_folder: Path) -> AsyncIterator[Port]:
    port, digest = free_port(), hashlib.sha256(b"key").hexdigest()
    options = ServiceOptions("127.0.0.1", digest, 60.0, port, Path(sys.executable))
    service = Service(options)
    service_task = asyncio.create_task(service.run())
    holder = None
    try:
        async with asyncio.timeout(20):
            while holder is None:
                with contextlib.suppress(OSError):
                    # It ends when its last client is gone.
                    _, holder = await asyncio.open_connection("127.0.0.1", port)
                await asyncio.sleep(0.01)
        key, body = b"Authorization: Bearer key\r\n", asked("hello")
        head = b"POST %b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%bContent-Length: %d\r\n\r\n"
        good = head % (PATH.encode(), key, len(body)) + body
        yield Port(port, (PATH.encode(), key), good)
        holder.close()
    finally:
        service_task.cancel()
        await asyncio.wait((service_task,))


@asynccontextmanager
async def world(_folder: Path) -> AsyncIterator[Port]:
    server = WorldServer(WorldStore(World()), Mock(), time.time)
    await server.start()
    url = urlsplit(server.url)
    try:
        path = f"{url.path}/api/v1/namespaces/default/pods/p/binding".encode()
        yield Port(int(url.port or 0), (path, b""), get(f"{url.path}/version"))
    finally:
        await server.stop()


@asynccontextmanager
async def webhook(_folder: Path) -> AsyncIterator[Port]:
    """Its connections without TLS and in this process; tests of `admission` have the whole."""
    shared = SharedDesk(
        lambda _body, _address: ReviewAnswer(200, b"{}", result="unchanged"), lambda _result: None
    )
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: ReviewConnection(shared), "127.0.0.1", 0)
    async with server:
        good = post(b"{}", "Connection: close")
        yield Port(server.sockets[0].getsockname()[1], (b"/assign", b""), good)


PORTS: Final[Mapping[str, Callable[[Path], AbstractAsyncContextManager[Port]]]] = {
    "telemetry": telemetry,
    "telemetry with TLS": telemetry_with_tls,
    "exporter": exporter,
    "extender": extender,
    "simulation": simulation,
    "API server of a simulation": world,
    "webhook": webhook,
}
"""Every port that a program of this project opens."""


def _post(port: Port, headers: bytes) -> bytes:
    path, more = port.post
    return b"POST %b HTTP/1.1\r\nHost: x\r\n%b%b\r\n\r\n" % (path, more, headers)


def _body(port: Port, body: bytes) -> Iterator[bytes]:
    yield _post(port, b"Content-Length: %d" % len(body))
    for at in range(0, len(body), 2**20):
        yield body[at : at + 2**20]


def _endless_headers(port: Port) -> Iterator[bytes]:
    yield _post(port, b"X: y")[:-2]
    while True:
        yield b"X-Y: " + 1000 * b"z" + b"\r\n"


def _endless_line(port: Port) -> Iterator[bytes]:
    yield b"GET /"
    while True:
        yield 2**16 * b"a"


def _announced(port: Port) -> Iterator[bytes]:
    yield _post(port, b"Content-Length: 68719476736")
    while True:
        yield 2**16 * b" "


def _chunked(port: Port) -> Iterator[bytes]:
    yield _post(port, b"Transfer-Encoding: chunked")
    while True:
        yield b"10000\r\n" + 2**16 * b"[" + b"\r\n"


def _slow(port: Port) -> Iterator[bytes]:
    yield b"POST "


@functools.cache
def zeros() -> bytes:
    """The beginning of a stream of zeros, a gigabyte in a megabyte."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, GZIP)
    pieces = [compressor.compress(bytes(2**20)) + compressor.flush(zlib.Z_FULL_FLUSH) for _ in "ab"]
    return b"".join(pieces) + 1022 * pieces[-1]  # after a full flush, all of them are the same


FLOODS: Final[Mapping[str, tuple[int, Callable[[Port], Iterator[bytes]]]]] = {
    "many connections": (200, lambda port: iter(())),
    "headers that do not end": (4, _endless_headers),
    "a line that does not end": (4, _endless_line),
    "headers that do not come": (100, _slow),
    "a body of 64 GiB": (2, _announced),
    "chunks without end": (2, _chunked),
    "8 MiB of empty lists": (2, lambda port: _body(port, 2_796_000 * b"[],")),
    "a million levels": (2, lambda port: _body(port, 2**20 * b"[")),
    "compressed zeros": (2, lambda port: _body(port, zeros())),
}
"""What each of several clients sends."""


def peak() -> float:
    """The most resident memory since `forget_peak`, MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(dict(line.split(":", 1) for line in lines)["VmHWM"].split()[0]) / 1024


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


async def _send(port: Port, stream: Iterator[bytes]) -> None:
    """Send until the server closes or does not read on, or that is enough."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port.number, ssl=port.tls)
    except OSError:
        return  # refused
    sent = 0
    with contextlib.suppress(OSError, TimeoutError):
        for piece in stream:
            writer.write(piece)
            sent += len(piece)
            await asyncio.wait_for(writer.drain(), WAIT)
            if sent > MOST_SENT or reader.at_eof():
                break
        await asyncio.wait_for(reader.read(2**16), WAIT)
    writer.transport.abort()


async def _ask(port: Port) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port.number, ssl=port.tls)
    writer.write(port.good)
    async with asyncio.timeout(30):
        line = await reader.readline()
    writer.transport.abort()
    return line


@pytest.mark.parametrize("flood", FLOODS)
@pytest.mark.parametrize("name", PORTS)
async def test_a_flood_is_refused_and_the_next_request_is_answered(
    name: str, flood: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "QUESTIONS", {"say": say})
    clients, stream = FLOODS[flood]
    async with PORTS[name](tmp_path) as port:
        assert b" 200 " in await _ask(port)
        forget_peak()
        before = peak()
        await asyncio.gather(*(_send(port, stream(port)) for _ in range(clients)))
        cost = peak() - before
        assert b" 200 " in await _ask(port)
    assert cost < MOST_MEMORY


def test_the_world_of_a_request_is_bounded_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "_LARGEST_WORLD", 16 * 2**20)
    line = b'{"x":"' + bytes(2**20).replace(b"\0", b"y") + b'"}\n'
    compressor = zlib.compressobj(9, zlib.DEFLATED, GZIP)

    def chunks() -> Iterator[bytes]:
        for _ in range(20):
            yield compressor.compress(line)
        yield compressor.flush()

    with pytest.raises(ValueError, match="more than 16777216 bytes"):
        for _ in questions._lines(chunks()):
            pass


def test_a_request_of_the_operand_that_is_too_large_is_refused() -> None:
    """The image of kube-scheduler in a simulation may be any."""

    async def main() -> bytes:
        async with world(Path()) as port:
            body = b"[" + 200_000 * b"{}," + b"0]"
            head = _post(port, b"Connection: close\r\nContent-Length: %d" % len(body))
            reader, writer = await asyncio.open_connection("127.0.0.1", port.number)
            writer.write(head + body)
            answer: Any = await reader.read()
            writer.close()
            return bytes(answer)

    answer = asyncio.run(main())
    assert b" 400 " in answer.split(b"\r\n")[0]
    assert b"more than 100000 values" in answer
