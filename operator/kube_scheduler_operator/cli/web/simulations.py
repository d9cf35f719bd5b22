"""Answers that need kube-scheduler, computed beside the server: its pages stay quick meanwhile.

kube-scheduler runs on this machine. A Job in the cluster, which a command makes where this machine
has no kube-scheduler, is a write: pages make it only if the console was started for it.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine
from contextlib import aclosing
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from ..cluster.connection import client
from ..console.errors import CommandError, UsageError
from ..simulation.run import Simulation, from_cluster
from .page import ConsoleCluster

T = TypeVar("T")

_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
"""One simulation at a time: each has a copy of the cluster, and takes all of a processor."""

_ENDING: Final = 5.0
"""Seconds that kube-scheduler has to end."""

HELP: Final = "restart with --kube-scheduler PATH, or with --in-cluster, which runs it in a Job"


async def simulated(
    cluster: ConsoleCluster,
    work: Callable[[Simulation], Awaitable[T]],
    *,
    scheduler_name: str | None = None,
    new: Collection[str] = (),
) -> T:
    """Read the cluster and return what `work` makes of it; the names are those of `from_cluster`.

    Raises:
        KubeError: the cluster cannot be read.
        CommandError: kube-scheduler could not be run.
    """
    args = argparse.Namespace(**vars(cluster.args))
    args.local = args.local or not args.in_cluster

    async def answer() -> T:
        # A client belongs to one event loop.
        async with client(cluster.api.credentials) as api:
            try:
                read = await from_cluster(api, cluster.platform, args, scheduler_name, new)
            except UsageError as error:
                raise CommandError(f"{error}; {HELP}") from None
            async with aclosing(read) as simulation:
                return await work(simulation)

    async with _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
        return await apart(answer)


async def apart(answer: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine in an event loop of another thread; cancelling this one cancels it."""
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def announced() -> T:
        task = asyncio.current_task()
        if task is not None:
            started.append((asyncio.get_running_loop(), task))
        return await answer()

    thread = asyncio.ensure_future(asyncio.to_thread(lambda: asyncio.run(announced())))
    try:
        return await asyncio.shield(thread)
    except asyncio.CancelledError:
        for loop, task in started:
            loop.call_soon_threadsafe(task.cancel)
        await asyncio.wait([thread], timeout=_ENDING)
        raise
