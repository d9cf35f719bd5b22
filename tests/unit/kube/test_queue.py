"""The work queue keeps client-go's contract, on virtual time."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
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

    def call_later(self, delay: float, callback: Any) -> Hand:
        hand = Hand()
        heapq.heappush(self._timers, (self.now + delay, next(self._count), hand, callback))
        return hand

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while self._timers and self._timers[0][0] <= end:
            due, _, hand, callback = heapq.heappop(self._timers)
            self.now = max(self.now, due)
            if not hand.cancelled:
                callback()
        self.now = end


def taken(queue: WorkQueue[str]) -> str | None:
    """The next key if one is ready."""
    try:
        return queue.get_nowait()
    except asyncio.QueueEmpty:
        return None


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(clock: Clock) -> WorkQueue[str]:
    return WorkQueue(debounce=0.02, clock=clock)


async def test_burst_causes_one_get(queue: WorkQueue[str], clock: Clock) -> None:
    for _ in range(1000):
        queue.add("sync")
    assert taken(queue) is None
    clock.advance(0.02)
    assert taken(queue) == "sync"
    assert taken(queue) is None


async def test_thousand_events_over_time_cause_few_gets(
    queue: WorkQueue[str], clock: Clock
) -> None:
    gets = 0
    for _ in range(1000):
        queue.add("sync")
        clock.advance(0.0001)
        if taken(queue):
            gets += 1
            queue.done("sync")
    assert 1 <= gets <= 10


async def test_debounce_is_not_prolonged_by_more_adds(queue: WorkQueue[str], clock: Clock) -> None:
    for _ in range(4):
        queue.add("sync")
        clock.advance(0.005)
    assert taken(queue) == "sync"


async def test_key_added_in_process_returns_after_done(queue: WorkQueue[str], clock: Clock) -> None:
    queue.add("sync")
    clock.advance(1)
    assert taken(queue) == "sync"
    queue.add("sync")
    clock.advance(1)
    assert taken(queue) is None
    queue.done("sync")
    clock.advance(0.02)
    assert taken(queue) == "sync"


async def test_keys_are_returned_in_the_order_of_their_adds(
    queue: WorkQueue[str], clock: Clock
) -> None:
    for key in ("a", "b", "a", "c"):
        queue.add(key)
    clock.advance(0.02)
    assert [taken(queue) for _ in range(4)] == ["a", "b", "c", None]


async def test_earliest_of_several_delays_counts(queue: WorkQueue[str], clock: Clock) -> None:
    queue.add_after("sync", 10)
    queue.add_after("sync", 2)
    queue.add_after("sync", 5)
    clock.advance(2)
    clock.advance(0.02)
    assert taken(queue) == "sync"
    queue.done("sync")
    clock.advance(60)
    assert taken(queue) is None


@pytest.mark.parametrize("delay", [0, -1])
async def test_a_delay_of_zero_equals_an_add(
    queue: WorkQueue[str], clock: Clock, delay: Any
) -> None:
    queue.add_after("sync", delay)
    assert len(queue) == 1


async def test_backoff_doubles_to_its_limit_and_never_overflows(queue: WorkQueue[str]) -> None:
    delays = [queue.add_rate_limited("sync") for _ in range(5000)]
    assert delays[:4] == [0.005, 0.01, 0.02, 0.04]
    assert delays == sorted(delays)
    assert delays[-1] == BACKOFF.delays[-1] == 1000
    assert queue.failures("sync") == 5000


async def test_backoff_is_per_key_and_reset_by_forget(queue: WorkQueue[str]) -> None:
    queue.add_rate_limited("a")
    assert queue.add_rate_limited("a") == 0.01
    assert queue.add_rate_limited("b") == 0.005
    queue.forget("a")
    assert queue.add_rate_limited("a") == 0.005


async def test_get_waits_and_wakes() -> None:
    queue: WorkQueue[str] = WorkQueue(debounce=0)
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("sync")
    assert await waiting == "sync"


async def test_cancelled_get_loses_nothing() -> None:
    queue: WorkQueue[str] = WorkQueue(debounce=0)
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("sync")
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert await queue.get() == "sync"


async def test_closed_queue_returns_ready_keys_and_ends(
    queue: WorkQueue[str], clock: Clock
) -> None:
    queue.add("ready")
    clock.advance(0.02)
    queue.add("gathering")
    queue.add_after("later", 1)
    queue.close()
    queue.add("late")
    clock.advance(10)
    assert await queue.get() == "ready"
    with pytest.raises(ShutDown):
        await queue.get()


async def test_done_without_get_is_an_error(queue: WorkQueue[str]) -> None:
    with pytest.raises(KeyError):
        queue.done("sync")


async def test_observer_receives_measurements(clock: Clock) -> None:
    measured: list[tuple[Any, ...]] = []

    class Observer:
        def added(self, depth: int) -> None:
            measured.append(("added", depth))

        def got(self, depth: int, waited: float) -> None:
            measured.append(("got", depth, waited))

        def finished(self, worked: float) -> None:
            measured.append(("finished", worked))

        def retried(self) -> None:
            measured.append(("retried",))

    queue: WorkQueue[str] = WorkQueue(debounce=0.5, clock=clock, observer=Observer())
    queue.add("sync")
    clock.advance(0.5)
    taken(queue)
    clock.advance(2)
    queue.done("sync")
    queue.add_rate_limited("sync")
    assert measured == [("added", 1), ("got", 0, 0.5), ("finished", 2.0), ("retried",)]


class Contract(RuleBasedStateMachine):
    """No key is lost, none is worked on twice at once, none waits twice."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.queue: WorkQueue[str] = WorkQueue(debounce=0.02, clock=self.clock)
        self.wanted: set[str] = set()  # added and not handed out since
        self.later: dict[str, float] = {}
        self.working: set[str] = set()

    @rule(key=st.sampled_from("abc"))
    def add(self, key: str) -> None:
        self.queue.add(key)
        self.wanted.add(key)

    @rule(key=st.sampled_from("abc"), delay=st.floats(0.001, 5))
    def add_after(self, key: str, delay: float) -> None:
        self.queue.add_after(key, delay)
        due = self.clock.now + delay
        self.later[key] = min(due, self.later.get(key, due))

    @rule(seconds=st.floats(0, 2))
    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        for key, due in list(self.later.items()):
            if due <= self.clock.now:
                self.wanted.add(key)
                del self.later[key]

    @rule()
    def get(self) -> None:
        key = taken(self.queue)
        if key is not None:
            assert key in self.wanted
            assert key not in self.working
            self.wanted.remove(key)
            self.working.add(key)

    @precondition(lambda self: self.working)
    @rule(data=st.data())
    def done(self, data: Any) -> None:
        key = data.draw(st.sampled_from(sorted(self.working)))
        self.working.remove(key)
        self.queue.done(key)

    @invariant()
    def depth_is_what_waits(self) -> None:
        assert len(self.queue) == len(self.wanted)

    def teardown(self) -> None:
        for key in self.working:
            self.queue.done(key)
        self.advance(100)
        handed = set()
        while (waiting := taken(self.queue)) is not None:
            handed.add(waiting)
        assert handed == self.wanted


TestContract = Contract.TestCase
TestContract.settings = settings(max_examples=25, stateful_step_count=25)


@given(st.lists(st.floats(0, 0.03), max_size=60))
def test_every_add_is_followed_by_a_get_within_the_debounce(gaps: Any) -> None:
    clock = Clock()
    queue: WorkQueue[str] = WorkQueue(debounce=0.02, clock=clock)
    for gap in gaps:
        queue.add("sync")
        added = clock.now
        clock.advance(0.02)
        assert taken(queue) == "sync"
        assert clock.now - added <= 0.02 + 1e-9
        queue.done("sync")
        clock.advance(gap)
