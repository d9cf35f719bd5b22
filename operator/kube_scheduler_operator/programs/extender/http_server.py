"""HTTP/1.1 for a scheduler: short requests, one after the other, on connections that stay open.

kube-scheduler waits for every answer in its scheduling cycle, so a request costs what its bytes
cost and nothing else: no task, no timer, no header table and no objects but the body. What general
servers are needed for otherwise is here as well, because the port is open to whoever gets at it:
limits for heads, bodies, connections and time, requests in a row without waiting (pipelining),
`Expect: 100-continue`, chunked bodies, clients that close their half first and clients that do not
read.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from .connection import Connection
from .messages import App, Limits

if TYPE_CHECKING:
    import socket
    import ssl

log = logging.getLogger(__name__)

SWEEP: Final = 1.0
"""Seconds between two looks at who is late; also how coarse the time of connections is."""


class Server:
    """Accepts connections and looks after their time.

    Attributes:
        connections: those that are open.
        refused: requests that were answered by `Connection` itself, by status.
    """

    def __init__(self, app: App, limits: Limits | None = None) -> None:
        self.app = app
        self.limits = limits or Limits()
        self.connections: dict[Connection, None] = {}
        self.refused: dict[int, int] = {}
        self.now = 0.0
        self._sockets: list[socket.socket] = []
        self._listening: asyncio.Server | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._empty = asyncio.Event()

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._sockets[0].getsockname()[1])

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        """Listen.

        Raises:
            OSError: the port cannot be had.
        """
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(
            lambda: Connection(self),
            host or None,
            port,
            ssl=tls,
            backlog=512,
            reuse_address=True,
            ssl_handshake_timeout=self.limits.head_seconds if tls else None,
        )
        self._sockets = list(self._listening.sockets)
        self.now = loop.time()
        self._timer = loop.call_later(SWEEP, self._sweep)

    async def stop(self, grace: float = 5.0) -> None:
        """Accept nothing more, let requests in progress end, and close; at most `grace` seconds."""
        if self._listening is not None:
            self._listening.close()
        for connection in list(self.connections):
            connection.finish()
        try:
            async with asyncio.timeout(grace):
                while self.connections:
                    self._empty.clear()
                    await self._empty.wait()
        except TimeoutError:
            log.warning("Broke off %d connections that did not end", len(self.connections))
            for connection in list(self.connections):
                connection.abort()
        if self._timer is not None:
            self._timer.cancel()

    def joined(self, connection: Connection) -> None:
        """A client has connected: make room if there are too many."""
        self.connections[connection] = None
        if len(self.connections) > self.limits.connections:
            # In the order of arrival: an idle one if there is any, else the oldest.
            idle = (one for one in self.connections if one.idle and one is not connection)
            next(idle, next(iter(self.connections))).abort()

    def left(self, connection: Connection) -> None:
        """A connection is gone."""
        self.connections.pop(connection, None)
        if not self.connections:
            self._empty.set()

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        self.now = loop.time()
        for connection in list(self.connections):
            connection.check(self.now)
        self._timer = loop.call_later(SWEEP, self._sweep)
