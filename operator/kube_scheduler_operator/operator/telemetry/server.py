"""The operator's HTTPS server: /metrics for authorized clients, /healthz and /readyz for all.

Standby replicas serve, too. Kubelets probe without a token; metrics describe the cluster and
therefore require one (`authorize`).

The server has a thread of its own. `Pulse` is the sign of life of the event loop that renews the
Lease: with every beat it stores the results of checks that only this loop may run, and a probe
answers with the last results while the loop is busy.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import logging
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

import uvloop

from ...base.klog import kv
from ...base.tasks import cancel, keep
from ...serving.certificate import ServingCertificate
from ...serving.health import Checks, HealthServer
from ...serving.http_types import HttpRequest, HttpResponse, text
from .authorize import Authorize, Client, TooManyReviewsError, User

log = logging.getLogger(__name__)

MAX_IN_FLIGHT: Final = 64
REQUEST_SECONDS: Final = 10.0  # Prometheus gives up after 10 s by default
KEEP_ALIVE_SECONDS: Final = 90.0  # longer than the usual scrape interval: one handshake is enough
REFRESH_SECONDS: Final = 2.0
GRACE: Final = 2.0

BEAT_SECONDS: Final = 1.0

SILENT_SECONDS: Final = 60.0
"""Without a beat for this long, /healthz fails. The Lease is long lost, and no reconcile, garbage
collection or busy node takes that long; the kubelet restarts the container a minute later (6
failures, 10 s apart)."""

_COMPRESSION: Final = 6  # the level of zlib

Results: TypeAlias = Mapping[str, str | None]
"""Check -> its problem; None: it passes."""

Refresh: TypeAlias = Callable[[], Awaitable[bool]]
"""Updates the certificate and its context; whether open connections have outdated settings."""

Render: TypeAlias = Callable[[str], tuple[bytes, str]]
"""Accept header -> body and Content-Type; see `metrics.OperatorMetrics.render`."""


class TelemetryServer:
    """Serves from `start` to `stop`."""

    def __init__(
        self,
        *,
        render: Render,
        authorize: Authorize,
        alive: Checks,
        ready: Checks,
        certificate: ServingCertificate | None,
        refresh: Refresh | None = None,
        address: tuple[str, int] = ("0.0.0.0", 8443),
    ) -> None:
        """Prepare; `start` opens the port of `address`. Port 0 lets the system choose.

        `authorize` applies to /metrics; `alive` has the checks of /healthz and /livez, `ready`
        those of /readyz. Without a certificate it serves plain HTTP, for tests and for a proxy in
        the same Pod. `refresh` is called every REFRESH_SECONDS.
        """
        self._host, self.port = address
        self._render = render
        self._authorize = authorize
        self._certificate = certificate
        self._refresh = refresh
        self._in_flight = 0
        self._server = HealthServer(
            self._metrics, alive=alive, ready=ready, keep_alive=KEEP_ALIVE_SECONDS
        )
        self._refresher: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Open the port. Raises OSError if it is in use."""
        context: ssl.SSLContext | None = None
        if self._certificate is not None:
            context = self._certificate.context
        if self._refresh is not None:
            await self._refresh()
            fresh = partial(self._keep_fresh, self._refresh)
            self._refresher = asyncio.create_task(keep("certificate", fresh))
        _, self.port = await self._server.start(self._host, self.port, context)
        log.info("Serving metrics and health", extra=kv(host=self._host, port=self.port))

    async def stop(self) -> None:
        """Close the port; requests in progress have two seconds to end."""
        await cancel(self._refresher)
        await self._server.stop(GRACE)

    async def _keep_fresh(self, refresh: Refresh) -> None:
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            if await refresh():
                self._server.finish()  # clients repeat a request without an answer

    async def _metrics(self, request: HttpRequest) -> HttpResponse:
        """Answer a scrape; probes are limited neither in number nor in time."""
        if self._in_flight >= MAX_IN_FLIGHT:
            return _busy("too many concurrent requests: retry")
        self._in_flight += 1
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                return await self._authorized(request)
        except TimeoutError:
            return text(504, f"no response within {REQUEST_SECONDS:g} s: retry")
        finally:
            self._in_flight -= 1

    async def _authorized(self, request: HttpRequest) -> HttpResponse:
        client = _client(request)
        if not client:
            return _unauthorized("a bearer token is required, for example of a ServiceAccount")
        try:
            authorization = await self._authorize(client, "/metrics", request.address)
        except TooManyReviewsError:
            return _busy("too many unknown clients or tokens: retry")
        except Exception as error:  # refuse the request and keep serving
            log.warning(
                "Cannot authorize a request for metrics", extra=kv(err=type(error).__name__)
            )
            return text(503, "cannot verify the token, the API server is not available: retry")
        if not authorization.authenticated:
            return _unauthorized(authorization.reason)
        if not authorization.allowed:
            return text(403, authorization.reason)
        body, content_type = self._render(_header(request, b"accept"))
        response = HttpResponse(200, body, content_type.encode())
        if "gzip" not in _header(request, b"accept-encoding"):
            return response
        encoded = gzip.compress(body, _COMPRESSION)
        return replace(response, body=encoded, headers=b"Content-Encoding: gzip\r\n")


