"""Every port of every program survives clients that send without end.

The server answers with an error or closes, its memory stays bounded, and the next request of
another client is answered. `hack/bench ports` measures more of them, for longer.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import hashlib
import re
import secrets
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

import kube_scheduler_operator
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.cli.web.page import ConsoleCluster
from kube_scheduler_operator.cli.web.port import listening as console_listening
from kube_scheduler_operator.cli.web.security import Guard
from kube_scheduler_operator.cli.web.server import Console
from kube_scheduler_operator.operator.admission import program as webhook_program
from kube_scheduler_operator.operator.admission.decisions import ReviewAnswer
from kube_scheduler_operator.operator.admission.review_connection import (
    ReviewConnection,
    SharedDesk,
)
from kube_scheduler_operator.operator.telemetry import authorize
from kube_scheduler_operator.operator.telemetry.authorize import CachedReviews, delegated
from kube_scheduler_operator.operator.telemetry.server import TelemetryServer
from kube_scheduler_operator.scheduling.extender.wire import ArgsReader, WireError
from kube_scheduler_operator.serving.certificate import ServingCertificate
from kube_scheduler_operator.serving.connections import Listener
from kube_scheduler_operator.serving.health import HealthServer
from kube_scheduler_operator.serving.http_types import (
    HEALTH_LIMITS,
    HttpRequest,
    HttpResponse,
    Limits,
)
from kube_scheduler_operator.simulate import launcher as launcher_program
from kube_scheduler_operator.simulate import questions
from kube_scheduler_operator.simulate.api_server import WorldServer
from kube_scheduler_operator.simulate.identity import make_identity
from kube_scheduler_operator.simulate.job import PATH
from kube_scheduler_operator.simulate.launcher import STDOUT, Order, encoded, socket_address
from kube_scheduler_operator.simulate.service import Service, ServiceOptions
from kube_scheduler_operator.simulate.store import WorldStore
from kube_scheduler_operator.simulate.world import World

from .listening_calls import listening
from .operator.admission.webhook_client import post
from .scheduling.exporter.test_server import serving
from .scheduling.extender.conftest import running
from .simulate.test_service import asked, free_port, say

REPOSITORY: Final = Path(__file__).parents[2]

MOST_MEMORY: Final = 320
"""MiB that a flood may cost: 64 MiB of one body, its copy and its decoded values."""

MOST_SENT: Final = 72 * 2**20
GZIP: Final = 16 + zlib.MAX_WBITS
WAIT: Final = 0.5
"""Seconds for which a client waits for an answer before it sends more, or leaves."""


@dataclass(frozen=True)
class Port:
    """An open port."""

    address: int | str  # on 127.0.0.1, or a Unix socket
    post: tuple[bytes, bytes]  # path and headers of requests that it reads
    good: bytes  # a request that it answers with `answer`
    tls: ssl.SSLContext | None = None  # the context of its clients; None: without TLS
    answer: bytes = b" 200 "  # in the first line
    process: int | str = "self"  # which listens

    async def connect(
        self, *, of_another: bool = False, plain: bool = False
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect, from the address of another client; without TLS if `plain`."""
        if isinstance(self.address, str):
            return await asyncio.open_unix_connection(socket_address(self.address))
        return await asyncio.open_connection(
            "127.0.0.1",
            self.address,
            ssl=None if plain else self.tls,
            local_addr=("127.0.0.2", 0) if of_another else None,
        )


def get(path: str, headers: str = "") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n{headers}Connection: close\r\n\r\n".encode()


def trusting() -> ssl.SSLContext:
    """The TLS context of a client that verifies nothing."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    return client


@functools.cache
def served() -> ssl.SSLContext:
    """The TLS context of a server."""
    return ServingCertificate().context


class Reviews:
    """The API server's answers to reviews: one token is valid."""

    def __init__(self) -> None:
        self.count = 0

    async def create(self, _resource: Any, obj: Mapping[str, Any]) -> dict[str, Any]:
        self.count += 1
        token = obj["spec"].get("token", "good")
        return {"status": {"authenticated": token == "good", "allowed": True}}


@asynccontextmanager
async def telemetry(
    _folder: Path, reviews: Reviews | None = None, clock: Callable[[], float] = time.monotonic
) -> AsyncIterator[Port]:
    """The operator's own port, in the thread of the test."""
    server = TelemetryServer(
        render=lambda _: (b"up 1\n", "text/plain"),
        authorize=CachedReviews(delegated(reviews or Reviews()), clock),
        alive=dict,
        ready=dict,
        certificate=ServingCertificate(),
        address=("127.0.0.1", 0),
    )
    await server.start()
    try:
        good = get("/metrics", "Authorization: Bearer good\r\n")
        yield Port(server.port, (b"/metrics", b""), good, trusting())
    finally:
        await server.stop()


