"""A work queue for few keys: many events in, few passes out.

The contract is that of client-go's queue: a key waits at most once, is never worked on twice at the
same time, and comes back after `done` if it was added meanwhile. A debounce lets a burst of events
gather before the first `get`. Time comes from outside, so that tests run on a virtual clock.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Hashable
from typing import Final, Generic, Protocol, TypeVar

K = TypeVar("K", bound=Hashable)

BASE_DELAY: Final = 0.005
"""First delay of `add_rate_limited`, seconds (client-go's default rate limiter)."""

MAX_DELAY: Final = 1000.0
"""Longest delay of `add_rate_limited`, seconds (likewise)."""

DEBOUNCE: Final = 0.020
"""How long the first event of a burst waits for the others, seconds."""


class ShutDown(Exception):  # noqa: N818 - the end of work is no error
    """The queue is closed and has nothing left."""


class Timer(Protocol):
    """What `Clock.call_later` returns."""

    def cancel(self) -> None:
        """Do not call any more."""


class Clock(Protocol):
    """The part of an event loop that a queue needs; tests bring a virtual one."""

    def time(self) -> float:
        """Monotonic seconds."""

    def call_later(self, delay: float, callback: Callable[[], None], /) -> Timer:
        """Call `callback` in `delay` seconds."""


class QueueObserver(Protocol):
    """Told what happens, for metrics under client-go's `workqueue_` names."""

    def added(self, depth: int) -> None:
        """A key was added; `depth` keys are waiting now."""

    def got(self, depth: int, waited: float) -> None:
        """A key was handed out after `waited` seconds; `depth` keys are still waiting."""

    def finished(self, worked: float) -> None:
        """A key was worked on for `worked` seconds."""

    def retried(self) -> None:
        """A key was added with a back-off."""


class WorkQueue(Generic[K]):
    """Keys to work on, each at most once at a time. For one event loop.

    Args:
        debounce: seconds between the `add` of an idle key and its `get`; later adds of the key in
            that time are absorbed and do not prolong it.
        clock: where time comes from; the running event loop by default.
        observer: told what happens.
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
        self._dirty: dict[K, float] = {}  # added and not handed out yet -> since when
        self._ready: deque[K] = deque()  # the part of _dirty that `get` may hand out
        self._processing: dict[K, float] = {}  # handed out and not done -> since when
        self._delayed: dict[K, tuple[float, Timer]] = {}  # earliest add_after of each key
        self._gathering: dict[K, Timer] = {}
        self._failures: dict[K, int] = {}
        self._wake = asyncio.Event()
        self._closed = False

    def __len__(self) -> int:
        """Keys that wait, including those that still gather a burst."""
        return len(self._dirty)

    def add(self, key: K) -> None:
        """There is work for `key`."""
        if self._closed or key in self._dirty:
            return
        self._dirty[key] = self._time.time()
        if self._observer:
            self._observer.added(len(self._dirty))
        if key not in self._processing:
            self._gather(key)

    def add_after(self, key: K, delay: float) -> None:
        """There will be work for `key` in `delay` seconds; the earliest of several counts."""
        if self._closed:
            return
        if delay <= 0:
            self.add(key)
            return
        due = self._time.time() + delay
        if key in self._delayed:
            earlier, timer = self._delayed[key]
            if earlier <= due:
                return
            timer.cancel()
        self._delayed[key] = (due, self._time.call_later(delay, lambda: self._due(key)))

    def add_rate_limited(self, key: K) -> float:
        """Work on `key` failed: try again after 5 ms, doubled with every failure up to 1000 s.

        Returns:
            The delay, seconds.
        """
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        # The exponent is capped because doubles overflow at 1024; 2**18 * 5 ms is beyond the limit.
        delay = min(math.ldexp(BASE_DELAY, min(failures, 64)), MAX_DELAY)
        if self._observer and not self._closed:
            self._observer.retried()
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """Work on `key` succeeded: its next failure is the first one again."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """Failures of `key` since it was last forgotten."""
        return self._failures.get(key, 0)

    async def get(self) -> K:
        """The next key; call `done` after working on it.

        Raises:
            ShutDown: the queue is closed and empty.
        """
        while not self._ready:
            if self._closed:
                raise ShutDown
            self._wake.clear()
            await self._wake.wait()
        return self.get_nowait()

    def get_nowait(self) -> K:
        """The next key, if one can be handed out now; call `done` after working on it.

        Raises:
            asyncio.QueueEmpty: none can.
        """
        if not self._ready:
            raise asyncio.QueueEmpty
        key = self._ready.popleft()
        now = self._time.time()
        waited = now - self._dirty.pop(key)
        self._processing[key] = now
        if self._observer:
            self._observer.got(len(self._dirty), waited)
        return key

    def done(self, key: K) -> None:
        """Work on `key` is over; if it was added meanwhile, it waits again.

        Raises:
            KeyError: `key` was not handed out.
        """
        worked = self._time.time() - self._processing.pop(key)
        if self._observer:
            self._observer.finished(worked)
        if key in self._dirty:
            self._gather(key)

    def close(self) -> None:
        """Take nothing more; keys that can be handed out now still are, the others are dropped."""
        self._closed = True
        for _, timer in self._delayed.values():
            timer.cancel()
        for timer in self._gathering.values():
            timer.cancel()
        self._delayed.clear()
        self._gathering.clear()
        self._wake.set()

    @property
    def _time(self) -> Clock:
        if self._clock is None:
            self._clock = asyncio.get_running_loop()
        return self._clock

    def _gather(self, key: K) -> None:
        if self._closed:
            return
        if self._debounce > 0:
            self._gathering[key] = self._time.call_later(self._debounce, lambda: self._release(key))
        else:
            self._release(key)

    def _release(self, key: K) -> None:
        self._gathering.pop(key, None)
        self._ready.append(key)
        self._wake.set()

    def _due(self, key: K) -> None:
        del self._delayed[key]
        self.add(key)
