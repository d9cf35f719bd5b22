"""One connection of the webhook: bounded before parsed, and in fair shares.

A request is received, decided and answered before the next one of the connection. A body that has
not completely arrived with its head needs a ticket; a complete one waits for the turn of its
address. Nothing that an API server may send for a Pod ends its connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

import httptools

from ...base.json_text import count_values, separators
from ...serving.connections import ServedConnection
from ...serving.http_connection import CLOSE, head_of
from ...serving.sharing import source
from .decisions import ANSWER_SECONDS, CANNOT_DECIDE, ReviewAnswer, text
from .fair_shares import AddressTurns, BodyShares, BodyTicket

PATH: Final = b"/assign"

READ_SECONDS: Final = ANSWER_SECONDS
"""How long a request may take, from its first byte; the API server has given up by then."""

MAX_HEAD: Final = 16 * 1024
"""Bytes of the request line and headers; an API server sends some 300."""

MAX_BODY: Final = 4 * 1024 * 1024
"""Bytes of a review. API servers accept requests of 3 MiB and store objects of 1.5 MiB; a review
has the Pod once, with its defaults."""

MAX_DISCARDED: Final = 32 * 1024 * 1024
"""Bytes of a larger body that are read and discarded, so that the connection stays: a Pod of a
tenant must not cost the API server its connections."""

MAX_VALUES: Final = 100_000
"""Values in a body, counted by the characters before them; parsing that many takes some 15 ms. A
Pod has a few hundred."""

LINGER: Final = 0.5
"""Seconds in which a rejected client can receive the reason."""

TOO_LARGE: Final = text(413, f"the body has more than {MAX_BODY} bytes", "invalid")
BUSY: Final = text(429, "too many concurrent requests", "busy")
TOO_MANY_VALUES: Final = text(413, f"the body has more than {MAX_VALUES} values", "invalid")


@dataclass(frozen=True, slots=True)
class SharedDesk:
    """The state that all connections of the webhook share."""

    # called with the body and address of a request
    decide: Callable[[bytes, str], ReviewAnswer | Awaitable[ReviewAnswer]]
    count: Callable[[str], None]  # called with the result of each request
    bodies: BodyShares = field(default_factory=BodyShares)
    turns: AddressTurns = field(default_factory=AddressTurns)
    connections: set[ReviewConnection] = field(default_factory=set)

    @property
    def busy(self) -> bool:
        return any(not connection.idle for connection in self.connections)


class ReviewState(Enum):
    """What a connection waits for."""

    HEAD = auto()
    TICKET = auto()
    BODY = auto()
    TURN = auto()
    ANSWER = auto()
    END = auto()


class ReviewConnection(ServedConnection):
    """A connection of a client."""

    def __init__(self, shared: SharedDesk) -> None:
        self._shared = shared
        self._loop = asyncio.get_running_loop()
        self._address = ""
        self._state = ReviewState.HEAD
        self._buffer = bytearray()  # received and not yet used
        self._body = bytearray()
        self._left = self._separators = 0
        self._counted = MAX_VALUES  # separators until values are counted again
        self._alive = True
        self._refusal: ReviewAnswer | None = None  # of a body whose rest is discarded
        self._ticket: BodyTicket | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def idle(self) -> bool:
        return self._state is ReviewState.END or (
            self._state is ReviewState.HEAD and not self._buffer
        )

    # --- asyncio ----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._address = source(transport.get_extra_info("peername") or ())
        self._shared.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._shared.connections.discard(self)
        self._end()

    def data_received(self, data: bytes) -> None:
        if self._state is ReviewState.END:
            return
        self._buffer += data
        if self._state is ReviewState.HEAD:
            self._read_head()
        elif self._state is ReviewState.BODY:
            self._read_body()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        """End a connection whose client does not read its small answers; API servers do."""
        self._abort()

    # --- a request --------------------------------------------------------------------------------

    def _read_head(self) -> None:
        if self._state is not ReviewState.HEAD or not self._buffer:
            return
        if self._timer is None:
            self._timer = self._loop.call_later(READ_SECONDS, self._late)
        end = self._buffer.find(b"\r\n\r\n", 0, MAX_HEAD) + 4
        if end < 4:
            if len(self._buffer) >= MAX_HEAD:
                self._refuse(text(431, f"the head has more than {MAX_HEAD} bytes"))
            return
        head = read_head(bytes(self._buffer[:end]))
        del self._buffer[:end]
        if isinstance(head, ReviewAnswer):
            self._refuse(head)
            return
        length, self._alive = head
        self._left = length
        self._separators, self._counted = 0, MAX_VALUES
        self._refusal = TOO_LARGE if length > MAX_BODY else None
        if len(self._buffer) >= length:
            self._receive()
            return
        self._state = ReviewState.TICKET
        self._read(False)
        stored = length if self._refusal is None else 0
        self._ticket = BodyTicket(self._address, length, stored, self._admitted)
        self._shared.bodies.enter(self._ticket)

    def _admitted(self) -> None:
        self._loop.call_soon(self._receive)  # not within another connection's call

    def _receive(self) -> None:
        if self._state is ReviewState.END:
            return
        self._state = ReviewState.BODY
        self._read(True)
        self._read_body()

    def _read_body(self) -> None:
        part = bytes(memoryview(self._buffer)[: self._left])
        del self._buffer[: len(part)]
        self._left -= len(part)
        if self._refusal is None:
            self._separators += separators(part)
            self._body += part
            if self._separators > self._counted and self._has_too_many_values():
                self._refusal = TOO_MANY_VALUES
                self._body = bytearray()
        if self._left:
            return
        self._leave()
        self._read(False)
        if self._refusal is not None:
            self._send(self._refusal)
            return
        self._state = ReviewState.TURN
        self._shared.turns.add(self._address, self._decide)

    def _has_too_many_values(self) -> bool:
        """Count the values that have arrived, without those in strings.

        They cannot reach the limit before as many separators have arrived as are left of it.
        """
        values = count_values(bytes(self._body), MAX_VALUES)
        self._counted = self._separators + MAX_VALUES - values
        return values >= MAX_VALUES

    def _decide(self) -> None:
        if self._state is not ReviewState.TURN:
            return
        body, self._body = bytes(self._body), bytearray()
        answer = self._shared.decide(body, self._address)
        if isinstance(answer, ReviewAnswer):
            self._send(answer)
        else:
            self._state = ReviewState.ANSWER
            self._task = asyncio.ensure_future(self._wait(answer))

    async def _wait(self, answer: Awaitable[ReviewAnswer]) -> None:
        self._send(await answer)

    # --- its end ----------------------------------------------------------------------------------

    def _late(self) -> None:
        self._timer = None
        if self._state is ReviewState.HEAD:
            self._abort()
        elif self._state is ReviewState.BODY:
            self._refuse(text(408, "the body did not arrive in time", "error"))
        elif self._state is ReviewState.ANSWER:
            self._send(CANNOT_DECIDE)
        elif self._state is ReviewState.TURN:
            self._send(BUSY)
        else:
            self._refuse(BUSY)

    def _send(self, answer: ReviewAnswer) -> None:
        """Answer a request whose body is complete; the connection stays unless it is invalid."""
        if self._state is ReviewState.END or self._transport is None:
            return
        self._forget()
        self.proven = self.proven or answer.status == 200
        stays = self._alive and (answer.status != 400)
        self._write(answer, stays=stays)
        if not stays:
            self._close()
            return
        self._state = ReviewState.HEAD
        self._read(True)
        if self._buffer:
            self._loop.call_soon(self._read_head)

    def _refuse(self, answer: ReviewAnswer) -> None:
        """Answer a request whose body is not complete, and end the connection.

        Nothing more is read. The connection ends later, because a client that still sends would
        lose an answer that it has not received by then.
        """
        self._write(answer, stays=False)
        self._read(False)
        self._end()
        self._loop.call_later(LINGER, self._abort)

    def _close(self) -> None:
        self._end()
        if self._transport is not None:
            self._transport.close()
            self._loop.call_later(LINGER, self._abort)

    def _abort(self) -> None:
        self._end()
        if self._transport is not None:
            self._transport.abort()

    def _end(self) -> None:
        self._forget()
        self._state = ReviewState.END
        self._buffer, self._body = bytearray(), bytearray()
        self._leave()

    def _forget(self) -> None:
        """Cancel the timer and the task of the request in progress."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None and self._task is not asyncio.current_task(self._loop):
            self._task.cancel()
        self._timer = self._task = None

    def _leave(self) -> None:
        ticket, self._ticket = self._ticket, None
        if ticket is not None:
            self._shared.bodies.leave(ticket)

    def _write(self, answer: ReviewAnswer, *, stays: bool) -> None:
        if answer.result:
            self._shared.count(answer.result)
        if self._transport is None or self._transport.is_closing():
            return
        self._transport.write(head_of(answer, b"" if stays else CLOSE) + answer.body)


