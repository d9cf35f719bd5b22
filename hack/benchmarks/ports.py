"""The memory that any client can make each program use through its ports, in MiB.

Each attack runs against a fresh process for a few seconds. The value is the peak of the resident
memory during the attack and for two seconds after it, minus the resident memory before it.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import resource
import selectors
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.table import REPOSITORY, Row

SECONDS: Final = 6.0
"""Duration of an attack."""

MOST_SENT: Final = 2 * 1024**3
"""Bytes that one attack sends at most."""

CONNECTIONS: Final = 4000

TARGETS: Final[Mapping[str, float]] = {
    "extender": 512.0,
    "extender, health": 64.0,
    "extender, TLS": 512.0,
    "exporter": 32.0,
    "exporter, TLS": 32.0,
    "health": 64.0,
    "operator": 128.0,
}
"""MiB by port; docs/operations.md states them."""

_BODY: Final = 64 * 1024 * 1024
_FILTER: Final = b"POST /foo/filter HTTP/1.1\r\nHost: x\r\n"
_GET: Final = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"

Stream = Iterator[bytes]


@dataclass(frozen=True)
class Attack:
    """What each of several clients sends, and whether they read the responses."""

    clients: int  # number of concurrent connections
    # the bytes of one connection, in pieces; after its end the connection stays open
    stream: Callable[[int], Stream]
    reads: bool = True  # whether the clients read


def _post(size: int) -> bytes:
    return _FILTER + b"Content-Length: %d\r\n\r\n" % size


def _chunked(_client: int) -> Stream:
    yield _FILTER + b"Transfer-Encoding: chunked\r\n\r\n"
    piece = b"2\r\nab\r\n" * 16384
    for _ in range(_BODY // (2 * 16384)):
        yield piece


def _bodies(_client: int) -> Stream:
    yield _post(_BODY - 1)
    piece = b"x" * (1 << 20)
    for _ in range(_BODY // len(piece) - 1):
        yield piece
    yield piece[:-2]


def _repeated(before: bytes, piece: bytes, after: bytes) -> Callable[[int], Stream]:
    times = (_BODY - len(before) - len(after) - 1) // len(piece)
    body = before + piece * times + after

    def stream(_client: int) -> Stream:
        yield _post(len(body))
        for at in range(0, len(body), 1 << 20):
            yield body[at : at + (1 << 20)]

    return stream


def _objects(_client: int) -> Stream:
    """As many objects with different keys as a body may have."""
    parts = b",".join(b'{"a-key-%d":1}' % number for number in range(1_490_000))
    body = b'{"NodeNames":["a"],"Pod":{"x":[' + parts + b"]}}"
    yield _post(len(body)) + body


def _recorded(client: int) -> Stream:
    """Pods that are large and have a layout that kube-scheduler does not use."""
    filler = json.dumps(["x" * 20] * 100_000)
    for number in itertools.count():
        pod = f'{{"metadata":{{"name":"p{client}-{number}","uid":"{number}"}},"more":{filler}}}'
        body = f'{{"NodeNames":["a"],"Pod":{pod}}}'.encode()
        yield _post(len(body)) + body


def _learned(client: int) -> Stream:
    """Nodes that are large and always different."""
    filler = "x" * 60_000
    for number in itertools.count():
        names = [f"n{client}-{number}-{at}" for at in range(200)]
        nodes = [
            {"metadata": {"name": name, "annotations": {"a": filler, name: filler}}}
            for name in names
        ]
        body = json.dumps(
            {"Pod": {"metadata": {"name": "p"}}, "Nodes": {"items": nodes}, "NodeNames": None}
        ).encode()
        yield _post(len(body)) + body


def _heads(_client: int) -> Stream:
    yield _GET[:-2] + b"X: " + b"y" * (31 * 1024)


def _pipelined(_client: int) -> Stream:
    while True:
        yield _GET * 1000


def _idle(_client: int) -> Stream:
    yield from ()


def _handshake(_client: int) -> Stream:
    # A TLS record of 16 KiB that announces a longer ClientHello.
    yield b"\x16\x03\x01\x40\x00\x01\x00\xff\xff\x03\x03" + b"\x00" * 8000


ATTACKS: Final[Mapping[str, Attack]] = {
    "chunks of 2 bytes": Attack(4, _chunked),
    "bodies of 64 MiB": Attack(200, _bodies),
    "a body of empty lists": Attack(1, _repeated(b'{"Pod":{},"NodeNames":[', b"[],", b"1]}")),
    "a body of objects within the limit": Attack(1, _objects),
    "a body of empty names": Attack(
        1, _repeated(b'{"Pod":{},"Nodes":null,"NodeNames":[', b'"",', b'"a"]}')
    ),
    "a body of short names": Attack(
        1, _repeated(b'{"Pod":{},"Nodes":null,"NodeNames":[', b'"abc",', b'"a"]}')
    ),
    "large Pods": Attack(2, _recorded),
    "large nodes": Attack(2, _learned),
    "unfinished headers": Attack(CONNECTIONS, _heads),
    "requests without reading": Attack(200, _pipelined, reads=False),
    "idle connections": Attack(CONNECTIONS, _idle),
    "unfinished handshakes": Attack(CONNECTIONS, _handshake),
}


def measure(ports: list[str], attacks: list[str]) -> Iterator[Row]:
    """A row for each port and attack."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        for name in ports or TARGETS:
            for attack in attacks or ATTACKS:
                with tempfile.TemporaryDirectory() as folder, _program(name, Path(folder)) as port:
                    value = _attacked(port, ATTACKS[attack])
                yield Row(f"{name}: {attack}", [value], "MiB", TARGETS[name])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@dataclass
