"""A listener with a limit on open connections, including TLS handshakes in progress.

Any client on the network may connect. asyncio's own servers have no limit, and create a protocol
only after the TLS handshake, so a protocol cannot limit clients that never complete theirs.

A server that clients share fairly (`Sharing`) counts connections by address: the address with most
of them loses one, so a flood from one address never keeps the others out.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import struct
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from .address_rate import source

if TYPE_CHECKING:
    import ssl

    from .address_rate import AddressRate

log = logging.getLogger(__name__)

P = TypeVar("P", bound=asyncio.Protocol)

HANDSHAKE_SECONDS: Final = 10.0
"""Duration of a TLS handshake after which the connection is closed."""

_BACKLOG: Final = 512
_RETRY_SECONDS: Final = 0.1

_AT_ONCE: Final = 32
"""Connections that are accepted before other tasks continue; a flood has always another one."""

_RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER: a refused connection leaves no state in the kernel."""


@dataclass(frozen=True, slots=True)
class Sharing(Generic[P]):
    """How clients of different addresses share a server.

    Attributes:
        rate: limits the handshakes of each address.
        handshake_seconds: duration of a TLS handshake after which the connection is closed.
        handshakes: number of handshakes of one address at a time.
        proven: whether a connection has been used as intended; others are closed before it.
        received: bytes that the kernel receives for a connection before it is read. The event loop
            reads all of them at once, so they are the most that one connection delays others.
    """

    rate: AddressRate
    handshake_seconds: float
    handshakes: int
    proven: Callable[[P], bool]
    received: int = 64 * 1024


class Listener(Generic[P]):
    """Accepts connections.

    Beyond the limit, a connection is closed for each new one: the oldest in a TLS handshake, else
    the oldest idle one, else the oldest. The same happens when the process has no file descriptor
    left for a connection. With `sharing`, the address with most connections loses the one that has
    received nothing for the longest time.

    Args:
        factory: creates the protocol of a connection after its TLS handshake.
        most: number of connections.
        tls: the context of TLS handshakes; None: plain connections.
        idle: whether no request is in progress on a connection.
        sharing: how clients of different addresses share the server; None: they do not.
    """

    def __init__(
        self,
        factory: Callable[[], P],
        most: int,
        tls: ssl.SSLContext | None = None,
        idle: Callable[[P], bool] = lambda _: True,
        sharing: Sharing[P] | None = None,
    ) -> None:
        self._factory, self._most, self._tls, self._idle = factory, most, tls, idle
        self._sharing = sharing
        # In the order of arrival; with `sharing`, of the last bytes received.
        self._clients: dict[_Client[P], None] = {}
        self._sockets: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._opening: set[asyncio.Task[None]] = set()
        self._gates: dict[str, _Gate] = {}

    def __len__(self) -> int:
        """The number of open connections."""
        return len(self._clients)

    @property
    def address(self) -> tuple[str, int]:
        """The first address on which it listens."""
        host, port = self._sockets[0].getsockname()[:2]
        return str(host), int(port)

    async def start(self, host: str, port: int) -> None:
        """Listen on all addresses of a host; empty: of the machine. Port 0 selects a free one.

        Raises:
            OSError: an address is not available.
        """
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        try:
            for family, _, _, _, address in dict.fromkeys(found):
                self._listen(family, address)
        except OSError:
            await self.close()
            raise
        self._accepting = [asyncio.create_task(self._accept(one)) for one in self._sockets]

    async def close(self) -> None:
        """Stop listening; open connections stay."""
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        for one in self._sockets:  # uvloop refuses to close one that is being waited for
            one.close()

    def abort(self) -> None:
        """Close all connections at once."""
        for client in list(self._clients):
            client.abort()

    def started(self, client: _Client[P]) -> P:
        """The server's protocol for a connection that is ready."""
        if client not in self._clients:
            client.abort()
        return self._factory()

    def used(self, client: _Client[P]) -> None:
        """Note that a connection has received something."""
        if self._sharing is not None and client in self._clients:
            self._clients[client] = self._clients.pop(client)

    def ended(self, client: _Client[P]) -> None:
        """Stop counting a connection."""
        self._clients.pop(client, None)

    # --- accepting ------------------------------------------------------------------------------

    def _listen(self, family: int, address: Any) -> None:
        try:
            one = socket.socket(family, socket.SOCK_STREAM)
        except OSError:
            if family == socket.AF_INET6:
                return  # the machine has no IPv6
            raise
        self._sockets.append(one)
        one.setblocking(False)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if self._sharing is not None:  # accepted connections inherit it
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._sharing.received)
        if family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            one.bind(address)
        except OSError as error:
            raise OSError(
                error.errno, f"cannot listen on {address[:2]}: {error.strerror}"
            ) from None
        one.listen(_BACKLOG)

    async def _accept(self, listening: socket.socket) -> None:
        client: _Client[P] | None = None
        accepted = 0
        while True:
            accepted += 1
            if accepted % _AT_ONCE == 0:  # accepting does not wait while there are connections
                await asyncio.sleep(0)
            try:
                sock, peer = await self._accept_one(listening)
            except OSError as error:  # no file descriptor is left, or the client has gone
                log.debug("Failed to accept a connection: %s", error)
                self._make_room(client)
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            address = source(peer)
            wait = self._sharing.rate.wait(address) if self._sharing is not None else 0.0
            if wait is None:
                _refuse(sock)
                continue
            client = _Client(self, sock, address)
            self._clients[client] = None
            if len(self._clients) > self._most:
                self._make_room(client)
            task = asyncio.create_task(self._open(client, sock, wait))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    @staticmethod
    async def _accept_one(listening: socket.socket) -> tuple[socket.socket, Any]:
        return await asyncio.get_running_loop().sock_accept(listening)

    async def _open(self, client: _Client[P], sock: socket.socket, wait: float) -> None:
        if self._sharing is None:
            await self._shake(client, sock, HANDSHAKE_SECONDS)
            return
        if wait:
            await asyncio.sleep(wait)
        async with self._gate(client.address, self._sharing.handshakes):
            if client in self._clients:
                await self._shake(client, sock, self._sharing.handshake_seconds)
            else:  # it had to make room
                _refuse(sock)

    async def _shake(self, client: _Client[P], sock: socket.socket, seconds: float) -> None:
        limit = seconds if self._tls is not None else None
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: client, sock, ssl=self._tls, ssl_handshake_timeout=limit
            )
        except OSError:  # includes SSL errors and timeouts
            self.ended(client)
            sock.close()

    @contextlib.asynccontextmanager
    async def _gate(self, address: str, number: int) -> AsyncIterator[None]:
        """Let that many handshakes of an address happen at a time."""
        gate = self._gates.setdefault(address, _Gate(asyncio.Semaphore(number)))
        gate.users += 1
        try:
            async with gate.free:
                yield
        finally:
            gate.users -= 1
            if not gate.users:
                del self._gates[address]

    def _make_room(self, newest: _Client[P] | None) -> None:
        """Close one connection."""
        victim = next(self._candidates(newest), None)
        if victim is not None:
            victim.abort()

    def _candidates(self, newest: _Client[P] | None) -> Iterator[_Client[P]]:
        others = [client for client in self._clients if client is not newest]
        if self._sharing is not None:
            yield from self._of_the_most(others, self._sharing.proven)
        yield from (client for client in others if client.protocol is None)
        yield from (c for c in others if c.protocol is not None and self._idle(c.protocol))
        yield from others

    def _of_the_most(
        self, others: list[_Client[P]], proven: Callable[[P], bool]
    ) -> Iterator[_Client[P]]:
        """The connections of the addresses that have most of them, the least useful first."""
        numbers = Counter(client.address for client in self._clients)
        most = max(numbers.values())
        theirs = [client for client in others if numbers[client.address] == most]

        def order(client: _Client[P]) -> int:
            protocol = client.protocol
            if protocol is None:
                return 0
            return 1 + 2 * (not self._idle(protocol)) + proven(protocol)

        yield from sorted(theirs, key=order)


