"""Virtual time: what is due next happens next, and nothing takes real time."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class Timer:
    """Something that will happen, unless it is cancelled."""

    __slots__ = ("callback", "cancelled")

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Clock:
    """Seconds since BEGIN and what is going to happen when."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Timer]] = []
        self._count = 0

    def after(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` in `delay` seconds; in the order of the calls if at the same time."""
        return self.at(self.now + max(delay, 0.0), callback)

    def at(self, moment: float, callback: Callable[[], None]) -> Timer:
        timer = Timer(callback)
        self._count += 1
        heapq.heappush(self._due, (max(moment, self.now), self._count, timer))
        return timer

    def step(self, until: float) -> bool:
        """Let the next thing happen if it is due by `until`; else only time passes."""
        while self._due and self._due[0][2].cancelled:
            heapq.heappop(self._due)
        if not self._due or self._due[0][0] > until:
            self.now = max(self.now, until)
            return False
        self.now, _, timer = heapq.heappop(self._due)
        timer.callback()
        return True

    def run(self, seconds: float) -> None:
        """Let time pass, with everything that is due."""
        end = self.now + seconds
        while self.step(end):
            pass

    def wall(self) -> datetime:
        return BEGIN + timedelta(seconds=self.now)

    def stamp(self, moment: float | None = None) -> str:
        """A moment (now, if none is given) as the API writes it: whole seconds."""
        wall = BEGIN + timedelta(seconds=self.now if moment is None else moment)
        return wall.strftime("%Y-%m-%dT%H:%M:%SZ")
