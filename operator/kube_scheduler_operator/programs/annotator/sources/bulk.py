"""Sources that answer for all nodes at once: asked once a cycle, whoever needs it first."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..measurement import Measurement, SourceError

if TYPE_CHECKING:
    from ..nodes import Node

T = TypeVar("T")


class BulkSource(Generic[T]):
    """Keeps the last answer for most of a cycle.

    Args:
        cycle: seconds.
        timeout: for one answer, seconds.
    """

    per_node = False

    def __init__(self, cycle: float, timeout: float) -> None:
        self.warning = ""
        self._patience, self._timeout = 0.9 * cycle, timeout
        self._asking: asyncio.Task[T] | None = None
        self._asked_at = float("-inf")

    async def measure(self, node: Node) -> Measurement:
        """The load of one node. Raises SourceError."""
        now = asyncio.get_running_loop().time()
        if self._asking is None or now - self._asked_at > self._patience:
            self._cancel()
            self._asked_at = now
            self._asking = asyncio.create_task(self._ask_in_time())
            self._asking.add_done_callback(_look_at)
        asking, waiting = self._asking, asyncio.current_task()
        try:
            # Whoever gives up waiting does not take the answer from the others.
            answer = await asyncio.shield(asking)
        except asyncio.CancelledError:
            if asking.cancelled() and not (waiting and waiting.cancelling()):
                raise SourceError("it took longer than a cycle") from None
            raise
        return self.find(answer, node)

    async def close(self) -> None:
        """Give connections back."""
        self._cancel()

    async def ask(self) -> T:
        """What there is to know of all nodes. Raises SourceError."""
        raise NotImplementedError

    def find(self, answer: T, node: Node) -> Measurement:
        """The measurement of a node in it. Raises SourceError."""
        raise NotImplementedError

    async def _ask_in_time(self) -> T:
        try:
            async with asyncio.timeout(self._timeout):
                return await self.ask()
        except TimeoutError:
            raise SourceError(f"no answer within {self._timeout:g} s") from None

    def _cancel(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None


def _look_at(task: asyncio.Task[Any]) -> None:
    """An error that nobody waited for is no news for the log."""
    if not task.cancelled():
        task.exception()
