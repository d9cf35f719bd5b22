"""Connections of a `Listener` that aiohttp serves.

One counts as proven once a request of it was accepted: it makes room after the others.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator

from aiohttp import web

from .connections import ServedConnection


class HandledConnection(ServedConnection):
    """A connection that aiohttp serves."""

    def __init__(self, handler: web.RequestHandler, known: HandledConnections) -> None:
        self._asks = 0  # accepted requests in progress
        self._handler, self._known = handler, known

    @property
    def idle(self) -> bool:
        return not self._asks

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """Note that a request was accepted, and while it is in progress."""
        self.proven = True
        self._asks += 1
        try:
            yield
        finally:
            self._asks -= 1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._known[self._handler] = self
        self._handler.connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._known.pop(self._handler, None)
        self._handler.connection_lost(error)

    def data_received(self, data: bytes) -> None:
        self._handler.data_received(data)

    def eof_received(self) -> None:
        self._handler.eof_received()

    def pause_writing(self) -> None:
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        self._handler.resume_writing()


class HandledConnections(dict[asyncio.BaseProtocol, HandledConnection]):
    """The open connections, by what serves each of them: `web.Request.protocol`."""

    def factory(self, make: Callable[[], web.RequestHandler]) -> Callable[[], ServedConnection]:
        """Return what makes the protocol of a connection, for a `Listener`."""
        return lambda: HandledConnection(make(), self)
