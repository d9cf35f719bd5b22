"""Answers questions over HTTP or HTTPS: the program in the Pod of a simulation.

It has no rights in the cluster and keeps nothing: a request has the world, the answer leaves with
the response. It ends by itself when its only client is gone: a connection counts as a client's once
it has sent the key. Any Pod may connect where NetworkPolicies are not enforced, so connections
without the key are few, and make room first.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import signal
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aiohttp import web

from ..serving.connections import Listener, Sharing
from ..serving.handled import HandledConnections
from .identity import tls_context
from .job import PATH, PORT
from .process import Binary, LaunchedProgram, SimulationError, binary_version
from .questions import read_request, to_json

_LARGEST: Final = 64 * 2**20
"""Bytes of a compressed request; 5,000 nodes and 30,000 Pods have a few million."""
_POLL: Final = 0.1
_KEEP_ALIVE: Final = 5.0
"""Seconds between spaces that are sent while kube-scheduler decides: load balancers close idle
connections."""

_MOST: Final = 32
"""Open connections; the client needs one, and a port-forwarding one for each request."""
_SHARING: Final = Sharing(
    rate=10.0,
    burst=50,
    patience=1.0,
    handshake_seconds=10.0,
    handshakes=4,
    connections=16,
    received=256 * 1024,  # the client's request may have megabytes
)


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    host: str  # the address to listen on; loopback is reached by port-forwarding only. Empty: all.
    key_hash: str  # SHA-256 of the key that requests must have, in hex
    wait: float = 60.0  # seconds until the operand and the first client must be there
    port: int = PORT
    binary: Path | None = None  # the kube-scheduler to run; None: that of the Pod's launcher
    # directory of the certificate and its key; None: answer without TLS
    identity: Path | None = None


class Service:
    """Serves until the client is gone."""

    def __init__(self, options: ServiceOptions) -> None:
        self._options = options
        self._lock = asyncio.Lock()
        self._launched: LaunchedProgram | None = None
        self._had_client = False
        self._connections = HandledConnections()

    async def run(self) -> int:
        """Serve; return the exit code."""
        app = web.Application(client_max_size=_LARGEST)
        app.router.add_post(PATH, self._ask)
        runner = web.AppRunner(
            app,
            access_log=None,
            handle_signals=False,
            handler_cancellation=True,
            shutdown_timeout=0.2,
        )
        await runner.setup()
        server = runner.server
        if server is None:
            raise RuntimeError("aiohttp has not set up its server")
        tls = tls_context(self._options.identity) if self._options.identity is not None else None
        listener = Listener(self._connections.factory(server), _MOST, tls, _SHARING)
        await listener.start(self._options.host, self._options.port)
        end = time.monotonic() + self._options.wait
        try:
            while True:
                if self._had_client and not self._has_client():
                    return 0
                if not self._had_client and not self._connections and time.monotonic() > end:
                    sys.stderr.write(f"no client within {self._options.wait:.0f} s\n")
                    return 0
                await asyncio.sleep(_POLL)
        finally:
            await listener.close()
            listener.abort()
            await runner.cleanup()

    def _has_client(self) -> bool:
        return any(connection.proven for connection in self._connections.values())

    async def _ask(self, request: web.Request) -> web.StreamResponse:
        scheme, _, key = request.headers.get("Authorization", "").partition(" ")
        own = hashlib.sha256(key.encode()).hexdigest()
        if scheme != "Bearer" or not hmac.compare_digest(own, self._options.key_hash):
            raise web.HTTPUnauthorized
        self._had_client = True
        connection = self._connections.get(request.protocol)
        if connection is None:  # it has just ended
            raise web.HTTPServiceUnavailable
        with connection.asking():
            return await self._respond(request)

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        async with self._lock, _kept_alive(response):
            answer = await self._answer(body)
        await response.write(answer)
        await response.write_eof()
        return response

    async def _answer(self, body: bytes) -> bytes:
        try:
            asked = await asyncio.to_thread(read_request, (body,))
            return b'{"answer":%b}' % await asked.answer(await self._binary())
        except (SimulationError, ValueError) as error:
            return to_json({"error": str(error)})

    async def _binary(self) -> Binary:
        if self._options.binary is not None:
            return self._options.binary
        if self._launched is None:
            launched = LaunchedProgram()
            await launched.wait(self._options.wait)
            version = await asyncio.to_thread(binary_version, launched)
            sys.stderr.write(f"kube-scheduler {version}\n")
            self._launched = launched
        return self._launched


@contextlib.asynccontextmanager
async def _kept_alive(response: web.StreamResponse) -> AsyncIterator[None]:
    """Send a space now and then."""

    async def send() -> None:
        while True:
            await asyncio.sleep(_KEEP_ALIVE)
            await response.write(b" ")

    task = asyncio.create_task(send())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, ConnectionError):
            await task


def main(options: ServiceOptions) -> int:
    """Serve until the client is gone or SIGTERM; return the exit code."""

    async def serve() -> int:
        task = asyncio.ensure_future(Service(options).run())
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        try:
            return await task
        except asyncio.CancelledError:
            return 0

    return asyncio.run(serve())
