"""The API server's time, whatever the clock of this machine does."""

from __future__ import annotations

import email.utils
from datetime import UTC, datetime, timedelta

import pytest

from kube_scheduler_operator.kube.server_clock import ServerClock

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class Machine:
    """A machine whose wall clock may be wrong, and an API server whose clock is right."""

    def __init__(self, wrong: float = 0.0) -> None:
        self.passed = 0.0
        self.wrong = wrong
        self.server_wrong = 0.0
        self.clock = ServerClock(lambda: self.passed, self.wall)

    def wall(self) -> float:
        return BEGIN.timestamp() + self.passed + self.wrong

    def respond(self) -> None:
        moment = BEGIN.timestamp() + self.passed + self.server_wrong
        self.clock.responded(email.utils.formatdate(moment, usegmt=True), 0.02)

    def error(self) -> float:
        return (self.clock.now() - BEGIN - timedelta(seconds=self.passed)).total_seconds()


@pytest.mark.parametrize("wrong", [-1200.0, -1.0, 0.0, 560.0, 1e9])
def test_a_wrong_clock_of_the_machine_does_not_matter(wrong: float) -> None:
    machine = Machine(wrong)
    machine.respond()
    assert abs(machine.error()) <= 0.6


@pytest.mark.parametrize("jump", [-1200.0, 1200.0])
def test_a_machine_whose_clock_is_set_notices_nothing(jump: float) -> None:
    machine = Machine()
    machine.respond()
    machine.wrong += jump
    for _ in range(100):
        machine.passed += 2.0
        machine.respond()
        assert abs(machine.error()) <= 0.6


@pytest.mark.parametrize("jump", [-1200.0, 1200.0])
def test_another_server_time_is_approached_slowly_and_time_never_stands_still(jump: float) -> None:
    machine = Machine()
    machine.respond()
    machine.server_wrong = jump
    before = machine.clock.now()
    for _ in range(100):
        machine.passed += 2.0
        machine.respond()
        passed = (machine.clock.now() - before).total_seconds()
        before = machine.clock.now()
        assert 1.9 < passed < 2.1
    for _ in range(100):
        machine.passed += 3600.0
        machine.respond()
    assert abs(machine.error() - jump) <= 1.0


@pytest.mark.parametrize("date", [None, "", "yesterday"])
async def test_a_server_without_the_header_leaves_the_clock_of_the_machine(date: str) -> None:
    machine = Machine(7.0)
    machine.clock.responded(date, 0.1)
    await machine.clock.known()
    assert abs(machine.error() - 7.0) < 0.01
