"""A server in a thread with an event loop of its own.

Any client may connect, and OpenSSL decrypts without the interpreter's lock; meanwhile the process's
own event loop, which renews its Lease, goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager

import uvloop


class ServerThread:
    """Runs `serving` from `start` to `stop`.

    `serving` is called in the thread; the server is open within its context.
    """

    def __init__(self, serving: Callable[[], AbstractAsyncContextManager[object]]) -> None:
        self._serving = serving
        self._started: Future[None] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="server", daemon=True)

    async def start(self) -> None:
        """Start the server. Raises what `serving` raises."""
        self._thread.start()
        await asyncio.shield(asyncio.wrap_future(self._started))

    async def stop(self) -> None:
        """Stop the server, and wait until it has ended."""
        if not self._thread.ident:
            return
        with contextlib.suppress(Exception):  # `start` has raised it
            await asyncio.shield(asyncio.wrap_future(self._started))
        if self._loop is not None and self._stopping is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._stopping.set)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        try:
            # asyncio's TLS connections are reference cycles with 256 KiB each.
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve())
        except Exception as error:
            if self._started.done():
                raise
            self._started.set_exception(error)

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        async with self._serving():
            self._started.set_result(None)
            await self._stopping.wait()
