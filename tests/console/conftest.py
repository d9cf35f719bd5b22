"""The console over recorded answers, in a thread of its own, and a browser for it."""

from __future__ import annotations

import argparse
import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from aiohttp import web

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.cli.web.page import ConsoleCluster
from kube_scheduler_operator.cli.web.security import Guard
from kube_scheduler_operator.cli.web.server import Console

from ..browser import axe, browser
from ..unit.cli.web.conftest import recorded
from .states import STATES

__all__ = ["axe", "browser"]

WHERE = "prod-eu-west-1 (https://api.prod-eu-west-1.shop.example:6443), as jane@shop.example"


def cluster() -> ConsoleCluster:
    """A cluster of which nothing is asked."""
    args = argparse.Namespace(
        kubeconfig=None, context="prod-eu-west-1", as_user="", as_groups=[], as_uid=""
    )
    api: Any = None
    return ConsoleCluster(api, KUBEADM, args)


class _Served(threading.Thread):
    """A console over answers, by page, until `end`."""

    def __init__(self, world: Mapping[str, Any]) -> None:
        super().__init__()
        self._console = Console(cluster(), Guard(0), WHERE, recorded(world))
        self._serving = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end = asyncio.Event()

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        runner = web.AppRunner(
            self._console.application(), access_log=None, handler_cancellation=True,
            shutdown_timeout=0.1,
        )  # fmt: skip
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self._console.guard = Guard(runner.addresses[0][1])
        self._serving.set()
        await self._end.wait()
        await runner.cleanup()

    @property
    def address(self) -> str:
        assert self._serving.wait(30)
        return self._console.guard.address

    def end(self) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._end.set)
        self.join(30)


@contextmanager
def served(world: Mapping[str, Any]) -> Iterator[str]:
    """The first address of a console over these answers, by page."""
    thread = _Served(world)
    thread.start()
    try:
        yield thread.address
    finally:
        thread.end()


@pytest.fixture(scope="session")
def consoles() -> Iterator[Mapping[str, str]]:
    """The first address of a console for each state."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(served(world)) for name, world in STATES.items()}
