"""The sign of life of the event loop that renews the Lease, for probes in another thread.

The loop beats every second. With each beat it stores the results of its checks, which other threads
must not run. A probe answers with the last results while the loop is busy.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from ...serving.health import Checks

BEAT_SECONDS: Final = 1.0

SILENT_SECONDS: Final = 60.0
"""Without a beat for this long, /healthz fails. The Lease is long lost, and no reconcile, garbage
collection or busy node takes that long; the kubelet restarts the container a minute later (6
failures, 10 s apart)."""

Results = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Beat:
    at: float  # seconds by the clock
    alive: Results  # of /healthz
    ready: Results  # of /readyz


class Pulse:
    """The last beat: `run` and `beat` belong to the loop; any thread may call `alive` and `ready`.

    `also` is called with each beat.
    """

    def __init__(
        self,
        alive: Checks,
        ready: Checks,
        also: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._alive, self._ready, self._also, self._clock = alive, ready, also, clock
        self.beat()

    def beat(self) -> None:
        self._last = Beat(self._clock(), dict(self._alive()), dict(self._ready()))
        self._also()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            self.beat()

    def alive(self) -> Results:
        last = self._last
        age = self._clock() - last.at
        problem = f"the event loop has been busy for {age:.0f} s"
        return {**last.alive, "event-loop": problem if age > SILENT_SECONDS else None}

    def ready(self) -> Results:
        return self._last.ready
