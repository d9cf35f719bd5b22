"""Delays between attempts."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.base.backoff import Backoff


def test_exponential_delays_grow_to_the_longest() -> None:
    assert Backoff.exponential(0.5, 3.0).delays == (0.5, 1.0, 2.0, 3.0)
    assert Backoff.exponential(10.0, 30.0, 1.5).delays == (10.0, 15.0, 22.5, 30.0)


def test_first_delay_is_never_longer_than_the_longest() -> None:
    assert Backoff.exponential(5.0, 3.0).delays == (3.0,)


def test_delays_without_growth_are_finite() -> None:
    assert set(Backoff.exponential(0.0, 30.0).delays) == {0.0}


@pytest.mark.parametrize(("failures", "delay"), [(0, 1.0), (1, 5.0), (2, 5.0), (10_000, 5.0)])
def test_last_delay_applies_to_all_further_retries(failures: int, delay: float) -> None:
    assert Backoff((1.0, 5.0)).delay(failures) == delay


@pytest.mark.parametrize(
    ("delay", "following"), [(0.0, 0.5), (0.1, 0.5), (0.5, 1.0), (7.0, 14.0), (20.0, 30.0)]
)
def test_delay_after_another(delay: float, following: float) -> None:
    assert Backoff.exponential(0.5, 30.0).after(delay) == following
