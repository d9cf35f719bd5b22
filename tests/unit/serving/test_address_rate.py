"""How often an address may do what is expensive."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.serving.sharing import REMEMBERED, AddressRate, source


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_burst_goes_on_at_once_then_waits_then_is_refused(clock: Clock) -> None:
    rate = AddressRate(10.0, 3, 0.25, clock)
    waits = [rate.wait("a") for _ in range(7)]
    assert waits == [0.0, 0.0, 0.0, pytest.approx(0.1), pytest.approx(0.2), None, None]


def test_a_refusal_costs_nothing_and_time_gives_back(clock: Clock) -> None:
    rate = AddressRate(10.0, 3, 0.0, clock)
    assert [rate.wait("a") for _ in range(50)].count(0.0) == 3
    clock.now += 0.1001
    assert [rate.wait("a") for _ in range(3)] == [0.0, None, None]
    clock.now += 1000.0
    assert [rate.wait("a") for _ in range(4)] == [0.0, 0.0, 0.0, None]


def test_addresses_do_not_share(clock: Clock) -> None:
    rate = AddressRate(10.0, 1, 0.0, clock)
    assert [rate.wait(name) for name in "aabb"] == [0.0, None, 0.0, None]


def test_the_number_of_remembered_addresses_is_bounded(clock: Clock) -> None:
    rate = AddressRate(0.001, 1, 0.0, clock)
    for number in range(REMEMBERED + 100):
        assert rate.wait(f"10.0.{number}") == 0.0
    assert len(rate) == REMEMBERED
    assert rate.wait(f"10.0.{REMEMBERED + 99}") is None


def test_who_was_away_for_long_is_forgotten(clock: Clock) -> None:
    rate = AddressRate(10.0, 1, 0.0, clock)
    for number in range(100):
        rate.wait(str(number))
    clock.now += 10.0
    for _ in range(100):
        rate.wait("again")
        clock.now += 0.2
    assert len(rate) == 1


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        (("10.0.0.1", 4711), "10.0.0.1"),
        (("::ffff:10.0.0.1", 4711, 0, 0), "10.0.0.1"),
        (("::FFFF:10.0.0.1", 4711, 0, 0), "10.0.0.1"),
        (("fd00::1", 4711, 0, 0), "fd00::1"),
        (("fe80::1%eth0", 4711, 0, 2), "fe80::1"),
        (("::ffff:0:1", 4711, 0, 0), "::ffff:0:1"),
        ((), ""),
    ],
)
def test_the_source_is_the_address_in_one_form(peer: tuple[str, ...], address: str) -> None:
    assert source(peer) == address