class _Port:
    process: subprocess.Popen[bytes]
    number: int
    tls: bool

    def memory(self, what: str) -> float:
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.partition(f"{what}:")[2].split()[0]) / 1024

    def reset_peak(self) -> None:
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")


def _attacked(port: _Port, attack: Attack) -> float:
    before = port.memory("VmRSS")
    port.reset_peak()
    with contextlib.ExitStack() as stack:
        _play(port, attack, stack)
        end = time.monotonic() + 2
        while time.monotonic() < end:
            time.sleep(0.1)
    if port.process.poll() is not None:
        raise RuntimeError(f"the program ended with {port.process.returncode}")
    return port.memory("VmHWM") - before


class _Client:
    def __init__(self, sock: socket.socket, stream: Stream) -> None:
        self.socket, self.stream = sock, stream
        self.left = b""


def _play(port: _Port, attack: Attack, stack: contextlib.ExitStack) -> None:
    selector = selectors.DefaultSelector()
    stack.callback(selector.close)
    waiting = iter(range(attack.clients))
    end, sent, opened = time.monotonic() + SECONDS, 0, 0
    while time.monotonic() < end and sent < MOST_SENT:
        for client in itertools.islice(waiting, 50):
            with contextlib.suppress(OSError):
                sock = _connect(port, attack)
                stack.callback(sock.close)
                opened += 1
                events = selectors.EVENT_READ | selectors.EVENT_WRITE
                selector.register(sock, events, _Client(sock, attack.stream(client)))
        for key, events in selector.select(0.05):
            client = key.data
            try:
                if events & selectors.EVENT_READ and attack.reads and not client.socket.recv(65536):
                    selector.unregister(client.socket)
                    continue
                if events & selectors.EVENT_WRITE:
                    client.left = client.left or next(client.stream, b"")
                    if not client.left:
                        selector.modify(client.socket, selectors.EVENT_READ, client)
                        continue
                    done = client.socket.send(client.left)
                    client.left, sent = client.left[done:], sent + done
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                continue
            except OSError:
                selector.unregister(client.socket)


def _connect(port: _Port, attack: Attack) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port.number), 5)
    if port.tls and attack.stream not in (_idle, _handshake):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        sock = context.wrap_socket(sock)
    sock.setblocking(False)
    return sock


# --- the programs -------------------------------------------------------------------------------


@contextlib.contextmanager
def _program(name: str, folder: Path) -> Iterator[_Port]:
    kind, _, what = name.partition(", ")
    tls = what == "TLS" or kind == "operator"
    if tls:
        _certificate(folder)
    command = [sys.executable, "-m", "kube_scheduler_operator", *_command(kind, what, folder)]
    if kind in ("health", "operator"):
        command = [sys.executable, "-m", "benchmarks.ports", kind, str(folder)]
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=REPOSITORY / "hack")
    try:
        yield _Port(process, _port(process, log, last=what != "health"), tls)
    finally:
        process.kill()
        process.wait()


def _command(kind: str, what: str, folder: Path) -> list[str]:
    if kind == "exporter":
        files = ["--tls-cert-file", str(folder / "crt"), "--tls-private-key-file",
                 str(folder / "key")]  # fmt: skip
        listen_on = ["--listen-address", "127.0.0.1:0"]
        return ["node-metrics", *listen_on, *(files if what else [])]
    listen: dict[str, object] = {"address": "127.0.0.1", "port": 0}
    if what == "TLS":
        listen["tls"] = {"certFile": str(folder / "crt"), "keyFile": str(folder / "key")}
    if what == "health":
        listen["health"] = {"address": "127.0.0.1", "port": 0}
    config = {"policies": [{"policy": "foo"}], "watch": False, "listen": listen}
    (folder / "config.json").write_text(json.dumps(config))
    return ["extender", "--config", str(folder / "config.json")]


def _port(process: subprocess.Popen[bytes], log: Path, *, last: bool) -> int:
    """The port in the log: the last one, or of the health port, which is logged second."""
    end = time.monotonic() + 30
    while time.monotonic() < end and process.poll() is None:
        lines = [line for line in log.read_text().splitlines() if "istening" in line]
        if len(lines) > (not last):
            return int(re.findall(r"\d+", lines[-1])[-1])
        time.sleep(0.05)
    raise RuntimeError(f"the program does not listen: {log.read_text()}")


def _certificate(folder: Path) -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost",
         "-days", "2", "-keyout", folder / "key", "-out", folder / "crt"],
        check=True, capture_output=True,
    )  # fmt: skip


def main() -> None:
    """Serve as the operator does, or the annotator: operator|health FOLDER."""
    import asyncio

    from kube_scheduler_operator.operator.telemetry.authorize import AuthorizationResult
    from kube_scheduler_operator.operator.telemetry.metrics import OperatorMetrics
    from kube_scheduler_operator.operator.telemetry.server import TelemetryServer
    from kube_scheduler_operator.serving.certificate import ServingCertificate

    async def authorize(_client: object, _path: str, _address: str) -> AuthorizationResult:
        return AuthorizationResult(authenticated=False, allowed=False, reason="refused")

    async def serve() -> None:
        folder = Path(sys.argv[2])
        certificate = None
        if sys.argv[1] == "operator":
            certificate = ServingCertificate(folder / "crt", folder / "key")
        server = TelemetryServer(
            render=OperatorMetrics("0").render, authorize=authorize, alive=dict, ready=dict,
            certificate=certificate, address=("127.0.0.1", 0),
        )  # fmt: skip
        await server.start()
        print(f"listening port={server.port}", flush=True)
        await asyncio.Event().wait()

    import uvloop

    uvloop.run(serve())


if __name__ == "__main__":
    main()