@asynccontextmanager
async def annotator(_folder: Path) -> AsyncIterator[Port]:
    server = HealthServer(lambda _: HttpResponse(200, b"up 1\n"))
    _, port = await server.start("127.0.0.1", 0)
    try:
        yield Port(port, (b"/metrics", b""), get("/healthz"))
    finally:
        await server.stop()


@asynccontextmanager
async def exporter(_folder: Path, context: ssl.SSLContext | None = None) -> AsyncIterator[Port]:
    with serving(tls=(lambda: context) if context else None) as connect:
        client = trusting() if context else None
        yield Port(connect.port, (b"/metrics", b""), get("/metrics"), client)


@asynccontextmanager
async def extender(
    _folder: Path, context: ssl.SSLContext | None = None, limits: Limits | None = None
) -> AsyncIterator[Port]:
    reader = ArgsReader()

    def app(given: HttpRequest) -> HttpResponse:
        if given.method == b"GET":
            return HttpResponse(200, b"ok")
        try:
            reader.read(given.body)
        except WireError as error:
            return HttpResponse(400, str(error).encode())
        return HttpResponse(200, b"read")

    async with running(app, limits, tls=context) as server:
        client = trusting() if context else None
        yield Port(server.server.port, (b"/foo/filter", b""), get("/healthz"), client)


@asynccontextmanager
async def simulation(folder: Path, *, tls: bool = False) -> AsyncIterator[Port]:
    port, digest = free_port(), hashlib.sha256(b"key").hexdigest()
    if tls:
        make_identity(folder)
    options = ServiceOptions(
        "127.0.0.1", digest, 60.0, port, Path(sys.executable), folder if tls else None
    )
    key, body = b"Authorization: Bearer key\r\n", asked("hello")
    head = b"POST %b HTTP/1.1\r\nHost: x\r\n%bContent-Length: %d\r\n\r\n"
    good = head % (PATH.encode(), key, len(body)) + body
    opened = Port(port, (PATH.encode(), key), good, trusting() if tls else None)
    service_task = asyncio.create_task(Service(options).run())
    holder = None
    try:
        async with asyncio.timeout(20):
            while holder is None:
                with contextlib.suppress(OSError):
                    # It ends when its last client is gone.
                    reader, holder = await opened.connect(of_another=True)
                await asyncio.sleep(0.01)
            holder.write(good)
            assert opened.answer in await reader.readline()
        yield opened
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
async def launcher(folder: Path) -> AsyncIterator[Port]:
    """It starts a program for each client that sends an order."""
    address = f"@test-{secrets.token_hex(8)}"
    started = [sys.executable, "-I", "-S", "-c", "print('started')"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, launcher_program.__file__, address, *started
    )
    number = iter(range(10**6))
    order = Order(str(folder / f"run-{next(number)}"), STDOUT, [], {})
    opened = Port(address, (b"/", b""), encoded(order), None, b"started", process.pid)
    try:
        async with asyncio.timeout(20):
            while True:
                with contextlib.suppress(OSError):
                    _, writer = await opened.connect()
                    writer.close()
                    break
                await asyncio.sleep(0.01)
        yield opened
    finally:
        process.terminate()
        await process.wait()


@asynccontextmanager
async def webhook(_folder: Path, context: ssl.SSLContext | None = None) -> AsyncIterator[Port]:
    """Its connections in this process; tests of `admission` have the whole."""
    shared = SharedDesk(
        lambda _body, _address: ReviewAnswer(200, b"{}", result="unchanged"), lambda _result: None
    )
    listener = Listener(
        lambda: ReviewConnection(shared),
        webhook_program.MAX_CONNECTIONS,
        context,
        webhook_program.SHARING,
    )
    await listener.start("127.0.0.1", 0)
    try:
        good, client = post(b"{}", "Connection: close"), trusting() if context else None
        yield Port(listener.address[1], (b"/assign", b""), good, client)
    finally:
        await listener.close()
        listener.abort()


@asynccontextmanager
async def console(_folder: Path) -> AsyncIterator[Port]:
    """The requests of a second user of the machine have no token."""
    args = argparse.Namespace(kubeconfig=None, context=None, as_user="", as_groups=[], as_uid="")
    served = Console(ConsoleCluster(Mock(), KUBEADM, args), Guard(0), "test")
    async with console_listening(served.application(), served.connections, 0) as port:
        served.guard = Guard(port)
        good = f"GET /static/icon.svg?token={served.guard.token} HTTP/1.1\r\nHost: 127.0.0.1:{port}"
        end = b"\r\nConnection: close\r\n\r\n"
        yield Port(port, (b"/now", b""), good.encode() + end, answer=b" 303 ")


