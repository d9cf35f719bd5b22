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
import ssl
import time
from typing import Final

from ...serving.address_rate import AddressRate
from ...serving.connections import Listener, Sharing
from .http_connection import Connection, Connections
from .http_types import App, Limits

log = logging.getLogger(__name__)

SWEEP: Final = 1.0
"""Seconds between two checks of time limits, and the resolution of the connections' clock."""

HANDSHAKES: Final = 50.0
"""TLS handshakes a second of one address, in the long run; kube-scheduler keeps connections."""

HANDSHAKES_AT_ONCE: Final = 200
HANDSHAKES_TOGETHER: Final = 8
HANDSHAKE_SECONDS: Final = 10.0
PATIENCE: Final = 1.0

RECEIVED: Final = 256 * 1024
"""Bytes that the kernel receives before they are read; requests may have many megabytes."""


class HttpServer(Connections):
    """Accepts connections and enforces their time limits."""

    def __init__(self, app: App, limits: Limits | None = None) -> None:
        super().__init__(app, limits)
        self._listener: Listener[Connection] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def port(self) -> int:
        """The listening port."""
        return self._listener.address[1] if self._listener is not None else 0

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        """Listen.

        Raises:
            OSError: the port is not available.
        """
        self._listener = Listener(
            lambda: Connection(self),
            self.limits.connections,
            tls,
            lambda connection: connection.idle,
            self._sharing() if tls is not None else None,
        )
        await self._listener.start(host, port)
        loop = asyncio.get_running_loop()
        self.now = loop.time()
        self._timer = loop.call_later(SWEEP, self._sweep)

    async def stop(self, grace: float = 5.0) -> None:
        """Stop accepting, finish requests in progress, and close within `grace` seconds."""
        if self._listener is not None:
            await self._listener.close()
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
        if self._listener is not None:
            self._listener.abort()
        if self._timer is not None:
            self._timer.cancel()

    def _sharing(self) -> Sharing[Connection]:
        """Binds of a kube-scheduler come all at once, so one address may have all connections."""
        return Sharing(
            AddressRate(HANDSHAKES, HANDSHAKES_AT_ONCE, PATIENCE, time.monotonic),
            HANDSHAKE_SECONDS,
            HANDSHAKES_TOGETHER,
            lambda connection: connection.proven,
            self.limits.connections,
            received=RECEIVED,
        )

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        self.now = loop.time()
        for connection in list(self.connections):
            connection.check(self.now)
        self._timer = loop.call_later(SWEEP, self._sweep)
