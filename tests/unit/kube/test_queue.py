"""The work queue keeps client-go's contract for one key, on virtual time."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    precondition,
    rule,
)

from kube_scheduler_operator.kube.queue import BACKOFF, ShutDown, WorkQueue


class Hand:
    """A timer on the virtual clock."""

    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Clock:
    """Virtual time."""

    def __init__(self) -> None:
        self.now = 0.0
        self._count = itertools.count()
        self._timers: list[tuple[float, int, Hand, Any]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Any) -> Any:
        hand = Hand()
        heapq.heappush(self._timers, (self.now + delay, next(self._count), hand, callback))
        return hand

    def advance_to_next(self) -> None:
        self.advance(self._timers[0][0] - self.now)

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while self._timers and self._timers[0][0] <= end:
            due, _, hand, callback = heapq.heappop(self._timers)
            self.now = max(self.now, due)
            if not hand.cancelled:
                callback()
        self.now = end


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(clock: Clock) -> WorkQueue:
    return WorkQueue(debounce=0.02, clock=clock)


async def test_burst_causes_one_get(queue: WorkQueue, clock: Clock) -> None:
    for _ in range(1000):
        queue.add()
    assert not queue.take()
    clock.advance(0.02)
    assert queue.take()
    assert not queue.take()


async def test_thousand_events_over_time_cause_few_gets(queue: WorkQueue, clock: Clock) -> None:
    gets = 0
    for _ in range(1000):
        queue.add()
        clock.advance(0.0001)
        if queue.take():
            gets += 1
            queue.done()
    assert 1 <= gets <= 10


async def test_debounce_is_not_prolonged_by_more_adds(queue: WorkQueue, clock: Clock) -> None:
    for _ in range(4):
        queue.add()
        clock.advance(0.005)
    assert queue.take()


async def test_key_added_in_process_returns_after_done(queue: WorkQueue, clock: Clock) -> None:
    queue.add()
    clock.advance(1)
    assert queue.take()
    queue.add()
    clock.advance(1)
    assert not queue.take()
    queue.done()
    clock.advance(0.02)
    assert queue.take()


async def test_earliest_of_several_delays_counts(queue: WorkQueue, clock: Clock) -> None:
    queue.add_after(10)
    queue.add_after(2)
    queue.add_after(5)
    clock.advance(2)
    clock.advance(0.02)
    assert queue.take()
    queue.done()
    clock.advance(60)
    assert not queue.take()


@pytest.mark.parametrize("delay", [0, -1])
async def test_a_delay_of_zero_equals_an_add(queue: WorkQueue, clock: Clock, delay: float) -> None:
    queue.add_after(delay)
    clock.advance(0.02)
    assert queue.take()


def retries(queue: WorkQueue, clock: Clock) -> Iterator[float]:
    """The delays of failures in a row."""
    while True:
        failed = clock.now
        queue.add_rate_limited()
        while not queue.take():
            clock.advance_to_next()
        queue.done()
        yield clock.now - failed


async def test_backoff_doubles_to_its_limit_and_never_overflows(clock: Clock) -> None:
    delays = [*itertools.islice(retries(WorkQueue(debounce=0, clock=clock), clock), 2000)]
    assert delays[:4] == pytest.approx([0.005, 0.01, 0.02, 0.04])
    assert delays == pytest.approx(sorted(delays))
    assert delays[-1] == pytest.approx(BACKOFF.delays[-1])
    assert BACKOFF.delays[-1] == 1000


async def test_backoff_is_reset_by_forget(clock: Clock) -> None:
    queue = WorkQueue(debounce=0, clock=clock)
    delays = retries(queue, clock)
    assert [next(delays), next(delays)] == pytest.approx([0.005, 0.01])
    queue.forget()
    assert next(delays) == pytest.approx(0.005)


async def test_get_waits_and_wakes() -> None:
    queue: WorkQueue = WorkQueue(debounce=0)
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add()
    await asyncio.wait_for(waiting, 5)


async def test_cancelled_get_loses_nothing() -> None:
    queue: WorkQueue = WorkQueue(debounce=0)
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await asyncio.wait_for(queue.get(), 5)


async def test_closed_queue_returns_ready_work_and_ends(queue: WorkQueue, clock: Clock) -> None:
    queue.add()
    clock.advance(0.02)
    queue.add_after(1)
    queue.close()
    queue.add()
    clock.advance(10)
    await queue.get()
    with pytest.raises(ShutDown):
        await queue.get()


async def test_closed_queue_drops_work_that_is_not_ready(queue: WorkQueue, clock: Clock) -> None:
    queue.add()
    queue.close()
    clock.advance(10)
    with pytest.raises(ShutDown):
        await queue.get()


async def test_done_without_get_is_an_error(queue: WorkQueue) -> None:
    with pytest.raises(RuntimeError, match="no work"):
        queue.done()


async def test_observer_receives_measurements(clock: Clock) -> None:
    measured: list[tuple[Any, ...]] = []

    class Observer:
        def added(self) -> None:
            measured.append(("added",))

        def got(self, waited: float) -> None:
            measured.append(("got", waited))

        def finished(self, worked: float) -> None:
            measured.append(("finished", worked))

        def retried(self) -> None:
            measured.append(("retried",))

    queue: WorkQueue = WorkQueue(debounce=0.5, clock=clock, observer=Observer())
    queue.add()
    clock.advance(0.5)
    assert queue.take()
    clock.advance(2)
    queue.done()
    queue.add_rate_limited()
    assert measured == [("added",), ("got", 0.5), ("finished", 2.0), ("retried",)]


class Contract(RuleBasedStateMachine):
    """No work is lost, none is done twice at once, none waits twice."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.queue = WorkQueue(debounce=0.02, clock=self.clock)
        self.wanted = False  # added and not handed out since
        self.later = math.inf
        self.working = False

    @rule()
    def add(self) -> None:
        self.queue.add()
        self.wanted = True

    @rule(delay=st.floats(0.001, 5))
    def add_after(self, delay: float) -> None:
        self.queue.add_after(delay)
        self.later = min(self.clock.now + delay, self.later)

    @rule(seconds=st.floats(0, 2))
    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        if self.later <= self.clock.now:
            self.wanted, self.later = True, math.inf

    @rule()
    def get(self) -> None:
        if self.queue.take():
            assert self.wanted
            assert not self.working
            self.wanted, self.working = False, True

    @precondition(lambda self: self.working)
    @rule()
    def done(self) -> None:
        self.working = False
        self.queue.done()

    def teardown(self) -> None:
        if self.working:
            self.queue.done()
        self.advance(100)
        assert self.queue.take() == self.wanted


TestContract = Contract.TestCase
TestContract.settings = settings(max_examples=25, stateful_step_count=25)


@given(st.lists(st.floats(0, 0.03), max_size=60))
def test_every_add_is_followed_by_a_get_within_the_debounce(gaps: Any) -> None:
    clock = Clock()
    queue: WorkQueue = WorkQueue(debounce=0.02, clock=clock)
    for gap in gaps:
        queue.add()
        added = clock.now
        clock.advance(0.02)
        assert queue.take()
        assert clock.now - added <= 0.02 + 1e-9
        queue.done()
        clock.advance(gap)
