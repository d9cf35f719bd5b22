"""Whose body is received, and whose request is decided next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kube_scheduler_operator.operator.admission.fair_shares import (
    ROOM,
    SMALL,
    SMALL_AT_ONCE,
    AddressTurns,
    BodyShares,
    BodyTicket,
)

MIB = 1024 * 1024


class Arrivals:
    """Bodies that arrive, by name, and those that are received."""

    def __init__(self) -> None:
        self.bodies = BodyShares()
        self.received: list[str] = []
        self.tickets: dict[str, BodyTicket] = {}

    def enter(self, name: str, size: int, stored: int | None = None) -> None:
        ticket = BodyTicket(
            name[0], size, size if stored is None else stored, lambda: self.received.append(name)
        )
        self.tickets[name] = ticket
        self.bodies.enter(ticket)

    def leave(self, name: str) -> None:
        self.bodies.leave(self.tickets.pop(name))


@pytest.fixture
def arrivals() -> Arrivals:
    return Arrivals()


def test_one_large_body_of_an_address_is_received_at_a_time(arrivals: Arrivals) -> None:
    for name in ("a1", "a2", "b1"):
        arrivals.enter(name, MIB)
    assert arrivals.received == ["a1", "b1"]
    arrivals.leave("a1")
    assert arrivals.received == ["a1", "b1", "a2"]


def test_small_bodies_do_not_wait_for_large_ones(arrivals: Arrivals) -> None:
    arrivals.enter("a1", MIB)
    arrivals.enter("a2", MIB)
    for number in range(SMALL_AT_ONCE + 1):
        arrivals.enter(f"a-small-{number}", SMALL)
    assert len(arrivals.received) == 1 + SMALL_AT_ONCE
    arrivals.leave("a-small-0")
    assert arrivals.received[-1] == f"a-small-{SMALL_AT_ONCE}"


def test_all_large_bodies_together_are_limited_and_each_address_gets_a_share(
    arrivals: Arrivals,
) -> None:
    for number in range(2):
        for address in "abcdef":
            arrivals.enter(f"{address}{number}", ROOM // 4)
    assert arrivals.received == ["a0", "b0", "c0", "d0"]
    for name in ("a0", "b0", "c0", "d0"):
        arrivals.leave(name)
    assert arrivals.received[4:6] == ["e0", "f0"]
    assert {name[0] for name in arrivals.received[6:]} < set("abcd")


def test_a_body_that_is_discarded_needs_no_room(arrivals: Arrivals) -> None:
    arrivals.enter("a1", ROOM)
    arrivals.enter("b1", 2 * ROOM, stored=0)
    assert arrivals.received == ["a1", "b1"]


def test_who_ends_while_it_waits_keeps_nothing(arrivals: Arrivals) -> None:
    for name in ("a1", "a2", "a3"):
        arrivals.enter(name, MIB)
    arrivals.leave("a2")
    arrivals.leave("a1")
    assert arrivals.received == ["a1", "a3"]
    arrivals.leave("a3")
    bodies = arrivals.bodies
    assert (bodies._stored, len(bodies._received), len(bodies._waiting)) == (0, 0, 0)


async def test_each_address_has_one_job_in_turn_and_one_job_runs_in_a_turn_of_the_loop() -> None:
    turns, done = AddressTurns(), []

    def job(name: str) -> Callable[[], None]:
        return lambda: done.append(name)

    for number in range(50):
        turns.add("flood", job(f"flood {number}"))
    turns.add("b", job("b 0"))
    turns.add("a", job("a 0"))
    turns.add("a", job("a 1"))
    for number in range(4):
        await asyncio.sleep(0)
        assert len(done) <= number + 1
    for _ in range(60):
        await asyncio.sleep(0)
    assert done[:5] == ["flood 0", "b 0", "a 0", "flood 1", "a 1"]
    assert done[5:] == [f"flood {number}" for number in range(2, 50)]


async def test_a_job_that_fails_does_not_end_the_turns() -> None:
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    turns, done = AddressTurns(), []
    turns.add("a", lambda: [][0])
    turns.add("a", lambda: done.append("next"))
    for _ in range(5):
        await asyncio.sleep(0)
    assert done == ["next"]
