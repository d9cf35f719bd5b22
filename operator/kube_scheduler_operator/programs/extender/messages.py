"""Requests and answers as those see them who know nothing of HTTP, and what one may cost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

JSON: Final = b"application/json"
TEXT: Final = b"text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one client may cost.

    Attributes:
        head: bytes of the request line and headers, or of anything else around a body.
        body: bytes of a body; 5,000 whole nodes are some 50 MB.
        head_seconds: from the first byte of a request to the end of its headers.
        body_seconds: from the first byte of a request to its last.
        idle_seconds: between two requests; longer than a Go client keeps a connection (90 s), so
            that it is never the server that closes one which is just being used.
        write_seconds: for how long a client may leave an answer unread.
        connections: open at once; the one that has been idle the longest makes room.
    """

    head: int = 32 * 1024
    body: int = 64 * 1024 * 1024
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    idle_seconds: float = 600.0
    write_seconds: float = 30.0
    connections: int = 1024


@dataclass(slots=True)
class Request:
    """One request.

    Attributes:
        method: as sent, e.g. b"POST".
        path: the target without its query.
        query: what follows the first question mark; empty if there is none.
        body: all of it.
        verified: whether the client has shown a certificate that the server trusts.
    """

    method: bytes
    path: bytes
    query: bytes
    body: bytes
    verified: bool = False


@dataclass(frozen=True, slots=True)
class Response:
    """An answer that is not just JSON with status 200."""

    status: int
    body: bytes
    content_type: bytes = TEXT


Answer: TypeAlias = bytes | Response
"""Bytes are JSON with status 200."""

App: TypeAlias = Callable[[Request], Answer | Awaitable[Answer]]
"""Answers one request; what waits for something returns an awaitable. Raising is a 500."""


def text(status: int, message: str) -> Response:
    """A sentence as an answer."""
    return Response(status, message.encode() + b"\n")
