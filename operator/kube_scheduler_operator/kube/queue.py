"""The work queue of the reconcile: client-go's contract for a single key, a debounce, a throttle.

One reconcile covers the whole cluster, so the queue either waits or is empty. It is queued at most
once, never runs twice at the same time, and is queued again after `done` if it was added meanwhile.
The debounce collects a burst of events before the first `get`. The clock is a parameter, so that
tests run on virtual time.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Final, Protocol

from ..base.backoff import Backoff

BACKOFF: Final = Backoff.exponential(0.005, 1000.0)
"""Delays of `add_rate_limited` (client-go's default rate limiter)."""

DEBOUNCE: Final = 0.020
"""Time for which the first event of a burst waits for more events, seconds."""


STORM_BACKOFF: Final = Backoff.exponential(0.1, 12.0)
"""Delays of `Throttle` after reconciles that found nothing to do: fewer than ten in a storm of half
a minute."""

URGENT: Final = 0.5
"""The longest delay of an urgent event, seconds."""

QUIET: Final = 5.0
"""Seconds without an event that end a storm."""


class ShutDown(Exception):  # noqa: N818 - the end of work is not an error
    """The queue is closed and empty."""


class Clock(Protocol):
    """The part of an event loop that a queue needs; tests pass a virtual one."""

    def time(self) -> float:
        """Return monotonic seconds."""

    def call_later(self, delay: float, callback: Callable[[], None], /) -> asyncio.TimerHandle:
        """Call `callback` in `delay` seconds."""


class QueueObserver(Protocol):
    """Receives measurements, for metrics under client-go's `workqueue_` names."""

    def added(self) -> None:
        """Work was added to the empty queue."""

    def got(self, waited: float) -> None:
        """Work left the queue after `waited` seconds."""

    def finished(self, worked: float) -> None:
        """Work took `worked` seconds."""

    def retried(self) -> None:
        """Work was added with back-off."""


class WorkQueue:
    """For one event loop.

    `debounce` is the number of seconds between an `add` to the idle queue and its `get`; more adds
    in that time neither count nor prolong it.
    """

    def __init__(
        self,
        *,
        debounce: float = DEBOUNCE,
        clock: Clock | None = None,
        observer: QueueObserver | None = None,
    ) -> None:
        self._debounce = debounce
        self._clock = clock
        self._observer = observer
        self._added_at: float | None = None  # None: the queue is empty
        self._ready = False  # whether `get` may return
        self._got_at: float | None = None  # None: nothing is in process
        self._delayed: tuple[float, asyncio.TimerHandle] | None = None  # the earliest `add_after`
        self._gathering: asyncio.TimerHandle | None = None
        self._failures = 0  # since the last `forget`
        self._wake = asyncio.Event()
        self._closed = False

    def add(self) -> None:
        """Queue work."""
        if self._closed or self._added_at is not None:
            return
        self._added_at = self._time.time()
        if self._observer:
            self._observer.added()
        if self._got_at is None:
            self._gather()

    def add_after(self, delay: float) -> None:
        """Queue work in `delay` seconds; the earliest of several calls counts."""
        if self._closed:
            return
        if delay <= 0:
            self.add()
            return
        due = self._time.time() + delay
        if self._delayed is not None:
            earlier, timer = self._delayed
            if earlier <= due:
                return
            timer.cancel()
        self._delayed = (due, self._time.call_later(delay, self._due))

    def add_rate_limited(self) -> None:
        """Queue work again after a failure, with the delays of `BACKOFF`."""
        delay = BACKOFF.delay(self._failures)
        self._failures += 1
        if self._observer and not self._closed:
            self._observer.retried()
        self.add_after(delay)

    def forget(self) -> None:
        """Reset the back-off after a success."""
        self._failures = 0

    async def get(self) -> None:
        """Wait for work; call `done` after it.

        Raises:
            ShutDown: the queue is closed and empty.
        """
        while not self.take():
            if self._closed:
                raise ShutDown
            self._wake.clear()
            await self._wake.wait()

    def take(self) -> bool:
        """Return whether work is ready, which then is in process; call `done` after it."""
        if not self._ready or self._added_at is None:
            return False
        now = self._time.time()
        waited = now - self._added_at
        self._ready, self._added_at, self._got_at = False, None, now
        if self._observer:
            self._observer.got(waited)
        return True

    def done(self) -> None:
        """End the work in process; if it was added meanwhile, it is queued again."""
        if self._got_at is None:
            raise RuntimeError("no work is in process")
        worked = self._time.time() - self._got_at
        self._got_at = None
        if self._observer:
            self._observer.finished(worked)
        if self._added_at is not None:
            self._gather()

    def close(self) -> None:
        """Take no more work; `get` still returns if some is ready, otherwise it is dropped."""
        self._closed = True
        if self._delayed is not None:
            self._delayed[1].cancel()
        if self._gathering is not None:
            self._gathering.cancel()
        self._wake.set()

    @property
    def _time(self) -> Clock:
        if self._clock is None:
            self._clock = asyncio.get_running_loop()
        return self._clock

    def _gather(self) -> None:
        if self._closed:
            return
        if self._debounce > 0:
            self._gathering = self._time.call_later(self._debounce, self._release)
        else:
            self._release()

    def _release(self) -> None:
        self._ready = True
        self._wake.set()

    def _due(self) -> None:
        self._delayed = None
        self.add()


class Throttle:
    """Delays reconciles during storms of events. For one event loop; `now` in monotonic seconds.

    While events keep coming and reconciles find nothing to do, each delay is twice as long as the
    last. An urgent event (an edited spec, a Pod that changed) never waits longer than `URGENT`.
    Five seconds without events, or a reconcile that writes, end the delays.
    """

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
        self._delay = STORM_BACKOFF.after(self._delay) if idle else 0.0

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
