"""How soon one pass may follow another, so that many events do not become many passes.

While events keep coming and passes find nothing to do, each pause is twice as long as the last. An
urgent event (an edit by a person, a pod that moved on) never waits longer than `URGENT`, whatever
the storm around it. A quiet moment or something to do ends the storm.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Final

FIRST: Final = 0.1
"""The pause after a pass that found nothing to do, seconds."""

LONGEST: Final = 12.0
"""The longest pause, seconds: a storm of half a minute is fewer than ten passes."""

URGENT: Final = 0.5
"""The longest pause when something urgent happened, seconds."""

QUIET: Final = 5.0
"""No event for so many seconds: the storm is over."""


class Pace:
    """Says when the next pass may begin. For one event loop.

    Args:
        now: monotonic seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._pause = 0.0
        self._passed: float | None = None
        self._event: float | None = None
        self._urgent = False
        self._hurry = asyncio.Event()

    def event(self, *, urgent: bool) -> None:
        """Something happened that deserves a pass."""
        now = self._now()
        if self._event is not None and now - self._event > QUIET:
            self._pause = 0.0
        self._event = now
        if urgent:
            self.hurry()

    def hurry(self) -> None:
        """Let the next pass begin soon."""
        self._urgent = True
        self._hurry.set()

    def passed(self, *, idle: bool) -> None:
        """A pass has ended; `idle`: it found nothing to do."""
        self._passed = self._now()
        self._pause = min(max(2 * self._pause, FIRST), LONGEST) if idle else 0.0

    def left(self) -> float:
        """Seconds until the next pass may begin."""
        if self._passed is None:
            return 0.0
        pause = min(self._pause, URGENT) if self._urgent else self._pause
        return max(self._passed + pause - self._now(), 0.0)

    async def rest(self) -> None:
        """Wait until the next pass may begin."""
        while (left := self.left()) > 0:
            self._hurry.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), left)
        self._urgent = False
