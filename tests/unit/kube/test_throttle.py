"""Storms of events cause few reconciles, and urgent events do not wait for their end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from kube_scheduler_operator.kube.queue import QUIET, STORM_BACKOFF, URGENT, Throttle


@dataclass
class Storm:
    """Reconciles under an event every tenth of a second of virtual time."""

    now: float = 100.0
    reconciles: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.throttle = Throttle(lambda: self.now)

    def event(self, *, urgent: bool = False, idle: bool = True) -> None:
        """One event, and a reconcile if it may begin now."""
        self.throttle.event(urgent=urgent)
        if self.throttle.remaining() == 0:
            self.reconciles.append(self.now)
            self.throttle._urgent = False  # as at the end of wait()
            self.throttle.reconciled(idle=idle)

    def blow(self, seconds: float, *, urgent: bool = False, idle: bool = True) -> int:
        """Events for `seconds`; returns the number of reconciles."""
        before = len(self.reconciles)
        for _ in range(round(seconds * 10)):
            self.now += 0.1
            self.event(urgent=urgent, idle=idle)
        return len(self.reconciles) - before


@pytest.fixture
async def storm() -> Storm:
    return Storm()


async def test_the_first_event_does_not_wait(storm: Storm) -> None:
    storm.event()
    assert storm.reconciles == [100.0]


async def test_half_a_minute_of_events_causes_fewer_than_ten_reconciles(storm: Storm) -> None:
    assert storm.blow(30) < 10


async def test_urgent_event_waits_a_moment_in_the_middle_of_a_storm(storm: Storm) -> None:
    storm.blow(20)
    assert storm.throttle.remaining() > URGENT
    storm.throttle.event(urgent=True)
    assert storm.throttle.remaining() <= URGENT


async def test_storm_of_urgent_events_causes_one_reconcile_per_moment(storm: Storm) -> None:
    storm.blow(20, urgent=True)
    assert storm.blow(10, urgent=True) == pytest.approx(10 / URGENT, abs=4)


async def test_reconciles_that_write_are_never_delayed(storm: Storm) -> None:
    assert storm.blow(3, idle=False) == 30


async def test_quiet_moment_ends_the_storm(storm: Storm) -> None:
    storm.blow(25)
    storm.now += QUIET + 0.1
    storm.event()
    assert storm.reconciles[-1] == storm.now


async def test_urgent_event_ends_the_wait() -> None:
    throttle = Throttle()
    for _ in range(12):
        throttle.reconciled(idle=True)
    assert throttle.remaining() > STORM_BACKOFF.delays[-1] / 2
    waiting = asyncio.create_task(throttle.wait())
    await asyncio.sleep(0.01)
    assert not waiting.done()
    throttle.event(urgent=True)
    await asyncio.wait_for(waiting, URGENT + 5)
    assert throttle.remaining() > 0, "the next reconcile still waits"


async def test_wait_without_a_delay_returns_at_once() -> None:
    throttle = Throttle()
    await asyncio.wait_for(throttle.wait(), 1)
