"""A listener with a limit on open connections, including TLS handshakes in progress.

Any client on the network may connect. asyncio's own servers have no limit, and create a protocol
only after the TLS handshake, so a protocol cannot limit clients that never complete theirs.

A server that clients share fairly (`Sharing`) counts connections by address, so a flood from one
address never keeps the others out. Every TLS server ends a connection whose records have no data:
no protocol notices them, and the event loop decrypts as many as have arrived before it goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from weakref import WeakValueDictionary

from ..base.klog import kv
from ..base.tasks import keep
from .sharing import AddressRate, Use, makes_room, source
from .tcp_bytes import bytes_read

log = logging.getLogger(__name__)

HANDSHAKE_SECONDS: Final = 10.0
"""Seconds after which a TLS handshake in progress is closed."""

OVERHEAD: Final = 64 * 1024
"""Bytes that a connection may receive beyond twice its data: handshake, certificates, records."""

UNDECRYPTED: Final = 256 * 1024
"""Bytes that event loops read, and decrypt later, for a protocol that has paused reading."""

WATCH_SECONDS: Final = 0.25
"""Between two checks of all connections."""

CHARGE: Final = 100
"""New connections that one with empty records counts as, so that its address must wait."""

PLACE_SECONDS: Final = 1.0
"""How long a connection of an address with too many waits for another one to end."""

_REPORTED: Final = 64
"""Addresses that are named in the log; strangers may have any number."""

_POLL_SECONDS: Final = 0.05
_BACKLOG: Final = 512
_RETRY_SECONDS: Final = 0.1

_AT_ONCE: Final = 32
"""Connections that are accepted before other tasks continue; a flood never ends."""

_RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER: a refused connection leaves no state in the kernel."""


class ServedConnection(asyncio.Protocol):
    """The protocol of a server for one connection, which begins after the TLS handshake."""

    proven: bool = False  # whether it was used as intended; it is closed after the others
    _transport: asyncio.Transport | None = None  # while it is open

    @property
    def idle(self) -> bool:
        """Whether no request is in progress."""
        return True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment] # uvloop's has all the methods

    def connection_lost(self, _error: Exception | None) -> None:
        self._transport = None

    def _read(self, on: bool) -> None:
        """Read from the connection, or let its client wait."""
        transport = self._transport
        if transport is None or transport.is_closing() or transport.is_reading() == on:
            return
        if on:
            transport.resume_reading()
        else:
            transport.pause_reading()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """How clients of different addresses share a server."""

    rate: float  # new connections of one address a second, in the long run
    burst: int  # new connections of one address at once
    patience: float  # seconds for which a connection waits for its handshake; then it is refused
    handshake_seconds: float
    handshakes: int  # of one address at a time
    # open connections of one address; a further one waits PLACE_SECONDS for one that is idle that
    # long, and takes its place
    connections: int
    unused_seconds: float = 10.0  # after which an idle connection ends that is not proven
    # after which an idle unproven connection counts as unused; the client sends its first request
    # with the end of the handshake, and may be busy
    new_seconds: float = 1.0
    # bytes that the kernel receives for a connection before it is read. The event loop reads all of
    # them at once, so they are the most that one connection delays others.
    received: int = 16 * 1024