PORTS: Final[Mapping[str, Callable[[Path], AbstractAsyncContextManager[Port]]]] = {
    "telemetry with TLS": telemetry,
    "annotator": annotator,
    "console": console,
    "exporter": exporter,
    "exporter with TLS": lambda folder: exporter(folder, served()),
    "extender": extender,
    "extender with TLS": lambda folder: extender(folder, served()),
    "extender, health": lambda folder: extender(folder, limits=HEALTH_LIMITS),
    "simulation": simulation,
    "simulation with TLS": lambda folder: simulation(folder, tls=True),
    "API server of a simulation": world,
    "launcher of a simulation": launcher,
    "webhook": webhook,
    "webhook with TLS": lambda folder: webhook(folder, served()),
}
"""Every port that a program of this project opens."""

LISTENERS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("cli/web/port.py", "listening"): ("console",),
    ("operator/admission/program.py", "WebhookServer._listen"): ("webhook", "webhook with TLS"),
    ("operator/telemetry/server.py", "TelemetryServer.__init__"): ("telemetry with TLS",),
    ("scheduling/annotator/program.py", "AnnotatorProgram._serving"): ("annotator",),
    ("scheduling/exporter/exporter.py", "main"): ("exporter", "exporter with TLS"),
    ("scheduling/extender/program.py", "ExtenderProgram._listen"): (
        "extender", "extender with TLS", "extender, health",
    ),
    ("simulate/launcher.py", ""): ("launcher of a simulation",),
    ("simulate/run.py", "Run.__init__"): ("API server of a simulation",),
    ("simulate/service.py", "Service.run"): ("simulation", "simulation with TLS"),
}  # fmt: skip
"""File and function that opens a port -> its rows in PORTS."""

SERVERS: Final[Mapping[tuple[str, str], str]] = {
    ("scheduling/exporter/server.py", "ExporterServer.__init__"): "is the exporter's server",
    ("serving/connections.py", "Listener._listen"): "is the server of most programs",
    ("serving/http_server.py", "HttpServer.start"): "is the server of most programs",
    ("simulate/api_server.py", "WorldServer.start"): "is the server of a simulation",
    ("simulate/launcher.py", "Launcher.__init__"): "is the launcher's server",
    ("simulate/launcher.py", "Launcher.run"): "is the launcher's server",
    ("node/static_pod/host.py", "is_port_free"): "binds and does not listen",
    ("scheduling/policies/builtin/pigeon_holing.py", "PigeonHoling.__init__"): "calls back",
    ("scheduling/policies/node_policy.py", "NodePolicy.__init__"): "calls back",
}
"""File and function that is a server's own, or opens no port of a cluster -> why it has no row."""


def test_every_listener_of_the_package_is_flooded() -> None:
    opened = set(listening(Path(kube_scheduler_operator.__file__).parent)) - set(SERVERS)
    assert opened == set(LISTENERS), "a port needs a row in PORTS, and its function one here"
    rows = [row for names in LISTENERS.values() for row in names]
    assert sorted(rows) == sorted(PORTS)


_OF_KUBE_SCHEDULER: Final = "kube-scheduler"

CONTAINER_PORTS: Final[Mapping[str, tuple[str, ...]]] = {
    "bindata/installation/kubeadm.yaml": ("telemetry with TLS",),
    "bindata/installation/managed.yaml": ("telemetry with TLS",),
    "bindata/installation/openshift.yaml": ("telemetry with TLS",),
    "deploy/base/deployment.yaml": ("telemetry with TLS",),
    "deploy/helm/templates/deployment.yaml": ("telemetry with TLS",),
    "templates/kube-scheduler-pod.yaml.j2": (_OF_KUBE_SCHEDULER,),
    "templates/load-policy.yaml.j2": ("exporter", "annotator"),
    "templates/secondary-scheduler-pod.yaml.j2": (_OF_KUBE_SCHEDULER,),
}
"""Manifest -> the row in PORTS of each containerPort in it."""


def test_every_port_of_a_manifest_is_flooded() -> None:
    declared = {
        path.relative_to(REPOSITORY).as_posix(): count
        for folder in ("bindata", "deploy", "templates")
        for path in (REPOSITORY / folder).rglob("*")
        if path.suffix in (".yaml", ".j2")
        and (count := len(re.findall(r"^[ -]*containerPort:", path.read_text(), re.MULTILINE)))
    }
    assert declared == {file: len(rows) for file, rows in CONTAINER_PORTS.items()}
    rows = {row for rows in CONTAINER_PORTS.values() for row in rows}
    assert rows - {_OF_KUBE_SCHEDULER} <= set(PORTS)


