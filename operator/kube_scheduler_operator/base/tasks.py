"""How the tasks of a program end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeVar

from .backoff import Backoff
from .defects import contained

T = TypeVar("T")

RESTARTS: Final = Backoff.exponential(1.0, 60.0)
"""The delays after which a background task runs again."""


def stop_on_signals() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


async def keep(name: str, work: Callable[[], Awaitable[None]]) -> None:
    """Run a background task until it returns; after an error, run it again.

    No caller awaits such a task while the program runs, so its error would end it unnoticed.
    """
    loop, failures = asyncio.get_running_loop(), 0
    while True:
        began = loop.time()
        try:
            await work()
        except Exception as error:
            contained("task", name, error)
        else:
            return
        failures = 0 if loop.time() - began > RESTARTS.delays[-1] else failures
        await asyncio.sleep(RESTARTS.delay(failures))
        failures += 1


async def cancel(*tasks: asyncio.Task[Any] | None) -> None:
    """Cancel tasks one after the other, and wait for their end. Raises their errors."""
    for task in tasks:
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def gathered(works: Iterable[Callable[[], Awaitable[T]]], at_once: int) -> list[T]:
    """Do work, at most `at_once` at the same time; return the results in its order.

    The first error ends all of it, and is raised.
    """
    turns = asyncio.Semaphore(at_once)

    async def in_turn(work: Callable[[], Awaitable[T]]) -> T:
        async with turns:
            return await work()

    async def together() -> list[T]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(in_turn(work)) for work in works]
        return [task.result() for task in tasks]

    try:
        # Python 3.11 keeps a task cancelled whose group failed, and the next timeout ends it.
        return await asyncio.create_task(together())
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None


async def until(end: Awaitable[object], work: Awaitable[T]) -> asyncio.Future[T] | None:
    """Await `work`; return it when it is done, None if `end` came first. Raises its error."""
    ending, working = asyncio.ensure_future(end), asyncio.ensure_future(work)
    try:
        await asyncio.wait((ending, working), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (working, ending):
            task.cancel()
        await asyncio.gather(working, ending, return_exceptions=True)
    if working.cancelled():
        return None
    working.result()
    return working
