"""One address for the API servers of several control-plane nodes, as kubeadm wants it.

It passes connections on unread, to a node whose API server reports that it is ready.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import sys
from typing import TYPE_CHECKING

from cluster import paths, processes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cluster.model import Sandbox

DAEMON = "load-balancer"
PORT = 6443
"""Where kubeadm's API servers listen on their nodes."""

_CHECK_SECONDS = 0.5
_PATIENCE_SECONDS = 2.0
_CHUNK = 2**16


def start(sandbox: Sandbox) -> None:
    """Start the daemon, unless it runs."""
    program = (sys.executable, paths.REPOSITORY / "hack/sandbox", DAEMON, "--name", sandbox.name)
    processes.spawn(sandbox, DAEMON, program)


def run(sandbox: Sandbox) -> None:
    """Serve until the process is ended."""
    addresses = [str(sandbox.address(node)) for node in sandbox.nodes if node.control_plane]
    asyncio.run(LoadBalancer([(address, PORT) for address in addresses]).serve(sandbox.api_port))


class LoadBalancer:
    """Passes connections on to one of several servers, those that are ready first."""

    def __init__(self, servers: Sequence[tuple[str, int]]) -> None:
        self._servers = list(servers)
        self._ready: set[tuple[str, int]] = set()
        self._next = 0

    async def serve(self, port: int, address: str = "0.0.0.0") -> None:
        """Accept connections at a port until cancelled."""
        checks = [asyncio.create_task(self._check(server)) for server in self._servers]
        try:
            async with await asyncio.start_server(self._accept, address, port) as server:
                await server.serve_forever()
        finally:
            for check in checks:
                check.cancel()

    async def _check(self, server: tuple[str, int]) -> None:
        while True:
            if await is_ready(*server):
                self._ready.add(server)
            else:
                self._ready.discard(server)
            await asyncio.sleep(_CHECK_SECONDS)

    def order(self) -> list[tuple[str, int]]:
        """The servers in the order in which the next connection tries them: ready ones first."""
        self._next = (self._next + 1) % len(self._servers)
        turned = self._servers[self._next :] + self._servers[: self._next]
        return sorted(turned, key=lambda server: server not in self._ready)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for server in self.order():
            try:
                connecting = asyncio.open_connection(*server)
                backend = await asyncio.wait_for(connecting, _PATIENCE_SECONDS)
            except (OSError, TimeoutError):
                self._ready.discard(server)
                continue
            await asyncio.gather(_pass_on(reader, backend[1]), _pass_on(backend[0], writer))
            return
        writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while content := await reader.read(_CHUNK):
            writer.write(content)
            await writer.drain()
    with contextlib.suppress(OSError, RuntimeError):
        writer.close()
        await writer.wait_closed()


async def is_ready(address: str, port: int) -> bool:
    """Whether an API server serves and reports that it is ready."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            reader, writer = await asyncio.open_connection(address, port, ssl=context)
            try:
                writer.write(b"GET /readyz HTTP/1.0\r\nHost: localhost\r\n\r\n")
                return (await reader.readline()).split()[1:2] == [b"200"]
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False
