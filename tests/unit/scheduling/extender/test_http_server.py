"""The HTTP server's protocol, limits and shutdown."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from collections.abc import Callable

import pytest

from kube_scheduler_operator.serving import http_connection, http_server
from kube_scheduler_operator.serving.http_types import (
    Answer,
    HttpRequest,
    HttpResponse,
    Limits,
    text,
)

from .conftest import Client, request, running


def echo(given: HttpRequest) -> Answer:
    return HttpResponse(200, b"|".join((given.method, given.path, given.query, given.body)))


async def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - there is nothing to wait for
            await asyncio.sleep(0.01)


async def test_connections_are_kept_alive() -> None:
    async with running(echo) as server, server.client() as client:
        for body in (b"", b"x", b"y" * 100_000):
            answer = await client.ask("POST", "/a/filter?x=1&y", body)
            assert answer.status == 200
            assert answer.body == b"POST|/a/filter|x=1&y|" + body
        assert len(server.server.connections) == 1


async def test_head_has_no_body() -> None:
    async with running(echo) as server, server.client() as client:
        answer = await client.ask("HEAD", "/healthz")
        assert int(answer.headers["content-length"]) > 0
        assert (await client.ask("GET", "/next")).body == b"GET|/next||"


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with running(echo) as server, server.client() as client:
        await client.send(b"".join(request("POST", f"/{i}", b"b" * i) for i in range(200)))
        for i in range(200):
            assert (await client.answer()).body == b"POST|/%d||%b" % (i, b"b" * i)


async def test_pipelined_requests_wait_for_a_slow_one() -> None:
    gate = asyncio.Event()

    async def slow() -> Answer:
        await gate.wait()
        return b'"slow"'

    def app(given: HttpRequest) -> object:
        return slow() if given.path == b"/slow" else b'"quick"'

    async with running(app) as server, server.client() as client:  # type: ignore[arg-type]
        await client.send(request("GET", "/slow") + request("GET", "/") + request("GET", "/slow"))
        await asyncio.sleep(0.05)
        gate.set()
        assert [(await client.answer()).json for _ in range(3)] == ["slow", "quick", "slow"]


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
async def test_requests_may_be_split_anywhere(size: int) -> None:
    whole = request("POST", "/a", b"hello", Expect="100-continue") + request("GET", "/b")
    async with running(echo) as server, server.client() as client:
        for at in range(0, len(whole), size):
            await client.send(whole[at : at + size])
            await asyncio.sleep(0)
        assert (await client.answer()).body == b"POST|/a||hello"
        assert (await client.answer()).body == b"GET|/b||"


async def test_expect_100_continue_is_answered() -> None:
    head = request("POST", "/", b"hello", Expect="100-continue")[:-5]
    async with running(echo) as server, server.client() as client:
        await client.send(head)
        assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await client.send(b"hello")
        assert (await client.answer()).body == b"POST|/||hello"


async def test_expect_100_continue_with_a_large_body_is_refused() -> None:
    limits = Limits(body=4)
    head = request("POST", "/", b"hello", Expect="100-continue")[:-5]
    async with running(echo, limits) as server, server.client() as client:
        await client.send(head)
        answer = await client.answer()
        assert (answer.status, client.sent) == (413, [])
        assert b"4 bytes" in answer.body
        assert await client.ended()
        assert server.server.refused == {413: 1}


async def test_chunked_bodies_are_joined() -> None:
    head = b"POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with running(echo) as server, server.client() as client:
        await client.send(head + b"3\r\nabc\r\n4;ext=1\r\ndefg\r\n0\r\nTrailer: t\r\n\r\n")
        assert (await client.answer()).body == b"POST|/c||abcdefg"


async def test_small_chunks_need_hardly_more_memory_than_their_bytes() -> None:
    size = 500_000
    async with running(echo) as server, server.client() as client:
        tracemalloc.start()
        try:
            await client.send(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(100):
                await client.send(b"2\r\nab\r\n" * (size // 200))
                await asyncio.sleep(0)
            await until(lambda: server.server.held == size)
            used, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        # Client and server share this process; a list of chunks would take 10 MB.
        assert used < 4 * size


async def test_bodies_of_all_clients_together_have_a_limit() -> None:
    limits = Limits(body=1000, bodies=1500)
    async with running(echo, limits) as server, server.client() as small, server.client() as large:
        await large.send(request("POST", "/", b"x" * 1000)[:-10])
        await until(lambda: server.server.held == 990)
        await small.send(request("POST", "/small", b"y" * 600)[:-10])
        answer = await large.answer()
        assert answer.status == 503
        assert b"1500 bytes" in answer.body
        assert await large.ended()
        await small.send(b"y" * 10)
        assert (await small.answer()).body == b"POST|/small||" + b"y" * 600
        assert (await small.ask("POST", "/", b"z" * 1000)).status == 200
        assert server.server.held == 0


async def test_a_body_is_counted_until_its_response() -> None:
    gate = asyncio.Event()

    async def slow() -> Answer:
        await gate.wait()
        return b"1"

    async with (
        running(lambda _: slow(), Limits(body=1000)) as server,
        server.client() as served,
        server.client() as gone,
    ):
        await served.send(request("POST", "/", b"x" * 700))
        await gone.send(request("POST", "/", b"x" * 300))
        await until(lambda: server.server.held == 1000)
        gone.close()
        gate.set()
        assert (await served.answer()).status == 200
        await until(lambda: server.server.held == 0)


async def test_chunked_bodies_have_the_same_limit() -> None:
    head = b"POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with running(echo, Limits(body=1000)) as server, server.client() as client:
        await client.send(head + b"200\r\n" + b"a" * 512 + b"\r\n")
        await client.send(b"200\r\n" + b"a" * 512 + b"\r\n")
        assert (await client.answer()).status == 413


@pytest.mark.parametrize(
    ("bytes_", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),  # a TLS client
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n", 501),
        (b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", 501),
        (b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nHost: x\r\nExpect: the-unexpected\r\n\r\n", 417),
        (b"GET / HTTP/1.1\r\nbad header\r\n\r\n", 400),
        (b"GET /\x00 HTTP/1.1\r\n\r\n", 400),
        (b"\x00" * 100, 400),
    ],
)
async def test_malformed_requests_are_refused(bytes_: bytes, status: int) -> None:
    async with running(echo) as server, server.client() as client:
        await client.send(bytes_)
        answer = await client.answer()
        assert answer.status == status
        assert answer.headers["connection"] == "close"
        assert await client.ended()
        async with server.client() as other:
            assert (await other.ask("GET", "/")).status == 200


@pytest.mark.parametrize(
    "line",
    [b"X: " + b"a" * 70_000 + b"\r\n\r\n", b"X: a\r\n" * 20_000, b"X: " + b"a" * 500_000],
)
async def test_headers_are_limited(line: bytes) -> None:
    async with running(echo) as server, server.client() as client:
        await client.send(b"GET / HTTP/1.1\r\n")
        for at in range(0, len(line), 20_000):
            if client.writer.is_closing():
                break
            client.writer.write(line[at : at + 20_000])
            await asyncio.sleep(0.005)
        assert (await client.answer()).status == 431


async def test_trailers_are_limited() -> None:
    head = b"POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: "
    async with running(echo) as server, server.client() as client:
        await client.send(head)
        for _ in range(20):
            client.writer.write(b"a" * 10_000)
            await asyncio.sleep(0.005)
        assert (await client.answer()).status == 431


async def test_half_closed_connections_are_answered() -> None:
    async def later() -> Answer:
        await asyncio.sleep(0.05)
        return b"1"

    async with running(lambda _: later()) as server, server.client() as client:
        client.writer.write(request("GET", "/") + request("GET", "/"))
        client.writer.write_eof()
        assert (await client.answer()).body == b"1"
        assert (await client.answer()).body == b"1"
        assert await client.ended()


async def test_a_connection_closed_within_a_request_is_dropped() -> None:
    async with running(echo) as server, server.client() as client:
        client.writer.write(request("POST", "/", b"abc")[:-1])
        client.writer.write_eof()
        assert await client.ended()
        await until(lambda: not server.server.connections)


async def test_http_1_0_and_connection_close_end_the_connection() -> None:
    async with running(echo) as server:
        async with server.client() as client:
            await client.send(b"GET /old HTTP/1.0\r\n\r\n")
            answer = await client.answer()
            assert (answer.body, answer.headers["connection"]) == (b"GET|/old||", "close")
            assert await client.ended()
        async with server.client() as client:
            await client.ask("GET", "/", Connection="close")
            assert await client.ended()


async def test_an_exception_fails_only_its_request(caplog: pytest.LogCaptureFixture) -> None:
    def app(given: HttpRequest) -> Answer:
        if given.path == b"/bug":
            raise ZeroDivisionError
        return b"1"

    async with running(app) as server, server.client() as client:
        assert (await client.ask("GET", "/bug")).status == 500
        assert (await client.ask("GET", "/")).status == 200
    assert "A request failed" in caplog.text


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> Limits:
    """Timeouts of tenths of a second."""
    monkeypatch.setattr(http_server, "SWEEP", 0.02)
    monkeypatch.setattr(http_connection, "LINGER", 0.1)
    return Limits(head_seconds=0.2, body_seconds=0.4, idle_seconds=0.3, write_seconds=0.3)


async def test_slow_headers_time_out(hurried: Limits) -> None:
    async with running(echo, hurried) as server, server.client() as client:

        async def trickle() -> None:
            for byte in b"GET / HTTP/1.1\r\nX: " + b"a" * 1000:
                client.writer.write(bytes([byte]))
                await asyncio.sleep(0.02)

        trickling = asyncio.create_task(trickle())
        assert (await client.answer()).status == 408
        trickling.cancel()
        await until(lambda: not server.server.connections)


async def test_a_missing_body_times_out(hurried: Limits) -> None:
    async with running(echo, hurried) as server, server.client() as client:
        await client.send(request("POST", "/", b"abc")[:-1])
        assert (await client.answer()).status == 408


async def test_idle_connections_are_closed(hurried: Limits) -> None:
    async with running(echo, hurried) as server, server.client() as client:
        assert (await client.ask("GET", "/")).status == 200
        assert await client.ended()
        assert not server.server.refused


async def test_a_client_that_does_not_read_is_disconnected(hurried: Limits) -> None:
    answered = 0

    def app(_: HttpRequest) -> Answer:
        nonlocal answered
        answered += 1
        return b"x" * 1_000_000

    async with running(app, hurried) as server, server.client(limit=1024) as client:
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        client.writer.write(request("GET", "/") * 500)
        await until(lambda: answered and not server.server.connections)
        assert answered < 100


async def test_a_slow_reader_gets_all_responses() -> None:
    size = 2_000_000

    async with running(lambda _: b"x" * size) as server, server.client() as client:
        client.writer.write(request("GET", "/") * 20)
        await asyncio.sleep(0.1)
        for _ in range(20):
            assert len((await client.answer()).body) == size


async def test_too_many_connections_close_the_idle_ones() -> None:
    async with running(echo, Limits(connections=3)) as server:
        clients: list[Client] = []
        for _ in range(10):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.server.port)
            clients.append(Client(reader, writer))
            assert (await clients[-1].ask("GET", "/")).status == 200
        assert len(server.server.connections) == 3
        assert await clients[0].ended()
        assert (await clients[-1].ask("GET", "/")).status == 200
        for client in clients:
            client.close()


async def test_shutdown_finishes_requests() -> None:
    gate = asyncio.Event()

    async def slow() -> Answer:
        await gate.wait()
        return b"1"

    async with running(lambda _: slow()) as server:
        async with server.client() as busy, server.client() as idle:
            await busy.send(request("GET", "/"))
            await until(lambda: len(server.server.connections) == 2)
            await asyncio.sleep(0.05)
            stopping = asyncio.create_task(server.server.stop(20.0))
            assert await idle.ended()
            gate.set()
            answer = await busy.answer()
            assert (answer.body, answer.headers["connection"]) == (b"1", "close")
            await stopping
        with pytest.raises(OSError, match=r"."):
            await asyncio.open_connection("127.0.0.1", server.server.port)


async def test_shutdown_has_a_time_limit() -> None:
    async with running(lambda _: asyncio.sleep(600, b"")) as server, server.client() as client:
        await client.send(request("GET", "/"))
        await until(lambda: server.server.connections)
        await asyncio.sleep(0.05)
        began = time.monotonic()
        await server.server.stop(0.1)
        assert time.monotonic() - began < 20
        assert await client.ended()


def test_text_responses_end_with_a_newline() -> None:
    assert text(404, "no").body == b"no\n"
