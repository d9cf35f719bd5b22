"""A small HTTP server for a few readers, in one thread and with bounds that nobody can get around.

It takes GET and HEAD, answers and closes. Whoever is slow is dropped when his time is over, and who
waits the longest goes first when there are too many: readers are never kept out by idlers. The
standard library's server would cost a thread for each of them, and twice the memory.
"""

from __future__ import annotations

import contextlib
import logging
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    import ssl

log = logging.getLogger(__name__)

HEAD_LIMIT: Final = 8192
"""Bytes of a request's head."""

CONNECTIONS: Final = 64
PATIENCE: Final = 5.0
"""Seconds for a whole request, TLS handshake included, and for its answer."""

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
    """What a request gets.

    Attributes:
        status: of HTTP.
        body: the bytes.
        content_type: their type.
    """

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


class _Handshake(Protocol):
    def do_handshake(self) -> None: ...


class _Connection:
    """One client: what it sent, and what is left to send."""

    __slots__ = ("deadline", "deaf", "handshake", "inbox", "outbox", "socket")

    def __init__(self, sock: socket.socket, handshake: _Handshake | None, deadline: float) -> None:
        self.socket, self.handshake, self.deadline = sock, handshake, deadline
        self.inbox = bytearray()
        self.outbox: memoryview | None = None
        self.deaf = False  # answered before all was read: read on, or the answer is lost in a reset


class Server:
    """Answers until it is closed.

    Args:
        address: host and port; port 0 takes any.
        answer: the answer for a path; called in the thread of `serve`.
        tls: gives the context for a new connection; None for plain HTTP.
        connections: how many at a time.
        patience: see PATIENCE.
        clock: monotonic seconds.

    Raises:
        OSError: the address cannot be listened at.
    """

    def __init__(
        self,
        address: tuple[str, int],
        answer: Callable[[str], Answer],
        *,
        tls: Callable[[], ssl.SSLContext] | None = None,
        connections: int = CONNECTIONS,
        patience: float = PATIENCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._answer, self._tls = answer, tls
        self._limit, self._patience, self._clock = connections, patience, clock
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._listener = socket.create_server(address, family=family, backlog=128)
        self._listener.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        # A dict keeps the order of arrival, which is also that of the deadlines.
        self._connections: dict[socket.socket, _Connection] = {}

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listener.getsockname()[1])

    def wake_by(self, sock: socket.socket) -> None:
        """Let `serve` return when something arrives at this socket, too."""
        self._selector.register(sock, selectors.EVENT_READ, "wake")

    def serve(self, seconds: float) -> None:
        """Answer for so long, or until woken."""
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
                return

    def close(self) -> None:
        """Drop everybody and stop listening."""
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
            except OSError as error:  # no descriptors left, or it is gone again
                if self._connections:
                    self._drop(next(iter(self._connections.values())))
                log.debug("A connection was not taken: %s", error)
                return
            if len(self._connections) >= self._limit:
                self._drop(next(iter(self._connections.values())))
            self._welcome(sock)

    def _welcome(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        handshake: _Handshake | None = None
        if self._tls:
            try:
                sock = handshake = self._tls().wrap_socket(
                    sock, server_side=True, do_handshake_on_connect=False
                )
            except OSError:
                sock.close()
                return
        connection = _Connection(sock, handshake, self._clock() + self._patience)
        self._connections[sock] = connection
        self._selector.register(sock, selectors.EVENT_READ, connection)
        self._advance(connection)

    def _advance(self, connection: _Connection) -> None:
        """Do what can be done now; what it waits for then is what is selected."""
        if connection.socket not in self._connections:
            return  # dropped for another one in this very round
        try:
            done = self._step(connection)
        except BlockingIOError:
            waiting = selectors.EVENT_READ if connection.outbox is None else selectors.EVENT_WRITE
            self._selector.modify(connection.socket, waiting, connection)
        except OSError as error:
            wanted = _wanted(error) if self._tls else 0
            if wanted:
                self._selector.modify(connection.socket, wanted, connection)
            else:
                self._drop(connection)
        else:
            if done:
                self._drop(connection)

    def _step(self, connection: _Connection) -> bool:
        """True when the connection has ended; else raises what it waits for."""
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
                answer, silent = self._answer_to(bytes(head) if end else b"")
                connection.deaf = not end or bool(rest)
                connection.outbox = memoryview(_serialise(answer, silent))
        while connection.outbox:
            sent = connection.socket.send(connection.outbox[:_CHUNK])
            connection.outbox = connection.outbox[sent:]
        if connection.deaf:
            return self._hear_out(connection)
        return True

    def _hear_out(self, connection: _Connection) -> bool:
        """Read what is still coming; the deadline ends it."""
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
        """The answer, and whether its body is to be left out."""
        if not head:
            return Answer(431, b"the request's head is too long\n"), False
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return Answer(400, b"this is no request of HTTP/1\n"), False
        if words[0] not in (b"GET", b"HEAD"):
            return Answer(405, b"only GET and HEAD are served\n"), False
        path = words[1].decode("ascii", "replace").partition("?")[0]
        return self._answer(path), words[0] == b"HEAD"

    def _drop(self, connection: _Connection) -> None:
        self._connections.pop(connection.socket, None)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(connection.socket)
        connection.socket.close()


def _wanted(error: OSError) -> int:
    """What TLS waits for, 0 if the error is a real one."""
    import ssl  # here, because it costs 5 MiB that plain HTTP does not need

    if isinstance(error, ssl.SSLWantReadError):
        return selectors.EVENT_READ
    if isinstance(error, ssl.SSLWantWriteError):
        return selectors.EVENT_WRITE
    return 0


def _serialise(answer: Answer, silent: bool) -> bytes:
    allow = "Allow: GET, HEAD\r\n" if answer.status == 405 else ""
    head = (
        f"HTTP/1.1 {answer.status} {_PHRASES[answer.status]}\r\n"
        f"Content-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(answer.body)}\r\n"
        f"{allow}Connection: close\r\n\r\n"
    )
    return head.encode() + (b"" if silent else answer.body)
