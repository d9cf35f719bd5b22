"""Limits how soon one reconcile follows another in a storm of events.

While events keep coming and reconciles find nothing to do, each delay is twice as long as the last.
An urgent event (an edited spec, a Pod that changed) never waits longer than `URGENT`. Five seconds
without events, or a reconcile that writes, end the delays.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Final

from ..base.backoff import Backoff

BACKOFF: Final = Backoff.exponential(0.1, 12.0)
"""After reconciles that found nothing to do: fewer than ten in a storm of half a minute."""

URGENT: Final = 0.5
"""The longest delay of an urgent event, seconds."""

QUIET: Final = 5.0
"""Seconds without an event that end a storm."""


class Throttle:
    """Delays reconciles during storms of events. For one event loop; `now` in monotonic seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._delay = 0.0
        self._reconciled_at: float | None = None
        self._event_at: float | None = None
        self._urgent = False
        self._released = asyncio.Event()

    def event(self, *, urgent: bool) -> None:
        """Note an event that needs a reconcile."""
        now = self._now()
        if self._event_at is not None and now - self._event_at > QUIET:
            self._delay = 0.0
        self._event_at = now
        if urgent:
            self.release()

    def release(self) -> None:
        """Shorten the current delay to `URGENT`."""
        self._urgent = True
        self._released.set()

    def reconciled(self, *, idle: bool) -> None:
        """Note the end of a reconcile; `idle`: it found nothing to do."""
        self._reconciled_at = self._now()
        self._delay = BACKOFF.after(self._delay) if idle else 0.0

    def remaining(self) -> float:
        """Return seconds until the next reconcile may begin."""
        if self._reconciled_at is None:
            return 0.0
        delay = min(self._delay, URGENT) if self._urgent else self._delay
        return max(self._reconciled_at + delay - self._now(), 0.0)

    async def wait(self) -> None:
        """Wait until the next reconcile may begin."""
        while (remaining := self.remaining()) > 0:
            self._released.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._released.wait(), remaining)
        self._urgent = False
