"""The operator's HTTPS port: /metrics for those who may, /healthz and /readyz for everybody.

Serves on standby replicas as well. Probes come from kubelets, which have no token; metrics tell how
a cluster is built and therefore need one (`authorize`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from aiohttp import web

from ..base.klog import kv

if TYPE_CHECKING:
    import ssl

    from .authorize import Authorize
    from .certificate import ServingCertificate

log = logging.getLogger(__name__)

MAX_IN_FLIGHT: Final = 64
REQUEST_SECONDS: Final = 10.0  # Prometheus gives up after 10 s by default
KEEP_ALIVE_SECONDS: Final = 90.0  # longer than the usual scrape interval: one handshake is enough
RELOAD_SECONDS: Final = 5.0

Checks: TypeAlias = Callable[[], Mapping[str, str | None]]
"""What was checked: None if fine, otherwise a sentence that says what is missing."""

Render: TypeAlias = Callable[[str], tuple[bytes, str]]
"""Accept header -> body and Content-Type; see `metrics.Metrics.render`."""

_Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """Listens from `start` to `stop`.

    Attributes:
        port: the one that is listened on; useful if 0 was asked for.
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
        """Prepare; nothing happens yet.

        Args:
            render: makes the answer to /metrics.
            authorize: who may read /metrics.
            alive: the checks of /healthz and /livez.
            ready: the checks of /readyz.
            certificate: None means HTTP without TLS, for tests and for a proxy in the same pod.
            host: address to listen on.
            port: 0 lets the system choose.
        """
        self.port = port
        self._host = host
        self._render = render
        self._authorize = authorize
        self._certificate = certificate
        self._in_flight = 0
        app = web.Application(middlewares=[self._limit], client_max_size=16 * 1024)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/healthz", _checks_handler(alive))
        app.router.add_get("/livez", _checks_handler(alive))
        app.router.add_get("/readyz", _checks_handler(ready))
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handle_signals=False,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            shutdown_timeout=2.0,
        )
        self._reloader: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen. Raises OSError if the port cannot be had."""
        context: ssl.SSLContext | None = None
        await self._runner.setup()
        if self._certificate is not None:
            context = self._certificate.context
            self._reloader = asyncio.create_task(self._reload(self._certificate))
        await web.TCPSite(self._runner, self._host, self.port, ssl_context=context).start()
        self.port = self._runner.addresses[0][1]
        log.info("Serving metrics and health", extra=kv(host=self._host, port=self.port))

    async def stop(self) -> None:
        """Stop listening and give requests in progress two seconds."""
        if self._reloader is not None:
            self._reloader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reloader
        await self._runner.cleanup()

    async def _reload(self, certificate: ServingCertificate) -> None:
        while True:
            await asyncio.sleep(RELOAD_SECONDS)
            await asyncio.to_thread(certificate.reload)

    @web.middleware
    async def _limit(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Bounds how many requests are worked on and for how long. Probes always get through."""
        if request.path != "/metrics":
            return await handler(request)
        if self._in_flight >= MAX_IN_FLIGHT:
            return _text(429, "too many requests at once: retry", {"Retry-After": "1"})
        self._in_flight += 1
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                return await handler(request)
        except TimeoutError:
            return _text(504, f"not answered within {REQUEST_SECONDS:g} s: retry")
        finally:
            self._in_flight -= 1

    async def _metrics(self, request: web.Request) -> web.Response:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return _unauthorized("a bearer token is needed, for example of a service account")
        try:
            decision = await self._authorize(token, request.path)
        except Exception as error:  # whatever the client raises: refuse, and keep serving
            log.warning("Cannot check who reads metrics", extra=kv(err=type(error).__name__))
            return _text(503, "the API server could not be asked who you are: retry")
        if not decision.authenticated:
            return _unauthorized(decision.reason)
        if not decision.allowed:
            return _text(403, decision.reason)
        body, content_type = self._render(request.headers.get("Accept", ""))
        response = web.Response(body=body, headers={"Content-Type": content_type})
        response.enable_compression()
        return response


def _checks_handler(checks: Checks) -> _Handler:
    async def handle(_request: web.Request) -> web.Response:
        results = checks()
        lines = [
            f"[+]{name} ok" if problem is None else f"[-]{name} failed: {problem}"
            for name, problem in sorted(results.items())
        ]
        failed = any(problem is not None for problem in results.values())
        lines.append("check failed" if failed else "ok")
        return _text(503 if failed else 200, "\n".join(lines))

    return handle


def _unauthorized(reason: str) -> web.Response:
    return _text(401, reason, {"WWW-Authenticate": "Bearer"})


def _text(status: int, text: str, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(status=status, text=text + "\n", headers=headers)
