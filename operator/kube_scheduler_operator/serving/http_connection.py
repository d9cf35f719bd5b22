"""One client connection: parses requests and writes responses."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Mapping
from typing import Any, ClassVar, Final

import httptools

from ..base.klog import kv
from .connections import ServedConnection
from .http_types import Answer, App, HttpRequest, HttpResponse, Limits, text
from .sharing import source

log = logging.getLogger(__name__)

LINGER: Final = 2.0
"""Seconds during which further bytes of a refused client are read and discarded."""

CLOSE: Final = b"Connection: close\r\n"

_ONE_WRITE: Final = 256 * 1024
"""Up to this size, copying a body behind its headers is cheaper than a second system call."""

_REASONS: Final[Mapping[int, bytes]] = {
    200: b"OK", 400: b"Bad Request", 401: b"Unauthorized", 403: b"Forbidden", 404: b"Not Found",
    405: b"Method Not Allowed", 408: b"Request Timeout", 411: b"Length Required",
    413: b"Content Too Large", 415: b"Unsupported Media Type", 417: b"Expectation Failed",
    429: b"Too Many Requests", 431: b"Request Header Fields Too Large",
    500: b"Internal Server Error", 501: b"Not Implemented", 503: b"Service Unavailable",
    504: b"Gateway Timeout",
}  # fmt: skip

_OK: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%bContent-Length: %d\r\n\r\n"


class Connections:
    """The open connections of a server."""

    def __init__(self, app: App, limits: Limits | None = None) -> None:
        self.app, self.limits = app, limits or Limits()
        self.connections: dict[Connection, None] = {}  # in the order of arrival
        # number of requests that a `Connection` refused itself, by status
        self.refused: dict[int, int] = {}
        self.held = 0  # bytes of all bodies that are being received or handled
        self.now = 0.0  # the loop's time, updated once a second
        self.empty = asyncio.Event()

    def joined(self, connection: Connection) -> None:
        self.connections[connection] = None

    def left(self, connection: Connection) -> None:
        self.connections.pop(connection, None)
        if not self.connections:
            self.empty.set()

    def relieve(self) -> None:
        """Refuse the client with most of all bodies, which together are too large."""
        max(self.connections, key=lambda connection: connection.held).overload()


class Connection(ServedConnection):
    """One client connection. httptools' parser (llhttp) calls the methods `on_…`."""

    BUG: ClassVar = text(500, "internal error; the extender's log has the traceback")

    # The part of a request that is being received.
    _NOTHING, _HEAD, _BODY = range(3)

    def __init__(self, server: Connections) -> None:
        self._server = server
        self._limits = server.limits
        self._app = server.app
        self._parser = httptools.HttpRequestParser(self)
        self._tls = False
        self._certificate: Mapping[str, Any] = {}
        self._address = ""
        self._headers: dict[bytes, bytes] = {}  # empty unless a subclass keeps them
        self._receiving = Connection._NOTHING
        self._since = server.now  # time of the last progress, for `check`
        self._url = b""
        self._body: bytes | bytearray = b""
        self.held = 0  # bytes of the bodies that are being received or handled
        self._around = 0  # bytes since the last byte of a body
        self._expects = False
        self._waiting: deque[tuple[HttpRequest, bool]] = deque()
        self._task: asyncio.Task[None] | None = None  # the response that is being computed
        self._unread = False  # the client does not read what was written
        self._ending = False  # close after the last response
        self._refused = False  # reads on only so that the client receives the reason

    @property
    def idle(self) -> bool:
        return not (self._receiving or self._waiting or self._task)

    # --- asyncio ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        tls = transport.get_extra_info("ssl_object")
        self._tls = tls is not None
        self._certificate = (tls.getpeercert() if tls is not None else None) or {}
        self._address = source(transport.get_extra_info("peername") or ())
        self._server.joined(self)

    def connection_lost(self, error: Exception | None) -> None:
        """Drop the pending requests."""
        super().connection_lost(error)
        self._waiting.clear()
        self._release(self.held)
        self._server.left(self)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if not self._receiving:
            self._since = self._server.now
        self._around += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # `on_message_complete` refuses it
        except httptools.HttpParserError as error:
            self._refuse(400, f"malformed HTTP/1.1 request: {error}")
        if self._around > self._limits.head and self._receiving:
            self._refuse(431, f"headers are limited to {self._limits.head} bytes")

    def eof_received(self) -> bool:
        """Note that the client has closed its half; it may still read."""
        if self._tls or not (self._waiting or self._task or self._unread):
            return False
        self._ending = True
        return True  # keep our half open until the last response

    def pause_writing(self) -> None:
        """Stop reading, as the client does."""
        self._unread, self._since = True, self._server.now
        self._read(False)

    def resume_writing(self) -> None:
        self._unread, self._since = False, self._server.now
        self._next()

    # --- the parser ---------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._receiving = Connection._HEAD
        self._url = b""
        self._expects = False

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Use only the headers that affect the reading of the body."""
        length = len(name)
        if length == 14 and name.lower() == b"content-length":
            if value.isdigit() and int(value[:20]) > self._limits.body:
                self._too_large()
        elif length == 6 and name.lower() == b"expect":
            if value.strip().lower() == b"100-continue":
                self._expects = True
            else:
                self._refuse(417, "the only supported expectation is 100-continue")

    def on_headers_complete(self) -> None:
        self._receiving = Connection._BODY
        if self._expects and not self._refused and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, chunk: bytes) -> None:
        if self._refused:
            return
        self._around = 0
        # Not a list: an object for each chunk would multiply the memory of small ones.
        if not self._body:
            self._body = chunk
        elif type(self._body) is bytearray:
            self._body += chunk
        else:
            self._body = bytearray(self._body) + chunk
        size, server = len(chunk), self._server
        self.held += size
        server.held += size
        if len(self._body) > self._limits.body:
            self._too_large()
        elif server.held > self._limits.bodies:
            server.relieve()

    def on_message_complete(self) -> None:
        """Handle a complete request, or queue it behind those before it."""
        if self._parser.should_upgrade():
            self._refuse(501, "this server supports only HTTP/1.1, without upgrades")
        if self._refused:
            return
        self._receiving = Connection._NOTHING
        self._around = 0
        body, self._body = bytes(self._body), b""
        path, _, query = self._url.partition(b"?")
        request = HttpRequest(
            self._parser.get_method(), path, query, body,
            self._certificate, self._headers, self._address,
        )  # fmt: skip
        alive = self._parser.should_keep_alive()
        if self._waiting or self._task or self._unread:
            self._waiting.append((request, alive))
        else:
            self._serve(request, alive)

    # --- responses ----------------------------------------------------------------------------

    def _serve(self, request: HttpRequest, alive: bool) -> None:
        try:
            answer = self._app(request)
        except Exception:
            log.exception("A request failed", extra=kv(path=request.path[:200].decode("latin-1")))
            answer = self.BUG
        if isinstance(answer, bytes | HttpResponse):
            self._send(answer, request, alive)
        else:
            self._read(False)
            self._task = asyncio.ensure_future(self._wait(answer, request, alive))

    async def _wait(self, pending: Awaitable[Answer], request: HttpRequest, alive: bool) -> None:
        try:
            answer = await pending
        except Exception:
            log.exception("A request failed", extra=kv(path=request.path[:200].decode("latin-1")))
            answer = self.BUG
        self._task = None
        self._send(answer, request, alive)
        self._next()

    def _next(self) -> None:
        """Handle the queued requests, then continue to read."""
        while self._waiting and not self._task and not self._unread:
            self._serve(*self._waiting.popleft())
        if not (self._waiting or self._task or self._unread):
            self._read(True)
            if self._ending and not self._receiving and self._transport is not None:
                self._transport.close()

    def _send(self, answer: Answer, request: HttpRequest, alive: bool) -> None:
        self._release(len(request.body))
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        close = b""
        if not alive or (self._ending and not self._waiting):
            close = CLOSE
        if isinstance(answer, bytes):
            body, head = answer, _OK % (close, len(answer))
            self.proven = True
        else:
            body, head = answer.body, head_of(answer, close)
            self.proven = self.proven or self.proves(request, answer)
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

    def proves(self, _request: HttpRequest, answer: HttpResponse) -> bool:
        """Return whether the connection was used as intended."""
        return answer.status == 200

    def _release(self, size: int) -> None:
        """Stop counting `size` bytes of bodies; a refusal has already released all of them."""
        size = min(size, self.held)
        self.held -= size
        self._server.held -= size

    def _too_large(self) -> None:
        self._refuse(413, f"bodies are limited to {self._limits.body} bytes")

    def _refuse(self, status: int, why: str) -> None:
        """Send the reason and end the connection; further bytes are discarded for a while.

        Closing at once would reset the connection before the client reads the response.
        """
        if self._refused or self._transport is None or self._transport.is_closing():
            return
        self._refused, self._since = True, self._server.now
        self._body = b""
        self._release(self.held)
        self._server.refused[status] = self._server.refused.get(status, 0) + 1
        if (
            self._task or self._waiting
        ):  # the response would be queued behind others that may never complete
            self.abort()
            return
        answer = text(status, why)
        self._transport.write(head_of(answer, CLOSE) + answer.body)
        if self._transport.can_write_eof():
            self._transport.write_eof()
        else:
            self._transport.close()

    # --- the server ---------------------------------------------------------------------------

    def finish(self) -> None:
        """Close after the last response, or at once if no request is pending."""
        self._ending = True
        if self._transport is not None and (self.idle or self._refused):
            self._transport.close()

    def overload(self) -> None:
        """Refuse the request in progress, because all bodies together are too large."""
        self._refuse(503, f"all bodies together are limited to {self._limits.bodies} bytes: retry")

    def abort(self) -> None:
        """Close at once."""
        if self._task is not None:
            self._task.cancel()
        if self._transport is not None:
            self._transport.abort()

    def check(self, now: float) -> None:
        """End the connection if the client has exceeded a time limit."""
        limits, waited = self._limits, now - self._since
        if self._refused:
            if waited > LINGER:
                self.abort()
        elif self._unread:
            if waited > limits.write_seconds:
                self.abort()
        elif self._task:
            return  # the client waits for us
        elif not self._receiving:
            if waited > limits.idle_seconds:
                self.finish()
        elif waited > (
            limits.head_seconds if self._receiving == Connection._HEAD else limits.body_seconds
        ):
            self._refuse(408, "the request was not complete in time")


def head_of(answer: HttpResponse, close: bytes) -> bytes:
    """Return the head of a response; `close` is CLOSE if it is the last of its connection."""
    reason = _REASONS.get(answer.status, b"Unknown")
    return b"HTTP/1.1 %d %b\r\nContent-Type: %b\r\n%b%bContent-Length: %d\r\n\r\n" % (
        answer.status,
        reason,
        answer.content_type,
        answer.headers,
        close,
        len(answer.body),
    )