@dataclass(slots=True)
class _Gate:
    """The handshakes of one address, and those that wait."""

    free: asyncio.Semaphore
    users: int = 0


def _refuse(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    sock.close()


class _Client(asyncio.Protocol, Generic[P]):
    """One connection: forwards to the server's protocol."""

    def __init__(self, listener: Listener[P], sock: socket.socket, address: str) -> None:
        self.protocol: P | None = None
        self.address = address
        self._listener = listener
        self._socket = sock
        self._transport: asyncio.Transport | None = None

    def abort(self) -> None:
        """Close the connection at once."""
        self._listener.ended(self)
        if self._transport is not None:
            self._transport.abort()
        else:
            with contextlib.suppress(OSError):  # ends the handshake
                self._socket.shutdown(socket.SHUT_RDWR)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is ready."""
        self._transport = transport  # type: ignore[assignment] # uvloop's has all the methods
        self.protocol = self._listener.started(self)
        self.protocol.connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        """The connection has ended."""
        self._listener.ended(self)
        if self.protocol is not None:
            self.protocol.connection_lost(error)

    def data_received(self, data: bytes) -> None:
        """Forward."""
        if self.protocol is not None:
            self._listener.used(self)
            self.protocol.data_received(data)

    def eof_received(self) -> bool | None:
        """Forward."""
        return self.protocol.eof_received() if self.protocol is not None else None

    def pause_writing(self) -> None:
        """Forward."""
        if self.protocol is not None:
            self.protocol.pause_writing()

    def resume_writing(self) -> None:
        """Forward."""
        if self.protocol is not None:
            self.protocol.resume_writing()
