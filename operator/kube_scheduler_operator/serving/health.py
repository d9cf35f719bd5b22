"""Health checks, and a server of /healthz, /livez, /readyz and /metrics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from ..base.foreign_text import one_line
from .address_rate import AddressRate
from .connections import Listener, Sharing

if TYPE_CHECKING:
    import ssl

    from aiohttp import web
    from aiohttp.typedefs import Middleware

    Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

Checks: TypeAlias = Callable[[], Mapping[str, str | None]]
"""Returns the checks by name: None if passed, otherwise the reason."""

MAX_CONNECTIONS: Final = 64
"""Open connections; a kubelet and each Prometheus have one."""

CONNECTIONS_OF_ONE: Final = 16
"""Open connections of one address."""

HANDSHAKES: Final = 10.0
"""New connections a second of one address, in the long run; a kubelet's probe is a new one."""

HANDSHAKES_AT_ONCE: Final = 100
HANDSHAKES_TOGETHER: Final = 4
"""Handshakes of one address at a time."""

HANDSHAKE_SECONDS: Final = 5.0
PATIENCE: Final = 1.0
"""How long a connection waits for its handshake; a kubelet waits for 5 s."""


def check_result(checks: Checks) -> tuple[int, str]:
    """Return (status, text) of the checks, in the format of Kubernetes' health endpoints."""
    results = checks()
    lines = [
        f"[+]{name} ok" if problem is None else f"[-]{name} failed: {one_line(problem)}"
        for name, problem in sorted(results.items())
    ]
    failed = any(problem is not None for problem in results.values())
    lines.append("check failed" if failed else "ok")
    return 503 if failed else 200, "\n".join(lines) + "\n"


class HealthServer:
    """Serves health checks and metrics from `start` to `stop`.

    `alive` has the checks of /healthz and /livez, `ready` those of /readyz. Idle connections are
    closed after `keep_alive` seconds, or after 10 s until /metrics has been read on them. Clients
    share MAX_CONNECTIONS by their addresses; see `Sharing`.
    """

    def __init__(
        self,
        metrics: Handler,
        *,
        alive: Checks = dict,
        ready: Checks = dict,
        middlewares: Iterable[Middleware] = (),
        keep_alive: float = 30.0,
    ) -> None:
        from aiohttp import web  # check_result alone must not load a server

        self._busy: set[asyncio.Protocol] = set()
        self._proven: set[asyncio.Protocol] = set()

        @web.middleware
        async def follow(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self._follow(request, handler)

        app = web.Application(middlewares=[follow, *middlewares], client_max_size=16 * 1024)
        app.router.add_get("/metrics", metrics)
        for path, checks in (("/healthz", alive), ("/livez", alive), ("/readyz", ready)):
            app.router.add_get(path, _handler(checks))
        self._listener: Listener[asyncio.Protocol] | None = None
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handle_signals=False,
            keepalive_timeout=keep_alive,
            shutdown_timeout=2.0,
        )

    async def start(
        self, host: str, port: int, tls: ssl.SSLContext | None = None
    ) -> tuple[str, int]:
        """Listen; return the address and port. Raises OSError if the port is not available."""
        await self._runner.setup()
        server = self._runner.server
        if server is None:
            raise RuntimeError("the server is not set up")
        sharing: Sharing[asyncio.Protocol] = Sharing(
            AddressRate(HANDSHAKES, HANDSHAKES_AT_ONCE, PATIENCE, time.monotonic),
            HANDSHAKE_SECONDS,
            HANDSHAKES_TOGETHER,
            lambda connection: connection in self._proven,
            CONNECTIONS_OF_ONE,
        )
        self._listener = Listener(
            server, MAX_CONNECTIONS, tls, lambda connection: connection not in self._busy, sharing
        )
        await self._listener.start(host, port)
        return self._listener.address

    async def _follow(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Note which connection is in use, and on which one metrics were read."""
        self._busy.add(request.protocol)
        try:
            response = await handler(request)
        finally:
            self._busy.discard(request.protocol)
        if request.path == "/metrics" and response.status == 200 and self._runner.server:
            self._proven.intersection_update(self._runner.server.connections)
            self._proven.add(request.protocol)
        return response

    def close_connections(self) -> None:
        """Close all connections, of which most are idle; clients repeat an unanswered request."""
        for connection in self._runner.server.connections if self._runner.server else ():
            connection.force_close()

    async def stop(self) -> None:
        """Stop listening and give requests in progress two seconds."""
        if self._listener is not None:
            await self._listener.close()
        await self._runner.cleanup()
        if self._listener is not None:
            self._listener.abort()


def _handler(checks: Checks) -> Handler:
    from aiohttp import web

    async def handle(_request: web.Request) -> web.Response:
        status, text = check_result(checks)
        return web.Response(status=status, text=text)

    return handle
