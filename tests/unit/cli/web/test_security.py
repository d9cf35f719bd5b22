"""Who may read the console."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
import yarl

from kube_scheduler_operator.cli.web.port import CONNECTIONS
from kube_scheduler_operator.cli.web.security import Guard

from .conftest import Start, recorded
from .worlds import HEALTHY

PAGES = recorded(HEALTHY)


@pytest.mark.parametrize("path", ["/", "/now", "/api/v1/now", "/static/console.css", "/events/now"])
@pytest.mark.parametrize(
    ("headers", "sentence"),
    [
        ({}, "The token is missing"),
        ({"Authorization": "Bearer wrong"}, "The token is missing"),
        ({"Cookie": "kube-scheduler-console-{port}=wrong"}, "The token is missing"),
        ({"Cookie": "kube-scheduler-console-1={token}"}, "The token is missing"),
        ({"Authorization": "Bearer {token}", "Host": "evil.example:{port}"}, "The header Host"),
        ({"Authorization": "Bearer {token}", "Host": "127.0.0.1"}, "The header Host"),
        ({"Authorization": "Bearer {token}", "Host": "127.0.0.1.evil.example:{port}"}, "Host"),
        ({"Authorization": "Bearer {token}", "Origin": "https://evil.example"}, "not of this"),
        ({"Authorization": "Bearer {token}", "Origin": "null"}, "not of this"),
        ({"Authorization": "Bearer {token}", "Origin": "http://127.0.0.1:1"}, "not of this"),
        (
            {"Cookie": "kube-scheduler-console-{port}={token}", "Sec-Fetch-Site": "cross-site"},
            "not of this",
        ),
        (  # another port of this host
            {"Cookie": "kube-scheduler-console-{port}={token}", "Sec-Fetch-Site": "same-site"},
            "not of this",
        ),
    ],
)
async def test_another_page_and_another_program_read_nothing(
    start: Start, path: str, headers: dict[str, str], sentence: str
) -> None:
    reader = await start(PAGES)
    guard = reader.console.guard
    sent = {
        name: value.format(port=guard.port, token=guard.token) for name, value in headers.items()
    }
    status, text, answered = await reader.ask(path, sent)
    assert status == 403
    assert sentence in text
    assert guard.token not in text
    assert answered["Content-Security-Policy"].startswith("default-src 'none'")
    assert "Access-Control-Allow-Origin" not in answered


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_the_console_reads_only(start: Start, method: str) -> None:
    reader = await start(PAGES)
    status, text, _ = await reader.ask("/now", method=method)
    assert (status, "use GET or HEAD" in text) == (405, True)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b" 400 "),
        (b"GET / HTTP/1.1\r\nX\x1b[2J: a\r\n\r\n", b" 400 "),
        (b"GET /" + 9000 * b"a" + b" HTTP/1.1\r\n\r\n", b" 400 "),
        (b"GET / HTTP/1.1\r\nHost: a\r\nExpect: b\r\n\r\n", b" 417 "),
    ],
)
async def test_what_is_not_http_is_answered_without_a_trace(
    start: Start, sent: bytes, status: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """A stranger writes no line to the terminal of the reader, and every response is protected."""
    reader = await start(PAGES)
    stream, writer = await asyncio.open_connection("127.0.0.1", reader.console.guard.port)
    writer.write(sent)
    head = await stream.readuntil(b"\r\n\r\n")
    writer.close()
    assert status in head.splitlines()[0]
    assert b"Content-Security-Policy: default-src 'none'" in head
    assert caplog.text == ""


async def test_connections_without_the_token_make_room(start: Start) -> None:
    """A second user of the machine cannot keep the reader out, nor end what the reader has open."""
    reader = await start(PAGES)
    guard = reader.console.guard
    own = {"Authorization": f"Bearer {guard.token}"}
    async with AsyncExitStack() as stack:
        live = await stack.enter_async_context(
            reader.session.get(f"{reader.url}/events/now", headers=own)
        )
        for _ in range(3 * CONNECTIONS):
            _, writer = await asyncio.open_connection("127.0.0.1", guard.port)
            stack.callback(writer.close)
            writer.write(b"GET / HTTP/1.1\r\nX: ")
        await asyncio.sleep(0.1)
        assert (await reader.ask("/now"))[0] == 200
        assert not live.content.at_eof()


async def test_head_has_no_body(start: Start) -> None:
    reader = await start(PAGES)
    assert (await reader.ask("/now", method="HEAD"))[:2] == (200, "")
    assert (await reader.ask("/events/now", method="HEAD"))[:2] == (200, "")


async def test_the_token_moves_from_the_address_into_a_cookie(start: Start) -> None:
    reader = await start(PAGES)
    guard = reader.console.guard
    status, _, headers = await reader.ask(f"//evil.example/x?token={guard.token}&a=b", {})
    assert (status, headers["Location"]) == (303, "/evil.example/x?a=b")
    for sent in ("/%5Cevil.example", "/%09/evil.example", "/%0D%0ASet-Cookie:a"):
        url = yarl.URL(f"{sent}?token={guard.token}", encoded=True)
        status, _, headers = await reader.ask(f"{url}", {})
        assert (status, headers["Location"]) == (303, sent)
    status, _, headers = await reader.ask(f"/?token={guard.token}", {})
    assert (status, headers["Location"]) == (303, "/")
    assert headers["Referrer-Policy"] == "no-referrer"
    cookie = headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    status, text, _ = await reader.ask("/now", {"Cookie": cookie.partition(";")[0]})
    assert status == 200
    assert guard.token not in text


async def test_localhost_is_a_name_of_the_console(start: Start) -> None:
    reader = await start(PAGES)
    guard = reader.console.guard
    host = f"localhost:{guard.port}"
    own = {"Authorization": f"bearer {guard.token}", "Host": host, "Origin": f"http://{host}"}
    assert (await reader.ask("/now", own))[0] == 200


def test_every_console_has_its_own_token() -> None:
    tokens = {Guard(1).token for _ in range(8)}
    assert len(tokens) == 8
    assert min(map(len, tokens)) >= 43  # 256 bits
