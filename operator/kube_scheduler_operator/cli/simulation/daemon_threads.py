"""Runs blocking calls in threads that may be abandoned, so that none delays the others."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import Final, TypeVar

T = TypeVar("T")

_THREADS: Final = 32


async def in_daemon_threads(
    calls: Sequence[Callable[[], T]], seconds: float
) -> list[T | Exception | None]:
    """Return the result or exception of each call; None: it has not ended within `seconds`."""
    return await asyncio.to_thread(_run, calls, seconds)


def _run(calls: Sequence[Callable[[], T]], seconds: float) -> list[T | Exception | None]:
    waiting: queue.SimpleQueue[tuple[Future[T | Exception], Callable[[], T]]] = queue.SimpleQueue()
    futures: list[Future[T | Exception]] = [Future() for _ in calls]
    for pair in zip(futures, calls, strict=True):
        waiting.put(pair)

    def work() -> None:
        while True:
            try:
                future, call = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                future.set_result(call())
            except Exception as error:
                future.set_result(error)

    for _ in range(min(len(calls), _THREADS)):
        threading.Thread(target=work, name="query", daemon=True).start()
    wait(futures, seconds)
    return [future.result() if future.done() else None for future in futures]