class Listener:
    """Accepts connections.

    Beyond the limit, a connection is closed for each new one: the oldest in a TLS handshake, else
    the oldest that is not proven, else the oldest; idle ones first. The same happens when the
    process has no file descriptor left for a connection. With `sharing`, see `sharing.makes_room`.

    Args:
        factory: creates the protocol of a connection.
        most: number of connections.
        tls: the context of TLS handshakes; None: plain connections.
        sharing: how clients of different addresses share the server; None: they do not.
    """

    def __init__(
        self,
        factory: Callable[[], ServedConnection],
        most: int,
        tls: ssl.SSLContext | None = None,
        sharing: Sharing | None = None,
    ) -> None:
        self._factory, self._most, self._tls, self._sharing = factory, most, tls, sharing
        self._rate: AddressRate | None = None
        if sharing is not None:
            self._rate = AddressRate(sharing.rate, sharing.burst, sharing.patience, time.monotonic)
        # In the order of arrival; with `sharing`, of the last bytes received.
        self._clients: dict[_Client, None] = {}
        self._sockets: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._opening: set[asyncio.Task[None]] = set()
        # limit the handshakes of each address; each exists as long as a connection uses it
        self._gates: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._watch: asyncio.TimerHandle | None = None
        self._reported: set[str] = set()

    def __len__(self) -> int:
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
        addresses = await loop.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        try:
            for family, _, _, _, address in dict.fromkeys(addresses):
                self._listen(family, address)
        except OSError:
            await self.close()
            raise
        self._accepting = [
            asyncio.create_task(keep("accept", partial(self._accept, sock)))
            for sock in self._sockets
        ]
        self._check()

    async def close(self) -> None:
        """Stop listening; open connections stay, and are no longer checked."""
        if self._watch is not None:
            self._watch.cancel()
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        for sock in self._sockets:  # uvloop refuses to close one that is being waited for
            sock.close()

    def abort(self) -> None:
        """Close all connections at once."""
        for client in list(self._clients):
            client.abort()

    def started(self, client: _Client) -> ServedConnection | None:
        """Make the server's protocol for a connection that is ready; None: it had to make room."""
        return self._factory() if client in self._clients else None

    def used(self, client: _Client) -> None:
        """Note that a connection is ready, or has received something."""
        if self._sharing is not None and client in self._clients:
            self._clients[client] = self._clients.pop(client)
            client.used_at = asyncio.get_running_loop().time()

    def ended(self, client: _Client) -> None:
        self._clients.pop(client, None)

    # --- accepting ------------------------------------------------------------------------------

    def _listen(self, family: int, address: Any) -> None:
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError:
            if family == socket.AF_INET6:
                return  # the machine has no IPv6
            raise
        self._sockets.append(sock)
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if self._sharing is not None:  # accepted connections inherit it
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._sharing.received)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            sock.bind(address)
        except OSError as error:
            raise OSError(
                error.errno, f"cannot listen on {address[:2]}: {error.strerror}"
            ) from None
        sock.listen(_BACKLOG)

    async def _accept(self, listening: socket.socket) -> None:
        client: _Client | None = None
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
            wait = self._rate.wait(address) if self._rate is not None else 0.0
            if wait is None:
                _refuse(sock)
                continue
            client = _Client(self, sock, address)
            self._clients[client] = None
            if len(self._clients) > self._most:
                self._make_room(client)
            task = asyncio.create_task(self._open(client, sock, wait))
            self._opening.add(task)
            task.add_done_callback(partial(self._opened, sock))

    def _opened(self, sock: socket.socket, task: asyncio.Task[None]) -> None:
        self._opening.discard(task)
        if task.cancelled():  # the event loop ends
            sock.close()

    @staticmethod
    async def _accept_one(listening: socket.socket) -> tuple[socket.socket, Any]:
        return await asyncio.get_running_loop().sock_accept(listening)

    async def _open(self, client: _Client, sock: socket.socket, wait: float) -> None:
        if self._sharing is None:
            await self._shake(client, sock, HANDSHAKE_SECONDS)
            return
        if wait:
            await asyncio.sleep(wait)
        if not await self._place(client, self._sharing):
            self.ended(client)
            _refuse(sock)
            return
        most = asyncio.Semaphore(self._sharing.handshakes)
        async with self._gates.setdefault(client.address, most):
            if client in self._clients:
                await self._shake(client, sock, self._sharing.handshake_seconds)
            else:  # it had to make room
                _refuse(sock)

    async def _place(self, client: _Client, sharing: Sharing) -> bool:
        """Wait for a place among the connections of the address; False: it got none."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + PLACE_SECONDS
        while client in self._clients:
            theirs = [
                peer
                for peer in self._clients
                if peer.address == client.address and not peer.waiting
            ]
            if len(theirs) < sharing.connections:
                client.waiting = False
                return True
            # One that has just become idle is about to be used for a request that waits.
            before = loop.time() - PLACE_SECONDS
            uses = [(self._use(peer, sharing), peer) for peer in theirs if peer.used_at <= before]
            idle = [pair for pair in uses if pair[0] in (Use.UNUSED, Use.RESTS)]
            if idle:
                min(idle, key=lambda pair: pair[0])[1].abort()
            elif loop.time() >= ends:
                return False
            else:
                await asyncio.sleep(_POLL_SECONDS)
        return False

    async def _shake(self, client: _Client, sock: socket.socket, seconds: float) -> None:
        limit = seconds if self._tls is not None else None
        client.shakes = True
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: client, sock, ssl=self._tls, ssl_handshake_timeout=limit
            )
        except OSError:  # includes SSL errors and timeouts
            self.ended(client)
            sock.close()

    def _make_room(self, newest: _Client | None) -> None:
        """Close one connection."""
        victim = next(self._candidates(newest), None)
        if victim is not None:
            victim.abort()

    def _candidates(self, newest: _Client | None) -> Iterator[_Client]:
        if self._sharing is not None:
            yield from self._fair(newest, self._sharing)
            return
        others = [client for client in self._clients if client is not newest]
        yield from (client for client in others if client.protocol is None)
        opened = [(client.protocol, client) for client in others if client.protocol is not None]
        opened.sort(key=lambda pair: (pair[0].proven, not pair[0].idle))
        yield from (client for _, client in opened)

    def _fair(self, newest: _Client | None, sharing: Sharing) -> Iterator[_Client]:
        clients = list(self._clients)
        order = makes_room([(peer.address, self._use(peer, sharing)) for peer in clients])
        yield from (clients[at] for at in order if clients[at] is not newest)

    def _use(self, client: _Client, sharing: Sharing) -> Use:
        protocol = client.protocol
        if protocol is None:
            return Use.OPENS
        if protocol.proven:
            return Use.RESTS if protocol.idle else Use.WORKS
        if not protocol.idle:
            return Use.ASKS
        age = asyncio.get_running_loop().time() - client.used_at
        return Use.NEW if age < sharing.new_seconds else Use.UNUSED

    # --- unnoticed by protocols -----------------------------------------------------------------

    def _check(self) -> None:
        """End connections whose records have no data, and those that are not used."""
        loop = asyncio.get_running_loop()
        self._watch = loop.call_later(WATCH_SECONDS, self._check)
        sharing = self._sharing
        for client in list(self._clients):
            if self._tls is not None and client.swallowed():
                self._report(client.address)
                if self._rate is not None:
                    self._rate.charge(client.address, CHARGE)
                client.abort()
            elif (
                sharing is not None
                and self._use(client, sharing) is Use.UNUSED
                and loop.time() - client.used_at > sharing.unused_seconds
            ):
                client.abort()

    def _report(self, address: str) -> None:
        if address not in self._reported and len(self._reported) < _REPORTED:
            self._reported.add(address)
            log.warning(
                "Ended a connection that sent TLS records without data", extra=kv(address=address)
            )


def _refuse(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    sock.close()


class _Client(asyncio.Protocol):
    """One connection: forwards to the server's protocol."""

    def __init__(self, listener: Listener, sock: socket.socket, address: str) -> None:
        self.protocol: ServedConnection | None = None
        self.address = address
        self.shakes = False  # the event loop has the socket
        self.waiting = True  # for a place among the connections of its address
        self.used_at = asyncio.get_running_loop().time()
        self._data = 0
        self._paused = False
        self._listener = listener
        self._socket = sock
        self._transport: asyncio.Transport | None = None

    def abort(self) -> None:
        self._listener.ended(self)
        if self._transport is not None:
            self._transport.abort()
        elif not self.shakes:
            _refuse(self._socket)
        else:
            with contextlib.suppress(OSError):  # ends the handshake
                self._socket.shutdown(socket.SHUT_RDWR)

    def swallowed(self) -> bool:
        """Return whether the kernel delivered much more than the protocol received."""
        read = bytes_read(self._socket)
        if read is None:
            return False
        before, transport = self._paused, self._transport
        self._paused = transport is not None and not transport.is_reading()
        later = UNDECRYPTED if before or self._paused else 0
        return read > 2 * self._data + OVERHEAD + later

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment] # uvloop's has all the methods
        self._listener.used(self)
        self.protocol = self._listener.started(self)
        if self.protocol is None:
            self.abort()
        else:
            self.protocol.connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._listener.ended(self)
        if self.protocol is not None:
            self.protocol.connection_lost(error)

    def data_received(self, data: bytes) -> None:
        self._data += len(data)
        if self.protocol is not None:
            self._listener.used(self)
            self.protocol.data_received(data)

    def eof_received(self) -> bool | None:
        return self.protocol.eof_received() if self.protocol is not None else None

    def pause_writing(self) -> None:
        if self.protocol is not None:
            self.protocol.pause_writing()

    def resume_writing(self) -> None:
        if self.protocol is not None:
            self.protocol.resume_writing()
