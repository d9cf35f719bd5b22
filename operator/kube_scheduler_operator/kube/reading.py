"""Reads and decodes responses within limits: tenants write what an API server sends.

A response is read to the limit and no further, and its values are counted before it is decoded. A
large one is decoded in a thread: the loop that renews the Lease goes on within the 50 ms that a
decoding takes at most.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

import aiohttp

from ..base.json_text import read_json, too_many_bytes
from ..base.limits import DOCUMENT, THREAD_BYTES, Size
from .protobuf import CHANGE_LIMIT

T = TypeVar("T")

Loads: TypeAlias = Callable[[str | bytes], Any]
"""A decoder of JSON."""

Take: TypeAlias = Callable[[aiohttp.ClientResponse], Awaitable[T]]
"""Reads a response, within limits; raises TooLargeError."""


async def read_body(response: aiohttp.ClientResponse, limit: Size = DOCUMENT) -> bytes:
    """Return the body of a response.

    Raises:
        TooLargeError: it is larger. The caller aborts the connection.
    """
    announced = response.content_length
    if announced is not None and announced > limit.bytes:
        raise too_many_bytes(limit, 0)
    read = bytearray()
    async for chunk in response.content.iter_any():
        read += chunk
        if len(read) > limit.bytes:
            raise too_many_bytes(limit, len(read))
    return bytes(read)


async def decoded(text: bytes, limit: Size | None = DOCUMENT, loads: Loads = json.loads) -> Any:
    """Return the document.

    Raises:
        TooLargeError: it is larger than `limit`.
        ValueError: this is not JSON.
    """
    if len(text) < THREAD_BYTES:
        return read_json(text, limit, loads)
    return await asyncio.to_thread(read_json, text, limit, loads)


def abort(response: aiohttp.ClientResponse) -> None:
    """Abort the connection of a response that was not read to its end, as every watch.

    A graceful TLS shutdown waits for the server up to 30 s, beyond the end of the event loop.
    """
    if (connection := response.connection) and connection.transport:
        connection.transport.abort()


class Lines:
    """The lines of a watch, which come in pieces."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are complete.

        Raises:
            ValueError: one is too long.
        """
        *ends, rest = data.split(b"\n")
        lines = ends
        if ends:
            lines = [b"".join((*self._parts, ends[0])), *ends[1:]]
            self._parts, self._size = [], 0
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
        if self._size > CHANGE_LIMIT:
            raise ValueError(f"a watch event exceeds {CHANGE_LIMIT} bytes")
        return [line for line in lines if line]

    def close(self) -> list[bytes]:
        """Return the line that has no end, if there is one."""
        return [b"".join(self._parts)] if self._parts else []
