"""Request and response types, independent of the HTTP server, and the limits of clients."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

JSON: Final = b"application/json"
TEXT: Final = b"text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one client, and of all clients of a port together."""

    head: int = 32 * 1024  # bytes of the request line and headers, or of trailers and chunk headers
    body: int = 64 * 1024 * 1024  # bytes of a body; 5,000 complete nodes take about 50 MB
    # bytes of all bodies that are being received or handled; beyond it, the client with most of
    # them is refused
    bodies: int = 128 * 1024 * 1024
    head_seconds: float = 10.0  # from the first byte of a request to the end of its headers
    body_seconds: float = 30.0  # from the first byte of a request to its last
    # between two requests; longer than a Go client keeps a connection (90 s), so that the server
    # never closes a connection that is about to be used
    idle_seconds: float = 600.0
    write_seconds: float = 30.0  # during which a client may leave a response unread
    connections: int = 256  # open connections; a kube-scheduler keeps a few


HEALTH_LIMITS: Final = Limits(body=64 * 1024, bodies=1024 * 1024, connections=64)
"""For a port that serves only GET; other requests are read only to be refused."""


@dataclass(slots=True)
class HttpRequest:
    method: bytes  # as sent, e.g. b"POST"
    path: bytes  # the request target without its query
    query: bytes  # the part after the first question mark, or empty
    body: bytes
    # the client's certificate, as `ssl` returns it, if the server trusts it
    certificate: Mapping[str, Any] = field(default_factory=dict)
    # by name, in lower case; only if the server's connections keep them
    headers: Mapping[bytes, bytes] = field(default_factory=dict)
    address: str = ""  # the client's, without its port; empty if unknown


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A complete response; an app may return plain bytes instead (`Answer`)."""

    status: int
    body: bytes
    content_type: bytes = TEXT
    headers: bytes = b""  # further lines of the head, each with its end


Answer: TypeAlias = bytes | HttpResponse
"""Bytes mean JSON with status 200."""

App: TypeAlias = Callable[[HttpRequest], Answer | Awaitable[Answer]]
"""Handles one request; may return an awaitable. An exception results in status 500."""


def text(status: int, message: str) -> HttpResponse:
    """Return a plain-text response."""
    return HttpResponse(status, message.encode() + b"\n")
