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

from kube_scheduler_operator.serving import connections
from kube_scheduler_operator.serving.connections import Listener, ServedConnection, Sharing

if TYPE_CHECKING:
    from ..conftest import CertificateFiles

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


class Echo(ServedConnection):
    """Returns what it receives, and "end" at the end; lines make it busy or proven."""

    def __init__(self) -> None:
        self.busy = False
        self.transport: Any = None

    @property
    def idle(self) -> bool:
        return not self.busy

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.busy = data == b"busy\n"
        self.proven = self.proven or data == b"proven\n"
        self.transport.write(data)

    def eof_received(self) -> bool:
        self.transport.write(b"end\n")
        self.transport.close()
        return True


@contextlib.asynccontextmanager
async def listening(most: int, tls: ssl.SSLContext | None = None) -> AsyncIterator[Listener]:
    listener = Listener(Echo, most, tls)
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


async def connect(listener: Listener, tls: ssl.SSLContext | None = None) -> Client:
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


# --- fair shares by address -----------------------------------------------------------------------


def sharing(rate: float = 1e6, burst: int = 1000, patience: float = 0.0, **more: Any) -> Sharing:
    """Shares by address; a connection that was busy is proven."""
    return Sharing(
        rate=rate,
        burst=burst,
        patience=patience,
        handshake_seconds=0.3,
        handshakes=2,
        **({"connections": 64, "new_seconds": 0.0} | more),
    )


@contextlib.asynccontextmanager
async def shared(
    most: int, tls: ssl.SSLContext | None = None, shares: Sharing | None = None
) -> AsyncIterator[Listener]:
    listener = Listener(Echo, most, tls, shares or sharing())
    await listener.start("127.0.0.1", 0)
    try:
        yield listener
    finally:
        await listener.close()
        listener.abort()


async def connect_from(listener: Listener, address: str) -> Client:
    async with asyncio.timeout(20):
        made = await asyncio.open_connection(*listener.address, local_addr=(address, 0))
    CLIENTS.append(Client(*made))
    return CLIENTS[-1]


def test_connections_of_one_address_never_keep_another_one_out(run: Any) -> None:
    async def test() -> None:
        async with shared(8) as listener:
            kept = [await connect_from(listener, "127.0.0.1") for _ in range(3)]
            for client in kept:
                assert await client.ask(b"proven\n") == b"proven\n"
            flood = [await connect_from(listener, "127.0.0.2") for _ in range(60)]
            for client in flood[-5:]:
                assert await client.ask(b"busy\n") == b"busy\n"
            new = await connect_from(listener, "127.0.0.1")
            for client in (*kept, new):
                assert await client.ask(b"2\n") == b"2\n"
            assert all([await client.ended() for client in flood[:55]])
            assert len(listener) == 8

    run(test)


def test_an_address_loses_what_is_unproven_then_what_is_idle_for_longest(run: Any) -> None:
    async def test() -> None:
        async with shared(4) as listener:
            clients = {}
            for name in ("unused", "early", "late", "busy"):
                clients[name] = await connect_from(listener, "127.0.0.2")
            for name in ("late", "early", "late", "busy"):
                line = b"busy\n" if name == "busy" else b"proven\n"
                assert await clients[name].ask(line) == line
            for loser in ("unused", "early", "late"):
                clients["new"] = await connect_from(listener, "127.0.0.2")
                assert await clients["new"].ask(b"busy\n") == b"busy\n"
                assert await clients[loser].ended()
            assert await clients["busy"].ask(b"busy\n") == b"busy\n"

    run(test)


def test_handshakes_of_an_address_are_limited_before_they_begin(run: Any, tls: Any) -> None:
    server, client = tls

    async def test() -> None:
        async with shared(64, server, sharing(0.001, 3)) as listener:
            await _handshakes(listener, client, "127.0.0.2", 3)
            for _ in range(3):
                refused = await connect_from(listener, "127.0.0.2")
                assert await refused.ended()
            await _handshakes(listener, client, "127.0.0.1", 3)

    run(test)


async def _handshakes(listener: Listener, tls: ssl.SSLContext, address: str, n: int) -> None:
    for _ in range(n):
        made = await asyncio.open_connection(*listener.address, local_addr=(address, 0), ssl=tls)
        CLIENTS.append(Client(*made))
        assert await CLIENTS[-1].ask(b"1\n") == b"1\n"


def test_what_one_connection_sends_at_once_is_limited() -> None:
    async def test() -> None:
        async with shared(8) as listener:
            sizes = []
            for one in listener._sockets:
                sizes.append(one.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF))
            assert max(sizes) <= 2 * 16 * 1024  # Linux doubles it, for its own use

    asyncio.run(test())


def test_a_burst_waits_for_its_handshakes(run: Any, tls: Any) -> None:
    server, client = tls

    async def test() -> None:
        async with shared(64, server, sharing(20.0, 1, 5.0)) as listener:
            await asyncio.gather(
                *(_handshakes(listener, client, "127.0.0.1", 1) for _ in range(10))
            )

    run(test)


