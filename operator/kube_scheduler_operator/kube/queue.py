"""A work queue with the contract of client-go's, and a debounce.

A key is queued at most once, is never processed twice at the same time, and returns after `done` if
it was added meanwhile. The debounce collects a burst of events before the first `get`. The clock is
a parameter, so that tests run on virtual time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from typing import Final, Generic, Protocol, TypeVar

from ..base.backoff import Backoff

K = TypeVar("K", bound=Hashable)

BACKOFF: Final = Backoff.exponential(0.005, 1000.0)
"""Delays of `add_rate_limited` (client-go's default rate limiter)."""

DEBOUNCE: Final = 0.020
"""Time for which the first event of a burst waits for more events, seconds."""


class ShutDown(Exception):  # noqa: N818 - the end of work is not an error
    """The queue is closed and empty."""


class Timer(Protocol):
    """The result of `Clock.call_later`."""

    def cancel(self) -> None:
        """Cancel the call."""


class Clock(Protocol):
    """The part of an event loop that a queue needs; tests pass a virtual one."""

    def time(self) -> float:
        """Return monotonic seconds."""

    def call_later(self, delay: float, callback: Callable[[], None], /) -> Timer:
        """Call `callback` in `delay` seconds."""


class QueueObserver(Protocol):
    """Receives measurements, for metrics under client-go's `workqueue_` names."""

    def added(self, depth: int) -> None:
        """Return a key was added; the queue now has `depth` keys."""

    def got(self, depth: int, waited: float) -> None:
        """Return a key left the queue after `waited` seconds; `depth` keys remain."""

    def finished(self, worked: float) -> None:
        """Return a key was processed in `worked` seconds."""

    def retried(self) -> None:
        """Return a key was added with back-off."""


class WorkQueue(Generic[K]):
    """Keys to process, each at most once at a time. For one event loop.

    `debounce` is the number of seconds between the `add` of an idle key and its `get`; more adds of
    the key in that time neither count nor prolong it.
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
        self._dirty: dict[K, float] = {}  # queued key -> time of its add
        self._ready: deque[K] = deque()  # the keys of _dirty that `get` may return
        self._processing: dict[K, float] = {}  # key in process -> time of its get
        self._delayed: dict[K, tuple[float, Timer]] = {}  # earliest add_after of each key
        self._gathering: dict[K, Timer] = {}
        self._failures: dict[K, int] = {}
        self._wake = asyncio.Event()
        self._closed = False

    def __len__(self) -> int:
        """Count the queued keys, including those in their debounce."""
        return len(self._dirty)

    def add(self, key: K) -> None:
        """Queue `key`."""
        if self._closed or key in self._dirty:
            return
        self._dirty[key] = self._time.time()
        if self._observer:
            self._observer.added(len(self._dirty))
        if key not in self._processing:
            self._gather(key)

    def add_after(self, key: K, delay: float) -> None:
        """Queue `key` in `delay` seconds; the earliest of several calls counts."""
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
        """Queue `key` again after a failure, with the delays of `BACKOFF`.

        Returns:
            The delay, seconds.
        """
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = BACKOFF.delay(failures)
        if self._observer and not self._closed:
            self._observer.retried()
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """Reset the back-off of `key` after a success."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """Count the failures of `key` since the last `forget`."""
        return self._failures.get(key, 0)

    async def get(self) -> K:
        """Return the next key; call `done` after processing it.

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
        """Return the next key, if one is ready; call `done` after processing it.

        Raises:
            asyncio.QueueEmpty: no key is ready.
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
        """End the processing of `key`; if it was added meanwhile, it is queued again.

        Raises:
            KeyError: `key` is not in process.
        """
        worked = self._time.time() - self._processing.pop(key)
        if self._observer:
            self._observer.finished(worked)
        if key in self._dirty:
            self._gather(key)

    def close(self) -> None:
        """Take no more keys; `get` still returns those that are ready, the others are dropped."""
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
