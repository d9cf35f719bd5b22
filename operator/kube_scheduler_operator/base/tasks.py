"""How the tasks of a program end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import Any


def stop_on_signals() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


async def cancel(*tasks: asyncio.Task[Any] | None) -> None:
    """Cancel tasks one after the other, and wait for their end. Raises their errors."""
    for task in tasks:
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