def test_silent_handshakes_of_one_address_do_not_delay_those_of_another(run: Any, tls: Any) -> None:
    server, client = tls

    async def test() -> None:
        async with shared(64, server) as listener:
            silent = [await connect_from(listener, "127.0.0.2") for _ in range(20)]
            await _handshakes(listener, client, "127.0.0.1", 3)
            assert all([await one.ended() for one in silent])
            assert listener._gates == {}

    run(test)


def test_a_flood_of_connections_leaves_time_for_other_tasks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test() -> None:
        served = 0

        async def accepts_always(_sock: socket.socket) -> Any:
            nonlocal served
            served += 1
            if served > 10_000:
                await asyncio.sleep(3600)
            one, other = socket.socketpair()
            other.close()
            one.setblocking(False)
            return one, ("127.0.0.2", 4711)

        monkeypatch.setattr(Listener, "_accept_one", staticmethod(accepts_always))
        async with shared(8, shares=sharing(0.001, 8)):
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert 0 < served < 10_000
            await asyncio.sleep(0.1)  # until the last handshakes have ended

    asyncio.run(test())


def test_a_connection_that_is_never_used_ends(run: Any) -> None:
    async def test() -> None:
        async with shared(8, shares=sharing(unused_seconds=0.3)) as listener:
            unused = await connect(listener)
            proven, busy = await connect(listener), await connect(listener)
            assert await proven.ask(b"proven\n") == b"proven\n"
            assert await busy.ask(b"busy\n") == b"busy\n"
            assert await unused.ended()
            assert await proven.ask(b"1\n") == b"1\n"
            assert await busy.ask(b"busy\n") == b"busy\n"

    run(test)


def test_an_address_with_too_many_connections_waits_for_its_own(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "PLACE_SECONDS", 0.3)

    async def test() -> None:
        async with shared(64, shares=sharing(connections=2)) as listener:
            other = await connect_from(listener, "127.0.0.1")
            busy = [await connect_from(listener, "127.0.0.2") for _ in range(2)]
            for client in busy:
                assert await client.ask(b"busy\n") == b"busy\n"
            refused = await connect_from(listener, "127.0.0.2")
            assert await refused.ended()
            assert await busy[0].ask(b"proven\n") == b"proven\n"
            waits = await connect_from(listener, "127.0.0.2")
            assert await waits.ask(b"1\n") == b"1\n"
            assert await busy[0].ended()
            for client in (busy[1], other):
                assert await client.ask(b"2\n") == b"2\n"

    run(test)


# --- TLS records without data ---------------------------------------------------------------------


def test_a_connection_with_nearly_empty_records_ends_and_its_address_waits(
    run: Any, tls: Any, caplog: pytest.LogCaptureFixture
) -> None:
    server, client = tls

    async def test() -> None:
        async with shared(64, server, sharing(10.0, 50)) as listener:
            kept = await connect(listener, client)
            assert await kept.ask(b"1\n") == b"1\n"
            for _ in range(2):
                await _empty_records(listener, client)
            with contextlib.suppress(OSError):
                await _handshakes(listener, client, "127.0.0.2", 1)
                pytest.fail("the address must wait")
            assert await kept.ask(b"2\n") == b"2\n"
            await _handshakes(listener, client, "127.0.0.1", 1)

    run(test)
    assert caplog.text.count("sent TLS records without data") == 1


async def _empty_records(listener: Listener, tls: ssl.SSLContext) -> None:
    """Send one byte in each record, until the server ends the connection."""
    try:
        made = await asyncio.open_connection(
            *listener.address, local_addr=("127.0.0.2", 0), ssl=tls
        )
    except OSError:
        return
    CLIENTS.append(Client(*made))
    discarding = asyncio.create_task(CLIENTS[-1].ended())
    while not discarding.done():
        for _ in range(100):
            made[1].write(b"x")
        await asyncio.sleep(0.001)
    await discarding


def test_data_in_full_records_never_ends_a_connection(run: Any, tls: Any) -> None:
    server, client = tls

    async def test() -> None:
        async with shared(64, server) as listener:
            sender = await connect(listener, client)
            for _ in range(64):
                line = 64 * 1024 * b"y" + b"\n"
                sender.writer.write(line)
                left = len(line)
                while left:
                    left -= len(await sender.reader.read(left))
                await asyncio.sleep(0.01)
            assert await sender.ask(b"1\n") == b"1\n"

    run(test)


def test_data_that_waits_for_a_protocol_that_does_not_read_ends_no_connection(
    run: Any, tls: Any
) -> None:
    server, client = tls

    async def test() -> None:
        async with shared(64, server) as listener:
            sender = await connect(listener, client)
            assert await sender.ask(b"busy\n") == b"busy\n"
            (accepted,) = listener._clients
            echo: Any = accepted.protocol
            echo.transport.pause_reading()
            sender.writer.write(1024 * 1024 * b"y")
            await asyncio.sleep(3 * connections.WATCH_SECONDS)
            assert len(listener) == 1
            echo.transport.resume_reading()
            await asyncio.sleep(2 * connections.WATCH_SECONDS)
            assert len(listener) == 1

    run(test)