# --- the head of a request ------------------------------------------------------------------------


class _Reader:
    """Callbacks of httptools."""

    def __init__(self) -> None:
        self.url = b""
        self.headers: dict[bytes, bytes] = {}

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value


def read_head(head: bytes) -> tuple[int, bool] | ReviewAnswer:
    """Return the bytes of the body, and whether the client may send another request.

    A ReviewAnswer rejects the request and ends the connection. The body must have a length: each
    chunk of a chunked body would cost a call, and any client may send chunks of one byte. API
    servers always send a length.
    """
    reader = _Reader()
    parser = httptools.HttpRequestParser(reader)
    try:
        parser.feed_data(head)
    except (httptools.HttpParserError, httptools.HttpParserUpgrade):
        return text(400, "the request is not HTTP/1.1")
    if reader.url.partition(b"?")[0] != PATH:
        return text(404, f"the path is {PATH.decode()}")
    if parser.get_method() != b"POST":
        return text(405, "the method is POST")
    if reader.headers.get(b"content-encoding"):
        return text(415, "send the body without Content-Encoding", "invalid")
    length = reader.headers.get(b"content-length", b"").strip()
    if b"transfer-encoding" in reader.headers or not length.isdigit():
        return text(411, "send the body with Content-Length, not in chunks", "invalid")
    if len(length) > 12 or int(length) > MAX_DISCARDED:
        return TOO_LARGE
    return int(length), parser.should_keep_alive()
