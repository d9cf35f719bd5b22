"""HTTP/1.1 for short requests, one after the other, on keep-alive connections.

kube-scheduler waits for each response of an extender within its scheduling cycle, so a request
creates no task, no timer, no header table and no object but its body. Because any client on the
network may connect, the server also has limits on headers, bodies, connections and time, and
supports pipelining, `Expect: 100-continue`, chunked bodies, half-closed connections and clients
that do not read.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from dataclasses import replace
from typing import Final

from .connections import Listener, Sharing
from .http_connection import Connection, Connections
from .http_types import App, Limits

log = logging.getLogger(__name__)

SWEEP: Final = 1.0
"""Seconds between two checks of time limits, and the resolution of the connections' clock."""

OF_FEW_CLIENTS: Final = Sharing(
    rate=50.0,  # kube-scheduler keeps connections
    burst=200,
    patience=1.0,
    handshake_seconds=10.0,
    handshakes=8,
    # Binds of a kube-scheduler come all at once, so one address may have all connections.
    connections=Limits().connections,
    received=256 * 1024,  # requests may have many megabytes
)


class HttpServer(Connections):
    """Accepts connections and enforces their time limits.

    `connection` is their class. `sharing` is how clients of different addresses share the server;
    None: with TLS, one address may have all connections, and without it they do not share it.
    """

    def __init__(
        self,
        app: App,
        limits: Limits | None = None,
        connection: type[Connection] = Connection,
        sharing: Sharing | None = None,
    ) -> None:
        super().__init__(app, limits)
        self._connection, self._sharing = connection, sharing
        self._listener: Listener | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def port(self) -> int:
        return self._listener.address[1] if self._listener is not None else 0

    async def start(
        self, host: str, port: int, tls: ssl.SSLContext | None = None
    ) -> tuple[str, int]:
        """Listen; return the address and port.

        Raises:
            OSError: the port is not available.
        """
        sharing = self._sharing
        if sharing is None and tls is not None:
            sharing = replace(OF_FEW_CLIENTS, connections=self.limits.connections)
        self._listener = Listener(
            lambda: self._connection(self), self.limits.connections, tls, sharing
        )
        await self._listener.start(host, port)
        loop = asyncio.get_running_loop()
        self.now = loop.time()
        self._timer = loop.call_later(SWEEP, self._sweep)
        return self._listener.address

    def finish(self) -> None:
        """Close all connections, each after the last response that is due."""
        for connection in list(self.connections):
            connection.finish()

    async def stop(self, grace: float = 5.0) -> None:
        """Stop accepting, finish requests in progress, and close within `grace` seconds."""
        if self._listener is not None:
            await self._listener.close()
        self.finish()
        try:
            async with asyncio.timeout(grace):
                while self.connections:
                    self.empty.clear()
                    await self.empty.wait()
        except TimeoutError:
            log.warning("Aborted %d connections that did not close in time", len(self.connections))
            for connection in list(self.connections):
                connection.abort()
        if self._listener is not None:
            self._listener.abort()
        if self._timer is not None:
            self._timer.cancel()

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        self.now = loop.time()
        for connection in list(self.connections):
            connection.check(self.now)
        self._timer = loop.call_later(SWEEP, self._sweep)
