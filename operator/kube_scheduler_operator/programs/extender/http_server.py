"""HTTP/1.1 for kube-scheduler: short requests, one after the other, on keep-alive connections.

kube-scheduler waits for each response within its scheduling cycle, so a request creates no task, no
timer, no header table and no object but its body (`hack/bench http-servers` compares this with
general servers). Because any client on the network may connect, the server also has limits on
headers, bodies, connections and time, and supports pipelining, `Expect: 100-continue`, chunked
bodies, half-closed connections and clients that do not read.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from typing import Final

from .http_connection import Connection, Connections
from .http_types import App, Limits

log = logging.getLogger(__name__)

SWEEP: Final = 1.0
"""Seconds between two checks of time limits, and the resolution of the connections' clock."""


class HttpServer(Connections):
    """Accepts connections and enforces their time limits."""

    def __init__(self, app: App, limits: Limits | None = None) -> None:
        super().__init__(app, limits)
        self._sockets: list[socket.socket] = []
        self._listening: asyncio.Server | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def port(self) -> int:
        """The listening port."""
        return int(self._sockets[0].getsockname()[1])

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        """Listen.

        Raises:
            OSError: the port is not available.
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
        """Stop accepting, finish requests in progress, and close within `grace` seconds."""
        if self._listening is not None:
            self._listening.close()
        for connection in list(self.connections):
            connection.finish()
        try:
            async with asyncio.timeout(grace):
                while self.connections:
                    self.empty.clear()
                    await self.empty.wait()
        except TimeoutError:
            log.warning("Aborted %d connections that did not close in time", len(self.connections))
            for connection in list(self.connections):
                connection.abort()
        if self._timer is not None:
            self._timer.cancel()

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        self.now = loop.time()
        for connection in list(self.connections):
            connection.check(self.now)
        self._timer = loop.call_later(SWEEP, self._sweep)
