"""Health checks, and a server of /healthz, /livez, /readyz and /metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from ..base.foreign_text import one_line
from .connections import Listener

if TYPE_CHECKING:
    import ssl

    from aiohttp import web
    from aiohttp.typedefs import Middleware

    Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

Checks: TypeAlias = Callable[[], Mapping[str, str | None]]
"""Returns the checks by name: None if passed, otherwise the reason."""

MAX_CONNECTIONS: Final = 64
"""Open connections; a kubelet and each Prometheus have one."""


def check_result(checks: Checks) -> tuple[int, str]:
    """(status, text) of the checks, in the format of Kubernetes' verbose health endpoints."""
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
    closed after `keep_alive` seconds, and the oldest beyond MAX_CONNECTIONS at once.
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

        app = web.Application(middlewares=middlewares, client_max_size=16 * 1024)
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
        """Listen; returns the address and port. Raises OSError if the port is not available."""
        await self._runner.setup()
        server = self._runner.server
        if server is None:
            raise RuntimeError("the server is not set up")
        self._listener = Listener(server, MAX_CONNECTIONS, tls)
        await self._listener.start(host, port)
        return self._listener.address

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