class ServerThread:
    """Runs `serving` from `start` to `stop`, in a thread with an event loop of its own.

    Any client may connect, and OpenSSL decrypts without the interpreter's lock; meanwhile the
    process's own event loop, which renews its Lease, goes on. `serving` is called in the thread;
    the server is open within its context.
    """

    def __init__(self, serving: Callable[[], AbstractAsyncContextManager[object]]) -> None:
        self._serving = serving
        self._started: Future[None] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="server", daemon=True)

    async def start(self) -> None:
        """Start the server. Raises what `serving` raises."""
        self._thread.start()
        await asyncio.shield(asyncio.wrap_future(self._started))

    async def stop(self) -> None:
        """Stop the server, and wait until it has ended."""
        if not self._thread.ident:
            return
        with contextlib.suppress(Exception):  # `start` has raised it
            await asyncio.shield(asyncio.wrap_future(self._started))
        if self._loop is not None and self._stopping is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._stopping.set)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        try:
            # asyncio's TLS connections are reference cycles with 256 KiB each.
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve())
        except Exception as error:
            if self._started.done():
                raise
            self._started.set_exception(error)

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        async with self._serving():
            self._started.set_result(None)
            await self._stopping.wait()


@dataclass(frozen=True, slots=True)
class Beat:
    at: float  # seconds by the clock
    alive: Results  # of /healthz
    ready: Results  # of /readyz


class Pulse:
    """The last beat: `run` and `beat` belong to the loop; any thread may call `alive` and `ready`.

    `also` is called with each beat.
    """

    def __init__(
        self,
        alive: Checks,
        ready: Checks,
        also: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._alive, self._ready, self._also, self._clock = alive, ready, also, clock
        self.beat()

    def beat(self) -> None:
        self._last = Beat(self._clock(), dict(self._alive()), dict(self._ready()))
        self._also()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            self.beat()

    def alive(self) -> Results:
        last = self._last
        age = self._clock() - last.at
        problem = f"the event loop has been busy for {age:.0f} s"
        return {**last.alive, "event-loop": problem if age > SILENT_SECONDS else None}

    def ready(self) -> Results:
        return self._last.ready


def _client(request: HttpRequest) -> Client:
    """Return the client of a request: by its certificate, else by its token; empty: neither."""
    user = User.of_certificate(request.certificate)
    if user is not None:
        return user
    scheme, _, token = _header(request, b"authorization").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _header(request: HttpRequest, name: bytes) -> str:
    return request.headers.get(name, b"").decode("utf-8", "replace")


def _busy(reason: str) -> HttpResponse:
    return replace(text(429, reason), headers=b"Retry-After: 1\r\n")


def _unauthorized(reason: str) -> HttpResponse:
    return replace(text(401, reason), headers=b"WWW-Authenticate: Bearer\r\n")
