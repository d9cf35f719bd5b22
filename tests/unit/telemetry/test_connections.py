"""The limit on connections, with and without TLS, on asyncio's event loop and on uvloop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest
import uvloop

from kube_scheduler_operator.telemetry import connections
from kube_scheduler_operator.telemetry.connections import Listener

if TYPE_CHECKING:
    from ..conftest import CertificateFiles

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


class Echo(asyncio.Protocol):
    """Returns what it receives, and "end" at the end; busy after a line "busy"."""

    def __init__(self) -> None:
        self.busy = False
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.busy = data == b"busy\n"
        self.transport.write(data)

    def eof_received(self) -> bool:
        self.transport.write(b"end\n")
        self.transport.close()
        return True


@contextlib.asynccontextmanager
async def listening(most: int, tls: ssl.SSLContext | None = None) -> AsyncIterator[Listener[Echo]]:
    listener = Listener(Echo, most, tls, lambda echo: not echo.busy)
    await listener.start("127.0.0.1", 0)
    try:
        yield listener
    finally:
        await listener.close()
        listener.abort()


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, line: bytes) -> bytes:
        self.writer.write(line)
        async with asyncio.timeout(20):
            return await self.reader.readline()

    async def ended(self) -> bool:
        async with asyncio.timeout(20):
            try:
                return await self.reader.read() == b""
            except ConnectionError:
                return True


CLIENTS: list[Client] = []


async def connect(listener: Listener[Echo], tls: ssl.SSLContext | None = None) -> Client:
    async with asyncio.timeout(20):
        CLIENTS.append(Client(*await asyncio.open_connection(*listener.address, ssl=tls)))
    return CLIENTS[-1]


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Callable[[Callable[[], Awaitable[None]]], None]:
    """Runs a test on each event loop."""

    def runs(test: Callable[[], Awaitable[None]]) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(60):
                try:
                    await test()
                finally:
                    while CLIENTS:  # uvloop refuses to end with open connections
                        CLIENTS.pop().writer.transport.abort()
                    await asyncio.sleep(0.01)

        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            runner.run(bounded())

    return runs


@pytest.fixture
def tls(first_certificate: CertificateFiles) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The contexts of the server and of a client."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(first_certificate.certificate, first_certificate.key)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    return server, client


def test_the_oldest_idle_connection_makes_room(run: Any) -> None:
    async def test() -> None:
        async with listening(3) as listener:
            busy = await connect(listener)
            assert await busy.ask(b"busy\n") == b"busy\n"
            idle = [await connect(listener) for _ in range(4)]
            assert await idle[0].ended()
            assert await idle[1].ended()
            assert await busy.ask(b"again\n") == b"again\n"
            assert await idle[3].ask(b"hello\n") == b"hello\n"
            assert len(listener) == 3

    run(test)


def test_the_oldest_connection_makes_room_if_all_are_busy(run: Any) -> None:
    async def test() -> None:
        async with listening(2) as listener:
            clients = []
            for _ in range(3):
                clients.append(await connect(listener))
                if len(clients) < 3:
                    await clients[-1].ask(b"busy\n")
            assert await clients[0].ended()
            assert await clients[1].ask(b"a\n") == b"a\n"
            assert await clients[2].ask(b"b\n") == b"b\n"

    run(test)


def test_unfinished_handshakes_are_counted_and_end_first(run: Any, tls: Any) -> None:
    server, client = tls

    async def test() -> None:
        async with listening(4, server) as listener:
            idle = await connect(listener, client)
            assert await idle.ask(b"1\n") == b"1\n"
            strangers = [await connect(listener) for _ in range(20)]
            for stranger in strangers:
                stranger.writer.write(b"\x16\x03\x01\x40\x00\x01\x00\xff\xff\x03\x03")
            assert all([await stranger.ended() for stranger in strangers[:17]])
            assert len(listener) == 4
            assert await idle.ask(b"2\n") == b"2\n"
            new = await connect(listener, client)
            assert await new.ask(b"3\n") == b"3\n"

    run(test)


def test_a_handshake_has_a_time_limit(run: Any, tls: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HANDSHAKE_SECONDS", 0.2)

    async def test() -> None:
        async with listening(4, tls[0]) as listener:
            stranger = await connect(listener)
            assert await stranger.ended()
            assert len(listener) == 0

    run(test)


def test_a_client_that_is_not_tls_is_closed(run: Any, tls: Any) -> None:
    async def test() -> None:
        async with listening(4, tls[0]) as listener:
            stranger = await connect(listener)
            stranger.writer.write(b"GET / HTTP/1.1\r\n\r\n")
            async with asyncio.timeout(20):
                with contextlib.suppress(ConnectionError):
                    assert b"HTTP" not in await stranger.reader.read()
            while len(listener):  # noqa: ASYNC110 - there is nothing to wait for
                await asyncio.sleep(0.01)

    run(test)


def test_a_half_closed_connection_receives_the_rest(run: Any) -> None:
    async def test() -> None:
        async with listening(4) as listener:
            client = await connect(listener)
            assert await client.ask(b"1\n") == b"1\n"
            client.writer.write_eof()
            async with asyncio.timeout(20):
                assert await client.reader.read() == b"end\n"
            while len(listener):  # noqa: ASYNC110 - there is nothing to wait for
                await asyncio.sleep(0.01)

    run(test)


def test_without_file_descriptors_the_oldest_connection_ends(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with listening(10) as listener:
            first, second = await connect(listener), await connect(listener)
            assert await second.ask(b"1\n") == b"1\n"
            accept, left = Listener._accept_one, [OSError(errno.EMFILE, "Too many open files")]

            async def fails(sock: socket.socket) -> Any:
                if left:
                    raise left.pop()
                return await accept(sock)

            monkeypatch.setattr(Listener, "_accept_one", staticmethod(fails))
            # The accept in progress succeeds; the one after it fails.
            third = await connect(listener)
            assert await third.ask(b"3\n") == b"3\n"
            assert await first.ended()
            fourth = await connect(listener)
            assert await fourth.ask(b"4\n") == b"4\n"

    run(test)


def test_it_listens_on_all_addresses_of_a_host(run: Any) -> None:
    async def test() -> None:
        listener = Listener(Echo, 4)
        await listener.start("localhost", 0)
        address = listener.address
        try:
            client = await connect(listener)
            assert await client.ask(b"1\n") == b"1\n"
        finally:
            await listener.close()
            listener.abort()
        with pytest.raises(OSError, match=r"."):
            await asyncio.open_connection(*address)

    run(test)


def test_an_address_in_use_is_reported(run: Any) -> None:
    async def test() -> None:
        async with listening(4) as listener:
            with pytest.raises(OSError, match=r"cannot listen on .*in use"):
                await Listener(Echo, 4).start(*listener.address)

    run(test)
