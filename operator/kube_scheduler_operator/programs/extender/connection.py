"""One client's connection: bytes in, requests out; answers in, bytes out."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Final

import httptools

from ...base.klog import kv
from .messages import Answer, Request, Response, text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from .http_server import Server

log = logging.getLogger(__name__)

LINGER: Final = 2.0
"""Seconds for which a client that was refused gets its bytes taken, and thrown away."""

_ONE_WRITE: Final = 256 * 1024
"""Up to so many bytes, copying an answer behind its head is cheaper than a second system call."""

_REASONS: Final[Mapping[int, bytes]] = {
    200: b"OK", 400: b"Bad Request", 401: b"Unauthorized", 403: b"Forbidden", 404: b"Not Found",
    405: b"Method Not Allowed", 408: b"Request Timeout", 413: b"Content Too Large",
    417: b"Expectation Failed", 431: b"Request Header Fields Too Large",
    500: b"Internal Server Error", 501: b"Not Implemented", 503: b"Service Unavailable",
    505: b"HTTP Version Not Supported",
}  # fmt: skip


_OK: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%bContent-Length: %d\r\n\r\n"


_BUG: Final = text(500, "this is a bug in the extender; its log has the traceback")


class Connection(asyncio.Protocol):
    """One client. The methods `on_…` are called by httptools' parser (llhttp)."""

    # What of a request has come so far.
    _NOTHING, _HEAD, _BODY = range(3)

    def __init__(self, server: Server) -> None:
        self._server = server
        self._limits = server.limits
        self._app = server.app
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._tls = False
        self._verified = False
        self._receiving = Connection._NOTHING
        self._since = server.now  # of the last step, for `check`
        self._url = b""
        self._chunks: list[bytes] = []
        self._size = 0
        self._around = 0  # bytes since the last one that belonged to a body
        self._expects = False
        self._waiting: deque[tuple[Request, bool]] = deque()
        self._task: asyncio.Task[None] | None = None  # the answer that is being made
        self._unread = False  # the client does not take what was written
        self._ending = False  # close when everything is answered
        self._refused = False  # reads on only so that the client gets to see why

    @property
    def idle(self) -> bool:
        """Whether it waits for the client's next request."""
        return not (self._receiving or self._waiting or self._task)

    # --- asyncio ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there."""
        self._transport = transport  # type: ignore[assignment] # uvloop's has all the methods
        tls = transport.get_extra_info("ssl_object")
        self._tls = tls is not None
        self._verified = self._tls and bool(tls.getpeercert())
        self._server.joined(self)

    def connection_lost(self, _error: Exception | None) -> None:
        """It is gone; what it still waits for is of no use to anybody."""
        self._transport = None
        self._waiting.clear()
        self._server.left(self)

    def data_received(self, data: bytes) -> None:
        """Bytes of one request, or of many."""
        if self._refused:
            return
        if not self._receiving:
            self._since = self._server.now
        self._around += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # refused in `on_message_complete`
        except httptools.HttpParserError as error:
            self._refuse(400, f"this is no HTTP/1.1 request: {error}")
        if self._around > self._limits.head and self._receiving:
            self._refuse(431, f"headers are limited to {self._limits.head} bytes")

    def eof_received(self) -> bool:
        """The client sends no more; it may still read (half-closed)."""
        if self._tls or not (self._waiting or self._task or self._unread):
            return False
        self._ending = True
        return True  # keep our half open until everything is answered

    def pause_writing(self) -> None:
        """The client does not read: neither do we."""
        self._unread, self._since = True, self._server.now
        self._read(False)

    def resume_writing(self) -> None:
        """It reads again."""
        self._unread, self._since = False, self._server.now
        self._next()

    # --- the parser ---------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """A request begins."""
        self._receiving = Connection._HEAD
        self._url = b""
        self._size = 0
        self._expects = False

    def on_url(self, url: bytes) -> None:
        """A part of the target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; only those that change how the body is read matter here."""
        length = len(name)
        if length == 14 and name.lower() == b"content-length":
            if value.isdigit() and int(value[:20]) > self._limits.body:
                self._too_large()
        elif length == 6 and name.lower() == b"expect":
            if value.strip().lower() == b"100-continue":
                self._expects = True
            else:
                self._refuse(417, "the only expectation that is met is 100-continue")

    def on_headers_complete(self) -> None:
        """The head is over."""
        self._receiving = Connection._BODY
        if self._expects and not self._refused and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, chunk: bytes) -> None:
        """A part of the body."""
        if self._refused:
            return
        self._around = 0
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._size > self._limits.body:
            self._too_large()

    def on_message_complete(self) -> None:
        """A request is complete: answer it, or keep it until those before it are answered."""
        if self._parser.should_upgrade():
            self._refuse(501, "this server speaks HTTP/1.1 and upgrades to nothing else")
        if self._refused:
            return
        self._receiving = Connection._NOTHING
        self._around = 0
        chunks = self._chunks
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        self._chunks = []
        path, _, query = self._url.partition(b"?")
        request = Request(self._parser.get_method(), path, query, body, self._verified)
        alive = self._parser.should_keep_alive()
        if self._waiting or self._task or self._unread:
            self._waiting.append((request, alive))
        else:
            self._serve(request, alive)

    # --- answers ------------------------------------------------------------------------------

    def _serve(self, request: Request, alive: bool) -> None:
        try:
            answer = self._app(request)
        except Exception:
            log.exception("A request failed", extra=kv(path=request.path[:200].decode("latin-1")))
            answer = _BUG
        if isinstance(answer, bytes | Response):
            self._send(answer, request, alive)
        else:
            self._read(False)
            self._task = asyncio.ensure_future(self._wait(answer, request, alive))

    async def _wait(self, pending: Awaitable[Answer], request: Request, alive: bool) -> None:
        try:
            answer = await pending
        except Exception:
            log.exception("A request failed", extra=kv(path=request.path[:200].decode("latin-1")))
            answer = _BUG
        self._task = None
        self._send(answer, request, alive)
        self._next()

    def _next(self) -> None:
        """Answer what came in while that was not possible, then go on reading."""
        while self._waiting and not self._task and not self._unread:
            self._serve(*self._waiting.popleft())
        if not (self._waiting or self._task or self._unread):
            self._read(True)
            if self._ending and not self._receiving and self._transport is not None:
                self._transport.close()

    def _read(self, on: bool) -> None:
        transport = self._transport
        if transport is None or transport.is_closing() or transport.is_reading() == on:
            return
        if on:
            transport.resume_reading()
        else:
            transport.pause_reading()

    def _send(self, answer: Answer, request: Request, alive: bool) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        close = b""
        if not alive or (self._ending and not self._waiting):
            close = b"Connection: close\r\n"
        if isinstance(answer, bytes):
            body, head = answer, _OK % (close, len(answer))
        else:
            body, head = answer.body, _head(answer, close)
        if request.method == b"HEAD":
            transport.write(head)
        elif len(body) <= _ONE_WRITE:
            transport.write(head + body)
        else:
            transport.write(head)
            transport.write(body)
        self._since = self._server.now
        if close:
            self._waiting.clear()
            transport.close()

    def _too_large(self) -> None:
        self._refuse(413, f"bodies are limited to {self._limits.body} bytes")

    def _refuse(self, status: int, why: str) -> None:
        """Say why, and end the connection. Further bytes are read and thrown away for a while.

        Closing at once would reset the connection, and the client would never see the answer.
        """
        if self._refused or self._transport is None or self._transport.is_closing():
            return
        self._refused, self._since = True, self._server.now
        self._chunks = []
        self._server.refused[status] = self._server.refused.get(status, 0) + 1
        if self._task or self._waiting:  # its place is behind answers that may never come
            self.abort()
            return
        answer = text(status, why)
        self._transport.write(_head(answer, b"Connection: close\r\n") + answer.body)
        if self._transport.can_write_eof():
            self._transport.write_eof()
        else:
            self._transport.close()

    # --- the server ---------------------------------------------------------------------------

    def finish(self) -> None:
        """Close when everything is answered, at once if there is nothing to answer."""
        self._ending = True
        if self._transport is not None and (self.idle or self._refused):
            self._transport.close()

    def abort(self) -> None:
        """Close, whatever is going on."""
        if self._task is not None:
            self._task.cancel()
        if self._transport is not None:
            self._transport.abort()

    def check(self, now: float) -> None:
        """End it if the client has had enough time."""
        limits, waited = self._limits, now - self._since
        if self._refused:
            if waited > LINGER:
                self.abort()
        elif self._unread:
            if waited > limits.write_seconds:
                self.abort()
        elif self._task:
            return  # it is us who are slow
        elif not self._receiving:
            if waited > limits.idle_seconds:
                self.finish()
        elif waited > (
            limits.head_seconds if self._receiving == Connection._HEAD else limits.body_seconds
        ):
            self._refuse(408, "the request did not arrive in time")


def _head(answer: Response, close: bytes) -> bytes:
    reason = _REASONS.get(answer.status, b"Unknown")
    return b"HTTP/1.1 %d %b\r\nContent-Type: %b\r\n%bContent-Length: %d\r\n\r\n" % (
        answer.status,
        reason,
        answer.content_type,
        close,
        len(answer.body),
    )