@pytest.mark.parametrize(
    "code",
    [
        "import socket\ndef f():\n    socket.socket().listen(5)",
        "import asyncio\nasync def f():\n    await asyncio.start_server(print, None, 1)",
        "from http.server import HTTPServer\ndef f():\n    return HTTPServer(('', 1), None)",
        "from prometheus_client import start_http_server\ndef f():\n    start_http_server(1)",
        "class A:\n    def g(self):\n        self.s.bind(1)\ndef f():\n    A()",
        "class A:\n    def g(self):\n        self.s.bind(1)\nclass B(A): pass\ndef f():\n    B()",
    ],
)
def test_a_new_listener_is_found(tmp_path: Path, code: str) -> None:
    (tmp_path / "module.py").write_text(code)
    assert ("module.py", "f") in set(listening(tmp_path))


def test_a_call_of_a_server_in_the_serving_room_is_found(tmp_path: Path) -> None:
    (tmp_path / "serving").mkdir()
    (tmp_path / "serving" / "server.py").write_text(
        "class A:\n    def g(self):\n        self.s.bind(1)\n"
        "class B:\n    def g(self):\n        A()\n"
    )
    (tmp_path / "program.py").write_text("def f():\n    B()")
    assert ("program.py", "f") in set(listening(tmp_path))


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


def peak(port: Port) -> float:
    """The most resident memory of its process since `forget_peak`, MiB."""
    lines = Path(f"/proc/{port.process}/status").read_text().splitlines()
    return int(dict(line.split(":", 1) for line in lines)["VmHWM"].split()[0]) / 1024


def forget_peak(port: Port) -> None:
    Path(f"/proc/{port.process}/clear_refs").write_text("5")


async def _send(port: Port, stream: Iterator[bytes], *, plain: bool = False) -> None:
    """Send until the server closes or does not read on, or that is enough."""
    try:
        reader, writer = await port.connect(plain=plain)
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
    reader, writer = await port.connect(of_another=True)
    writer.write(port.good)
    async with asyncio.timeout(30):
        line = await reader.readline()
    writer.transport.abort()
    return line


async def expect_survival(port: Port, *floods: Iterator[bytes], plain: bool = False) -> None:
    """The memory of the floods is bounded, and another client's request is answered after them."""
    assert port.answer in await _ask(port)
    forget_peak(port)
    before = peak(port)
    await asyncio.gather(*(_send(port, stream, plain=plain) for stream in floods))
    cost = peak(port) - before
    assert port.answer in await _ask(port)
    assert cost < MOST_MEMORY


@pytest.mark.parametrize("flood", FLOODS)
@pytest.mark.parametrize("name", PORTS)
async def test_a_flood_is_refused_and_the_next_request_is_answered(
    name: str, flood: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "QUESTIONS", {"say": say})
    clients, stream = FLOODS[flood]
    async with PORTS[name](tmp_path) as port:
        await expect_survival(port, *(stream(port) for _ in range(clients)))


def _handshake() -> Iterator[bytes]:
    """A TLS record that announces a longer ClientHello."""
    yield b"\x16\x03\x01\x40\x00\x01\x00\xff\xff\x03\x03" + bytes(8000)


@pytest.mark.parametrize("name", [name for name in PORTS if name.endswith("with TLS")])
async def test_handshakes_that_do_not_end_are_ended(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "QUESTIONS", {"say": say})
    async with PORTS[name](tmp_path) as port:
        await expect_survival(port, *(_handshake() for _ in range(200)), plain=True)


async def test_tokens_without_end_cost_the_api_server_few_reviews(tmp_path: Path) -> None:
    reviews = Reviews()

    def requests(client: int) -> Iterator[bytes]:
        for number in range(300):
            token = f"Authorization: Bearer {client}-{number}\r\n"
            yield f"GET /metrics HTTP/1.1\r\nHost: x\r\n{token}\r\n".encode()

    async with telemetry(tmp_path, reviews, lambda: 0.0) as port:
        assert port.answer in await _ask(port)
        before = reviews.count
        await asyncio.gather(*(_send(port, requests(client)) for client in range(4)))
        assert 0 < reviews.count - before <= authorize.REVIEWS_AT_ONCE
        assert port.answer in await _ask(port)


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
            reader, writer = await port.connect()
            writer.write(head + body)
            answer: Any = await reader.read()
            writer.close()
            return bytes(answer)

    answer = asyncio.run(main())
    assert b" 400 " in answer.split(b"\r\n")[0]
    assert b"more than 100000 values" in answer
