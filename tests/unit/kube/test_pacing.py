"""Storms become few passes, and what is urgent does not wait for their end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from kube_scheduler_operator.kube.pacing import LONGEST, QUIET, URGENT, Pace


@dataclass
class Storm:
    """Passes under events that come every tenth of a second of virtual time."""

    now: float = 100.0
    passes: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pace = Pace(lambda: self.now)

    def event(self, *, urgent: bool = False, idle: bool = True) -> None:
        """One event, and the pass if it may begin now."""
        self.pace.event(urgent=urgent)
        if self.pace.left() == 0:
            self.passes.append(self.now)
            self.pace._urgent = False  # what rest() does once it may go on
            self.pace.passed(idle=idle)

    def blow(self, seconds: float, *, urgent: bool = False, idle: bool = True) -> int:
        """Events for so long; how many passes they became."""
        before = len(self.passes)
        for _ in range(round(seconds * 10)):
            self.now += 0.1
            self.event(urgent=urgent, idle=idle)
        return len(self.passes) - before


@pytest.fixture
async def storm() -> Storm:
    return Storm()


async def test_the_first_event_does_not_wait(storm: Storm) -> None:
    storm.event()
    assert storm.passes == [100.0]


async def test_half_a_minute_of_events_is_fewer_than_ten_passes(storm: Storm) -> None:
    assert storm.blow(30) < 10


async def test_what_is_urgent_waits_a_moment_in_the_middle_of_a_storm(storm: Storm) -> None:
    storm.blow(20)
    assert storm.pace.left() > URGENT
    storm.pace.event(urgent=True)
    assert storm.pace.left() <= URGENT


async def test_a_storm_of_urgent_events_is_a_pass_for_each_such_moment(storm: Storm) -> None:
    storm.blow(20, urgent=True)
    assert storm.blow(10, urgent=True) == pytest.approx(10 / URGENT, abs=4)


async def test_work_is_never_delayed(storm: Storm) -> None:
    assert storm.blow(3, idle=False) == 30


async def test_a_quiet_moment_ends_the_storm(storm: Storm) -> None:
    storm.blow(25)
    storm.now += QUIET + 0.1
    storm.event()
    assert storm.passes[-1] == storm.now


async def test_rest_ends_when_something_urgent_comes() -> None:
    pace = Pace()
    for _ in range(12):
        pace.passed(idle=True)
    assert pace.left() > LONGEST / 2
    resting = asyncio.create_task(pace.rest())
    await asyncio.sleep(0.01)
    assert not resting.done()
    pace.event(urgent=True)
    await asyncio.wait_for(resting, URGENT + 5)
    assert pace.left() > 0, "the next pass may not begin at once"


async def test_rest_is_over_at_once_when_nothing_is_left() -> None:
    pace = Pace()
    await asyncio.wait_for(pace.rest(), 1)
