"""The server stays available whatever its clients do."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.scheduling.exporter.exporter import ExporterOptions, _tls
from kube_scheduler_operator.scheduling.exporter.server import HEAD_LIMIT, Answer, ExporterServer


def options(served: Any, client_ca: Path | None = None) -> ExporterOptions:
    return ExporterOptions(
        tls_cert_file=served.certificate,
        tls_private_key_file=served.key,
        client_ca_file=client_ca,
    )


GET = b"GET /path HTTP/1.1\r\nHost: x\r\n\r\n"


class Connect:
    """Connects to a server.

    Attributes:
        server: the server.
        port: its port.
        opened: the connections.
    """

    def __init__(self, server: ExporterServer) -> None:
        self.server, self.port = server, server.port
        self.opened: list[socket.socket] = []

    def __call__(self) -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        self.opened.append(made)
        return made


@contextlib.contextmanager
def serving(**options: Any) -> Iterator[Any]:
    """A server in a thread; gives a function that connects."""
    body = options.pop("body", b"hello\n")
    server = ExporterServer(
        ("127.0.0.1", 0), lambda path: Answer(200, body + path.encode()), **options
    )
    near, far = socket.socketpair()
    server.wake_by(near)
    thread = threading.Thread(target=server.serve, args=(60.0,), daemon=True)
    thread.start()
    connect = Connect(server)
    try:
        yield connect
    finally:
        far.send(b"x")
        thread.join(20)
        assert not thread.is_alive()
        server.close()
        for sock in (near, far, *connect.opened):
            sock.close()


def read_all(sock: Any) -> Any:
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while more := sock.recv(65536):
            data += more
    return data


def ask(connect: Any, request: bytes = GET) -> Any:
    sock = connect()
    sock.sendall(request)
    return read_all(sock)


def test_answers_and_closes_the_connection() -> None:
    with serving() as connect:
        head, _, body = ask(connect).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Content-Length: 11" in head
    assert b"Connection: close" in head
    assert body == b"hello\n/path"


@pytest.mark.parametrize(
    ("request_", "status", "body"),
    [
        (b"GET /a?b=c HTTP/1.0\r\n\r\n", b"200", b"hello\n/a"),
        (b"HEAD / HTTP/1.1\r\n\r\n", b"200", b""),
        (b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", b"405", b"only GET and HEAD"),
        (b"nonsense\r\n\r\n", b"400", b"not an HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", b"400", b"not an HTTP"),
        (b"GET / HTTP/2.0\r\n\r\n", b"400", b"not an HTTP"),
        (b"GET /" + b"a" * (2 * HEAD_LIMIT), b"431", b"too large"),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * HEAD_LIMIT, b"431", b"too large"),
        (b"GET /%00\xff HTTP/1.1\r\n\r\n", b"200", b"hello\n/%00"),
    ],
)
def test_every_request_is_answered(request_: Any, status: Any, body: Any) -> None:
    with serving() as connect:
        answer = ask(connect, request_)
    assert answer.split(b" ")[1] == status
    assert body in answer
    if not body:
        assert answer.endswith(b"\r\n\r\n")


def test_request_may_arrive_byte_by_byte() -> None:
    with serving() as connect:
        sock = connect()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in GET:
            sock.sendall(bytes([byte]))
        assert b"hello" in read_all(sock)


def test_long_response_arrives_completely() -> None:
    with serving(body=b"x" * 5_000_000) as connect:
        assert ask(connect).count(b"x") >= 5_000_000


def test_silent_client_is_dropped() -> None:
    with serving(timeout=1.0) as connect:
        slow, half = connect(), connect()
        half.sendall(b"GET / HT")
        assert read_all(slow) == read_all(half) == b""
        assert b"hello" in ask(connect)


def test_client_that_does_not_read_is_dropped() -> None:
    with serving(timeout=0.3, body=b"x" * 20_000_000) as connect:
        deaf = connect()
        deaf.sendall(GET)
        assert b"200 OK" in ask(connect)
        threading.Event().wait(0.5)
        assert len(read_all(deaf)) < 20_000_000


def test_idle_clients_do_not_block_others() -> None:
    with serving(connections=4, timeout=60.0) as connect:
        idlers = [connect() for _ in range(20)]
        assert b"hello" in ask(connect)
        assert read_all(idlers[0]) == b""  # the oldest went first


def test_half_closed_and_reset_connections_are_dropped() -> None:
    with serving() as connect:
        for _ in range(50):
            sock = connect()
            sock.sendall(b"GET /")
            sock.shutdown(socket.SHUT_WR)
            assert read_all(sock) == b""
        for _ in range(50):
            sock = connect()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            sock.sendall(GET)
            sock.close()
        assert b"hello" in ask(connect)
        # The last of them may still be on its way.
        for _ in range(200):
            if not connect.server._connections:
                break
            threading.Event().wait(0.05)
        assert not connect.server._connections


@pytest.fixture
def client_context(first_certificate: Any) -> Any:
    context = ssl.create_default_context(cafile=str(first_certificate.certificate))
    context.load_verify_locations(first_certificate.certificate)
    return context


def _get(url: Any, context: Any) -> Any:
    with urllib.request.urlopen(url, context=context, timeout=20) as answer:
        return answer.read()


def test_https(served: Any, client_context: Any) -> None:
    with serving(tls=_tls(options(served)), body=b"x" * 1_000_000) as connect:
        url = f"https://localhost:{connect.port}/"
        assert len(_get(url, client_context)) == 1_000_001
        silent = connect()  # no handshake, ever
        assert b"200 OK" not in ask(connect, GET)  # not encrypted
        assert len(_get(url, client_context)) == 1_000_001
        silent.close()


def test_renewed_certificate_is_served(
    served: Any, second_certificate: Any, client_context: Any
) -> None:
    with serving(tls=_tls(options(served))) as connect:
        url = f"https://localhost:{connect.port}/"
        assert _get(url, client_context)
        served.key.write_bytes(second_certificate.key.read_bytes())  # not yet a pair
        assert _get(url, client_context)
        served.certificate.write_bytes(second_certificate.certificate.read_bytes())
        with pytest.raises(urllib.error.URLError):
            _get(url, client_context)
        renewed = ssl.create_default_context(cafile=str(second_certificate.certificate))
        assert _get(url, renewed)


def test_client_without_a_certificate_is_rejected(
    served: Any, client_context: Any, first_certificate: Any
) -> None:
    with serving(tls=_tls(options(served, first_certificate.certificate))) as connect:
        url = f"https://localhost:{connect.port}/"
        with pytest.raises((urllib.error.URLError, OSError)):
            _get(url, client_context)
        client_context.load_cert_chain(first_certificate.certificate, first_certificate.key)
        assert _get(url, client_context)
