"""The operator's HTTPS server: /metrics for authorized clients, /healthz and /readyz for all.

Standby replicas serve, too. Kubelets probe without a token; metrics describe the cluster and
therefore require one (`authorize`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from aiohttp import web

from ..base.klog import kv
from .authorize import Authorize
from .certificate import ServingCertificate
from .health import Checks, HealthServer

log = logging.getLogger(__name__)

MAX_IN_FLIGHT: Final = 64
REQUEST_SECONDS: Final = 10.0  # Prometheus gives up after 10 s by default
KEEP_ALIVE_SECONDS: Final = 90.0  # longer than the usual scrape interval: one handshake is enough
RELOAD_SECONDS: Final = 5.0

Render: TypeAlias = Callable[[str], tuple[bytes, str]]
"""Accept header -> body and Content-Type; see `metrics.OperatorMetrics.render`."""

_Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


class TelemetryServer:
    """Serves from `start` to `stop`.

    Attributes:
        port: the port in use, also if the system has chosen it.
    """

    def __init__(
        self,
        *,
        render: Render,
        authorize: Authorize,
        alive: Checks,
        ready: Checks,
        certificate: ServingCertificate | None,
        host: str = "0.0.0.0",
        port: int = 8443,
    ) -> None:
        """Prepare; `start` opens the port. Port 0 lets the system choose.

        `authorize` applies to /metrics; `alive` has the checks of /healthz and /livez, `ready`
        those of /readyz. Without a certificate it serves plain HTTP, for tests and for a proxy in
        the same Pod.
        """
        self.port = port
        self._host = host
        self._render = render
        self._authorize = authorize
        self._certificate = certificate
        self._in_flight = 0
        self._server = HealthServer(
            self._metrics,
            alive=alive,
            ready=ready,
            middlewares=[self._limit],
            keep_alive=KEEP_ALIVE_SECONDS,
        )
        self._reloader: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Open the port. Raises OSError if it is in use."""
        context: ssl.SSLContext | None = None
        if self._certificate is not None:
            context = self._certificate.context
            self._reloader = asyncio.create_task(self._reload(self._certificate))
        _, self.port = await self._server.start(self._host, self.port, context)
        log.info("Serving metrics and health", extra=kv(host=self._host, port=self.port))

    async def stop(self) -> None:
        """Close the port; requests in progress have two seconds to end."""
        if self._reloader is not None:
            self._reloader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reloader
        await self._server.stop()

    async def _reload(self, certificate: ServingCertificate) -> None:
        while True:
            await asyncio.sleep(RELOAD_SECONDS)
            await asyncio.to_thread(certificate.reload)

    @web.middleware
    async def _limit(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Limit the number and duration of requests, except probes."""
        if request.path != "/metrics":
            return await handler(request)
        if self._in_flight >= MAX_IN_FLIGHT:
            return _text(429, "too many concurrent requests: retry", {"Retry-After": "1"})
        self._in_flight += 1
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                return await handler(request)
        except TimeoutError:
            return _text(504, f"no response within {REQUEST_SECONDS:g} s: retry")
        finally:
            self._in_flight -= 1

    async def _metrics(self, request: web.Request) -> web.Response:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return _unauthorized("a bearer token is required, for example of a ServiceAccount")
        try:
            result = await self._authorize(token, request.path)
        except Exception as error:  # refuse the request and keep serving
            log.warning(
                "Cannot authorize a request for metrics", extra=kv(err=type(error).__name__)
            )
            return _text(503, "cannot verify the token, the API server is not available: retry")
        if not result.authenticated:
            return _unauthorized(result.reason)
        if not result.allowed:
            return _text(403, result.reason)
        body, content_type = self._render(request.headers.get("Accept", ""))
        response = web.Response(body=body, headers={"Content-Type": content_type})
        response.enable_compression()
        return response


def _unauthorized(reason: str) -> web.Response:
    return _text(401, reason, {"WWW-Authenticate": "Bearer"})


def _text(status: int, text: str, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(status=status, text=text + "\n", headers=headers)
