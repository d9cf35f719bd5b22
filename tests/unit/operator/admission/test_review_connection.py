"""One connection of the webhook: what is refused unread, and what keeps the connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kube_scheduler_operator.base.json_text import separators
from kube_scheduler_operator.operator.admission import review_connection as module
from kube_scheduler_operator.operator.admission.decisions import ReviewAnswer
from kube_scheduler_operator.operator.admission.fair_shares import SMALL
from kube_scheduler_operator.operator.admission.review_connection import (
    MAX_BODY,
    MAX_DISCARDED,
    MAX_HEAD,
    MAX_VALUES,
    ReviewConnection,
    SharedDesk,
)

from .webhook_client import post, review

GOOD = ReviewAnswer(200, b"{}", result="unchanged")
HEAD = b"POST /assign?timeout=1s HTTP/1.1\r\nHost: x\r\n"


class PlayedTransport(asyncio.Transport):
    """Collects what is written, and delivers nothing while reading is paused."""

    def __init__(self, address: str) -> None:
        super().__init__({"peername": (address, 4711)})
        self.written = b""
        self.reading = True
        self.closed = self.aborted = False

    def write(self, data: Any) -> None:
        self.written += data

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_reading(self) -> bool:
        return self.reading

    def is_closing(self) -> bool:
        return self.closed or self.aborted

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True


class Played:
    """What is shared, with connections.

    Attributes:
        answer: of each request.
        decided: the bodies that were decided about: (address, body).
        results: what was counted.
    """

    def __init__(self) -> None:
        self.answer: ReviewAnswer | Awaitable[ReviewAnswer] = GOOD
        self.decided: list[tuple[str, bytes]] = []
        self.results: list[str] = []
        self.shared = SharedDesk(self._decide, self.results.append)

    def _decide(self, body: bytes, address: str) -> ReviewAnswer | Awaitable[ReviewAnswer]:
        self.decided.append((address, body))
        return self.answer

    def connect(self, address: str = "10.0.0.1") -> tuple[ReviewConnection, PlayedTransport]:
        connection, transport = ReviewConnection(self.shared), PlayedTransport(address)
        connection.connection_made(transport)
        return connection, transport


@pytest.fixture
def played() -> Played:
    return Played()


async def turns(number: int = 6) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


def statuses(transport: PlayedTransport) -> list[int]:
    return [int(part[:3]) for part in transport.written.split(b"HTTP/1.1 ")[1:]]


async def test_a_review_is_decided_and_the_connection_stays(played: Played) -> None:
    connection, transport = played.connect()
    for _ in range(3):
        connection.data_received(post(review()))
        await turns()
    assert statuses(transport) == [200, 200, 200]
    assert played.decided == [("10.0.0.1", review())] * 3
    assert connection.idle
    assert connection.proven
    assert transport.reading
    assert not transport.is_closing()


async def test_a_request_may_arrive_in_any_parts(played: Played) -> None:
    connection, transport = played.connect()
    for byte in post(review()) * 2:
        connection.data_received(bytes([byte]))
        await asyncio.sleep(0)
    await turns()
    assert statuses(transport) == [200, 200]
    assert {body for _, body in played.decided} == {review()}


async def test_requests_of_a_connection_are_answered_one_after_the_other(played: Played) -> None:
    waiting: asyncio.Future[ReviewAnswer] = asyncio.get_running_loop().create_future()
    played.answer = waiting
    connection, transport = played.connect()
    connection.data_received(post(b"1") + post(b"2"))
    await turns()
    assert len(played.decided) == 1
    assert not transport.reading
    waiting.set_result(GOOD)
    played.answer = GOOD
    await turns(12)
    assert [body for _, body in played.decided] == [b"1", b"2"]
    assert statuses(transport) == [200, 200]


@pytest.mark.parametrize(
    ("request_", "status", "results"),
    [
        (HEAD + b"\r\n", 411, ["invalid"]),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n1\r\n0\r\n\r\n", 411, ["invalid"]),
        (HEAD + b"Content-Length: %d\r\n\r\n" % (MAX_DISCARDED + 1), 413, ["invalid"]),
        (HEAD + b"Content-Length: %s\r\n\r\n" % (b"9" * 18), 413, ["invalid"]),
        (post(b"{}", "Content-Encoding: gzip"), 415, ["invalid"]),
        (b"POST /other HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", 404, []),
        (b"GET /assign HTTP/1.1\r\n\r\n", 405, []),
        (b"nonsense\r\n\r\n", 400, []),
        (HEAD + b"Content-Length: -1\r\n\r\n", 400, []),
        (HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, []),
        (HEAD + b"X: " + b"y" * MAX_HEAD, 431, []),
    ],
    ids=["no length", "chunked", "too large", "huge", "compressed", "path", "method", "no HTTP",
         "negative", "two lengths", "head"],
)  # fmt: skip
async def test_what_no_api_server_sends_is_refused_unread_and_ends_the_connection(
    played: Played,
    monkeypatch: pytest.MonkeyPatch,
    request_: bytes,
    status: int,
    results: list[str],
) -> None:
    monkeypatch.setattr(module, "LINGER", 0.01)
    connection, transport = played.connect()
    connection.data_received(request_)
    assert statuses(transport) == [status]
    assert b"Connection: close" in transport.written
    assert not transport.reading
    connection.data_received(post(review()))
    await asyncio.sleep(0.05)
    assert transport.aborted
    assert played.results == results
    assert played.decided == []


async def test_separators_in_the_strings_of_a_pod_are_not_counted(played: Played) -> None:
    """A template of a workflow engine is one value, in a variable of each container."""
    template = json.dumps({"args": ["{{,}}"] * 9000})
    container = {"name": "c", "image": "i", "env": [{"name": "T", "value": template}]}
    body = review(containers=[container] * 8)
    assert separators(body) > 2 * MAX_VALUES
    connection, transport = played.connect()
    sent = post(body)
    for at in range(0, len(sent), 65536):
        connection.data_received(sent[at : at + 65536])
        await turns()
    await turns()
    assert statuses(transport) == [200]
    assert played.decided == [("10.0.0.1", body)]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"[" + b"[]," * MAX_VALUES + b"1]", b"values"),
        (b"[" + b'"", ' * MAX_VALUES + b"1]", b"values"),
        (b" " * (MAX_BODY + 1), b"bytes"),
    ],
    ids=["values", "strings", "bytes"],
)
async def test_what_a_pod_of_a_tenant_may_be_is_left_unparsed_and_keeps_the_connection(
    played: Played, body: bytes, message: bytes
) -> None:
    connection, transport = played.connect()
    sent = post(body)
    for at in range(0, len(sent), 65536):
        await turns()
        connection.data_received(sent[at : at + 65536])
        assert len(connection._body) + len(connection._buffer) <= MAX_BODY
    await turns()
    assert statuses(transport) == [413]
    assert message in transport.written
    assert not transport.is_closing()
    assert transport.reading
    connection.data_received(post(review()))
    await turns()
    assert statuses(transport) == [413, 200]
    assert played.decided == [("10.0.0.1", review())]
    assert played.results == ["invalid", "unchanged"]


async def test_a_second_large_body_of_an_address_is_not_read_before_the_first(
    played: Played,
) -> None:
    large = post(b" " * (2 * SMALL))
    half = len(large) // 2
    first, first_transport = played.connect()
    second, second_transport = played.connect()
    other, other_transport = played.connect("10.0.0.2")
    for connection in (first, second, other):
        connection.data_received(large[:half])
        await turns()
    assert (first_transport.reading, second_transport.reading) == (True, False)
    assert other_transport.reading
    first.data_received(large[half:])
    await turns()
    assert second_transport.reading


@pytest.mark.parametrize(
    ("sent", "status", "results"),
    [
        (b"POST /assign HT", [], []),
        (HEAD + b"Content-Length: 10\r\n\r\n12345", [408], ["error"]),
    ],
    ids=["head", "body"],
)
async def test_who_sends_slowly_is_cut(
    played: Played,
    monkeypatch: pytest.MonkeyPatch,
    sent: bytes,
    status: list[int],
    results: list[str],
) -> None:
    monkeypatch.setattr(module, "READ_SECONDS", 0.05)
    monkeypatch.setattr(module, "LINGER", 0.01)
    connection, transport = played.connect()
    connection.data_received(sent)
    await asyncio.sleep(0.2)
    assert transport.aborted
    assert statuses(transport) == status
    assert played.results == results


async def test_who_waits_for_too_long_receives_an_answer_and_gives_way(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "READ_SECONDS", 0.05)
    never: asyncio.Future[ReviewAnswer] = asyncio.get_running_loop().create_future()
    played.answer = never
    decided, decided_transport = played.connect()
    decided.data_received(post(review()))
    holder, _ = played.connect("10.0.0.2")
    monkeypatch.setattr(module, "READ_SECONDS", 60.0)
    holder.data_received(post(b" " * (2 * SMALL))[:100])
    await turns()
    monkeypatch.setattr(module, "READ_SECONDS", 0.05)
    waiting, waiting_transport = played.connect("10.0.0.2")
    waiting.data_received(post(b" " * (2 * SMALL))[:100])
    await asyncio.sleep(0.2)
    assert statuses(decided_transport) == [503]
    assert never.cancelled()
    assert not decided_transport.is_closing()
    assert statuses(waiting_transport) == [429]
    assert sorted(played.results) == ["busy", "error"]
    holder.connection_lost(None)


async def test_an_end_at_any_moment_leaves_nothing(played: Played) -> None:
    sent = post(b" " * (SMALL + 100))
    unfinished: Callable[[], Any] = asyncio.get_running_loop().create_future
    for end in (0, 10, 200, SMALL, len(sent)):
        played.answer = unfinished()
        connection, _ = played.connect()
        connection.data_received(sent[:end])
        await turns()
        connection.connection_lost(None)
        await turns()
    shared = played.shared
    assert not shared.connections
    assert not shared.busy
    assert (shared.bodies._stored, len(shared.bodies._received)) == (0, 0)
    played.answer = GOOD
    connection, transport = played.connect()
    connection.data_received(sent)
    await turns()
    assert statuses(transport) == [200]


async def test_a_client_that_does_not_read_ends(played: Played) -> None:
    connection, transport = played.connect()
    connection.data_received(post(review()))
    connection.pause_writing()
    assert transport.aborted
