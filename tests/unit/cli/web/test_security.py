"""Who may read the console."""

from __future__ import annotations

import pytest

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


async def test_head_has_no_body(start: Start) -> None:
    reader = await start(PAGES)
    assert (await reader.ask("/now", method="HEAD"))[:2] == (200, "")
    assert (await reader.ask("/events/now", method="HEAD"))[:2] == (200, "")


async def test_the_token_moves_from_the_address_into_a_cookie(start: Start) -> None:
    reader = await start(PAGES)
    guard = reader.console.guard
    status, _, headers = await reader.ask(f"//evil.example/x?token={guard.token}&a=b", {})
    assert (status, headers["Location"]) == (303, "/evil.example/x?a=b")
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
    from kube_scheduler_operator.cli.web.security import Guard

    tokens = {Guard(1).token for _ in range(8)}
    assert len(tokens) == 8
    assert min(map(len, tokens)) >= 43  # 256 bits
