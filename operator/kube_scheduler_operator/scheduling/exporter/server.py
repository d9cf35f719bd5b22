"""A small HTTP server for a few clients, in one thread and with hard limits.

It serves GET and HEAD and closes the connection. Slow clients are dropped after a time-out, and the
oldest connection is dropped when there are too many, so idle clients never lock others out. The
standard library's server would need a thread per client and twice the memory.
"""

from __future__ import annotations

import contextlib
import logging
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ssl

log = logging.getLogger(__name__)

HEAD_LIMIT: Final = 8192
"""Maximum size of a request's header in bytes."""

CONNECTIONS: Final = 64
REQUEST_TIMEOUT: Final = 5.0
"""Seconds for a whole request, from TLS handshake to response."""

_ACCEPTED_AT_ONCE: Final = 16
_CHUNK: Final = 65536

_PHRASES: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


class _Connection:
    """One client: the data received, and the data left to send."""

    __slots__ = ("deadline", "draining", "handshake", "inbox", "outbox", "socket")

    def __init__(
        self, sock: socket.socket, handshake: ssl.SSLSocket | None, deadline: float
    ) -> None:
        self.socket, self.handshake, self.deadline = sock, handshake, deadline
        self.inbox = bytearray()
        self.outbox: memoryview | None = None
        self.draining = False  # unread input would reset the connection and lose the response


class ExporterServer:
    """The server.

    Port 0 selects a free one. `answer` returns the response for a path, in the thread of `serve`;
    `tls` the context for a new connection, None for plain HTTP. `clock` is in monotonic seconds.

    Raises:
        OSError: listening on the address failed.
    """

    def __init__(
        self,
        address: tuple[str, int],
        answer: Callable[[str], Answer],
        *,
        tls: Callable[[], ssl.SSLContext] | None = None,
        connections: int = CONNECTIONS,
        timeout: float = REQUEST_TIMEOUT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._answer, self._tls = answer, tls
        self._limit, self._timeout, self._clock = connections, timeout, clock
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._listener = socket.create_server(address, family=family, backlog=128)
        self._listener.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        # A dict keeps insertion order, which is also the order of the deadlines.
        self._connections: dict[socket.socket, _Connection] = {}

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return int(self._listener.getsockname()[1])

    def wake_by(self, sock: socket.socket) -> None:
        """Wake `serve` when this socket has received data."""
        self._selector.register(sock, selectors.EVENT_READ, "wake")

    def serve(self, seconds: float) -> bool:
        """Serve requests for `seconds`, or until woken; return whether it was woken."""
        until = self._clock() + seconds
        while True:
            pause = min(until, self._next_deadline()) - self._clock()
            woken = False
            for key, _ in self._selector.select(max(pause, 0.0)):
                if key.data == "wake":
                    woken = True
                elif key.fileobj is self._listener:
                    self._accept()
                elif isinstance(key.data, _Connection):
                    self._advance(key.data)
            self._expire()
            if woken or self._clock() >= until:
                return woken

    def close(self) -> None:
        """Drop all connections and stop listening."""
        for connection in list(self._connections.values()):
            self._drop(connection)
        self._selector.close()
        self._listener.close()

    def _next_deadline(self) -> float:
        return next((c.deadline for c in self._connections.values()), float("inf"))

    def _expire(self) -> None:
        now = self._clock()
        for connection in list(self._connections.values()):
            if connection.deadline > now:
                return
            self._drop(connection)

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:  # out of descriptors, or already closed by the client
                if self._connections:
                    self._drop(next(iter(self._connections.values())))
                log.debug("Failed to accept a connection: %s", error)
                return
            if len(self._connections) >= self._limit:
                self._drop(next(iter(self._connections.values())))
            self._open(sock)

    def _open(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        handshake: ssl.SSLSocket | None = None
        if self._tls:
            try:
                sock = handshake = self._tls().wrap_socket(
                    sock, server_side=True, do_handshake_on_connect=False
                )
            except OSError:
                sock.close()
                return
        connection = _Connection(sock, handshake, self._clock() + self._timeout)
        self._connections[sock] = connection
        self._selector.register(sock, selectors.EVENT_READ, connection)
        self._advance(connection)

    def _advance(self, connection: _Connection) -> None:
        """Continue until the connection would block, and select the event that it waits for."""
        if connection.socket not in self._connections:
            return  # dropped earlier in this iteration
        try:
            done = self._step(connection)
        except BlockingIOError:
            waiting = selectors.EVENT_READ if connection.outbox is None else selectors.EVENT_WRITE
            self._selector.modify(connection.socket, waiting, connection)
        except OSError as error:
            event = _tls_event(error) if self._tls else 0
            if event:
                self._selector.modify(connection.socket, event, connection)
            else:
                self._drop(connection)
        else:
            if done:
                self._drop(connection)

    def _step(self, connection: _Connection) -> bool:
        """Continue; return True at the end of the connection, raise if it would block."""
        if connection.handshake:
            connection.handshake.do_handshake()
            connection.handshake = None
        while connection.outbox is None:
            data = connection.socket.recv(HEAD_LIMIT)
            if not data:
                return True
            connection.inbox += data
            head, end, rest = connection.inbox.partition(b"\r\n\r\n")
            if end or len(connection.inbox) > HEAD_LIMIT:
                answer, head_only = self._answer_to(bytes(head) if end else b"")
                connection.draining = not end or bool(rest)
                connection.outbox = memoryview(_serialise(answer, head_only))
        while connection.outbox:
            sent = connection.socket.send(connection.outbox[:_CHUNK])
            connection.outbox = connection.outbox[sent:]
        return self._drain(connection) if connection.draining else True

    def _drain(self, connection: _Connection) -> bool:
        """Read and discard remaining input until the client closes or the deadline."""
        with contextlib.suppress(OSError):
            connection.socket.shutdown(socket.SHUT_WR)
        try:
            while connection.socket.recv(_CHUNK):
                pass
        except BlockingIOError:
            self._selector.modify(connection.socket, selectors.EVENT_READ, connection)
            return False
        return True

    def _answer_to(self, head: bytes) -> tuple[Answer, bool]:
        """Return the response, and whether to omit its body."""
        if not head:
            return Answer(431, b"request header too large\n"), False
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return Answer(400, b"not an HTTP/1 request\n"), False
        if words[0] not in (b"GET", b"HEAD"):
            return Answer(405, b"only GET and HEAD are allowed\n"), False
        path = words[1].decode("ascii", "replace").partition("?")[0]
        return self._answer(path), words[0] == b"HEAD"

    def _drop(self, connection: _Connection) -> None:
        self._connections.pop(connection.socket, None)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(connection.socket)
        connection.socket.close()


def _tls_event(error: OSError) -> int:
    """Return the event that TLS waits for; 0 for a real error."""
    import ssl  # deferred: it costs 5 MiB that plain HTTP does not need

    if isinstance(error, ssl.SSLWantReadError):
        return selectors.EVENT_READ
    if isinstance(error, ssl.SSLWantWriteError):
        return selectors.EVENT_WRITE
    return 0


def _serialise(answer: Answer, head_only: bool) -> bytes:
    allow = "Allow: GET, HEAD\r\n" if answer.status == 405 else ""
    head = (
        f"HTTP/1.1 {answer.status} {_PHRASES[answer.status]}\r\n"
        f"Content-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(answer.body)}\r\n"
        f"{allow}Connection: close\r\n\r\n"
    )
    return head.encode() + (b"" if head_only else answer.body)
