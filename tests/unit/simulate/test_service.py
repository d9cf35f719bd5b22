"""The program of the Pod answers its one client, and ends with it."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import aiohttp
import orjson
import pytest

from kube_scheduler_operator.simulate import questions, service
from kube_scheduler_operator.simulate.configuration import default_configuration
from kube_scheduler_operator.simulate.job import PATH
from kube_scheduler_operator.simulate.process import LaunchedProgram, SimulationError
from kube_scheduler_operator.simulate.questions import NO_BINARY, request
from kube_scheduler_operator.simulate.run_options import RunOptions
from kube_scheduler_operator.simulate.service import Service, ServiceOptions
from kube_scheduler_operator.simulate.world import World

KEY = {"Authorization": "Bearer key"}
STARTED: list[str] = []
WAITING = asyncio.Event()


async def say(world: World, options: RunOptions, text: str) -> str:
    """A question: the text, unless it is an order."""
    STARTED.append(text)
    if text == "fail":
        raise SimulationError("kube-scheduler ended")
    if text == "wait":
        WAITING.set()
        try:
            await asyncio.sleep(60)
        finally:
            STARTED.append("cancelled")
    if text == "slow":
        await asyncio.sleep(0.3)
    return text


@pytest.fixture(autouse=True)
def _questions(monkeypatch: pytest.MonkeyPatch) -> None:
    known: Mapping[str, Any] = MappingProxyType({"say": say})
    monkeypatch.setattr(questions, "QUESTIONS", known)
    STARTED.clear()


def asked(text: str) -> bytes:
    return request(say, World(), RunOptions(NO_BINARY, default_configuration()), {"text": text})


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@asynccontextmanager
async def served(
    wait: float = 5.0, binary: Path | None = Path(sys.executable)
) -> AsyncIterator[tuple[str, asyncio.Task[int]]]:
    port = free_port()
    digest = hashlib.sha256(b"key").hexdigest()
    options = ServiceOptions("127.0.0.1", digest, wait, port, binary)
    task = asyncio.create_task(Service(options).run())
    try:
        yield f"http://127.0.0.1:{port}{PATH}", task
    finally:
        task.cancel()
        await asyncio.wait((task,))


async def post(
    client: aiohttp.ClientSession, url: str, body: bytes, headers: Mapping[str, str] = KEY
) -> tuple[int, bytes]:
    for _ in range(100):
        try:
            async with client.post(url, data=body, headers=headers) as response:
                return response.status, await response.read()
        except aiohttp.ClientConnectorError:
            await asyncio.sleep(0.02)
    raise AssertionError("it does not listen")


async def test_it_answers_several_questions_and_ends_with_its_client() -> None:
    async with served() as (url, task):
        async with aiohttp.ClientSession() as client:
            assert await post(client, url, asked("one")) == (200, b'{"answer":"one"}')
            assert await post(client, url, asked("two")) == (200, b'{"answer":"two"}')
            assert not task.done()
        assert await asyncio.wait_for(task, 2) == 0


async def test_an_error_is_an_answer() -> None:
    async with served() as (url, _), aiohttp.ClientSession() as client:
        status, content = await post(client, url, asked("fail"))
        assert (status, orjson.loads(content)) == (200, {"error": "kube-scheduler ended"})
        status, content = await post(client, url, b"nothing")
        assert "the request is damaged" in orjson.loads(content)["error"]


async def test_a_pod_without_a_launcher_answers_with_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address = f"@test-{secrets.token_hex(8)}"
    monkeypatch.setattr(service, "LaunchedProgram", lambda: LaunchedProgram(address))
    async with served(wait=0.1, binary=None) as (url, _), aiohttp.ClientSession() as client:
        status, content = await post(client, url, asked("one"))
    error = "the container of the operand's image does not run"
    assert (status, orjson.loads(content)) == (200, {"error": error})
    assert STARTED == []


async def test_the_connection_has_traffic_while_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_KEEP_ALIVE", 0.05)
    async with served() as (url, _), aiohttp.ClientSession() as client:
        _, content = await post(client, url, asked("slow"))
        assert content.startswith(b"   ")
        assert orjson.loads(content) == {"answer": "slow"}


async def test_a_client_that_goes_away_ends_the_question_and_the_program() -> None:
    async with served() as (url, task):
        async with aiohttp.ClientSession() as client:
            waiting = asyncio.create_task(post(client, url, asked("wait")))
            await asyncio.wait_for(WAITING.wait(), 5)
            waiting.cancel()
            await asyncio.wait((waiting,))
        assert await asyncio.wait_for(task, 2) == 0
    assert STARTED == ["wait", "cancelled"]


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer other"}])
async def test_another_key_is_refused(headers: Mapping[str, str]) -> None:
    async with served() as (url, _), aiohttp.ClientSession() as client:
        status, _ = await post(client, url, asked("one"), headers)
        assert status == 401
    assert STARTED == []


async def test_it_ends_without_a_client() -> None:
    async with served(wait=0.1) as (_, task):
        assert await asyncio.wait_for(task, 2) == 0
