"""A console over recorded answers, and a client of it."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any

import aiohttp
import pytest

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.cli.web.page import ConsoleCluster, Page, Question
from kube_scheduler_operator.cli.web.port import listening
from kube_scheduler_operator.cli.web.registry import PAGES
from kube_scheduler_operator.cli.web.security import Guard
from kube_scheduler_operator.cli.web.server import Console


@dataclass
class Reader:
    """Asks one console; the token is in `Authorization` unless a test has other headers."""

    session: aiohttp.ClientSession
    console: Console
    url: str

    async def ask(
        self, path: str, headers: Mapping[str, str] | None = None, method: str = "GET"
    ) -> tuple[int, str, Mapping[str, str]]:
        own = {"Authorization": f"Bearer {self.console.guard.token}"}
        async with self.session.request(
            method,
            self.url + path,
            headers=own if headers is None else headers,
            allow_redirects=False,
        ) as response:
            return response.status, await response.text(), response.headers


def answered_by(page: Page, answer: Callable[[], Awaitable[Any]]) -> Page:
    async def answer_of(_cluster: ConsoleCluster, _question: Question) -> Any:
        return await answer()

    return replace(page, answer=answer_of, first=None)


def recorded(world: Mapping[str, Any]) -> tuple[Page, ...]:
    """The pages with recorded answers; an error is one that is not known."""

    def page_of(page: Page) -> Page:
        async def answer() -> Any:
            if isinstance(world[page.name], Exception):
                raise world[page.name]
            return world[page.name]

        return answered_by(page, answer)

    return tuple(page_of(page) for page in PAGES if page.name in world)


Start = Callable[..., Awaitable[Reader]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    async with AsyncExitStack() as stack:

        async def started(pages: tuple[Page, ...], **flags: Any) -> Reader:
            known: dict[str, Any] = {
                "kubeconfig": None,
                "context": None,
                "as_user": "",
                "as_groups": [],
            }
            args = argparse.Namespace(**{**known, "as_uid": "", **flags})
            api: Any = None
            console = Console(ConsoleCluster(api, KUBEADM, args), Guard(0), "test", pages)
            served = listening(console.application(), console.connections, 0)
            port = await stack.enter_async_context(served)
            console.guard = Guard(port)
            session = await stack.enter_async_context(
                aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
            )
            return Reader(session, console, f"http://127.0.0.1:{port}")

        yield started
