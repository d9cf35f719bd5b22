"""Sources with one response for all nodes: requested once per cycle and shared."""

from __future__ import annotations

import asyncio
from typing import Any, Generic, TypeVar

from ..measurement import Measurement, MeasurementError
from ..nodes import AnnotatedNode

T = TypeVar("T")


class BulkSource(Generic[T]):
    """Keeps the last response for most of a cycle; times are in seconds."""

    per_node = False

    def __init__(self, cycle: float, timeout: float) -> None:
        self.warning = ""
        self._max_age, self._timeout = 0.9 * cycle, timeout
        self._request: asyncio.Task[T] | None = None
        self._requested_at = float("-inf")

    async def measure(self, node: AnnotatedNode) -> Measurement:
        """Return the load of one node. Raises MeasurementError."""
        now = asyncio.get_running_loop().time()
        if self._request is None or now - self._requested_at > self._max_age:
            self._cancel()
            self._requested_at = now
            self._request = asyncio.create_task(self._fetch_in_time())
            self._request.add_done_callback(_retrieve_exception)
        request, waiting = self._request, asyncio.current_task()
        try:
            # Cancelling one waiting task must not cancel the request for the others.
            response = await asyncio.shield(request)
        except asyncio.CancelledError:
            if request.cancelled() and not (waiting and waiting.cancelling()):
                raise MeasurementError("the request took longer than a cycle") from None
            raise
        return self.find(response, node)

    async def close(self) -> None:
        self._cancel()

    async def fetch(self) -> T:
        """Request the load of all nodes. Raises MeasurementError."""
        raise NotImplementedError

    def find(self, response: T, node: AnnotatedNode) -> Measurement:
        """Return the measurement of one node in a response. Raises MeasurementError."""
        raise NotImplementedError

    async def _fetch_in_time(self) -> T:
        try:
            async with asyncio.timeout(self._timeout):
                return await self.fetch()
        except TimeoutError:
            raise MeasurementError(f"no response within {self._timeout:g} s") from None

    def _cancel(self) -> None:
        if self._request is not None:
            self._request.cancel()
            self._request = None


def _retrieve_exception(task: asyncio.Task[Any]) -> None:
    """Retrieve the exception, so that asyncio does not log it if no node waits for it."""
    if not task.cancelled():
        task.exception()
