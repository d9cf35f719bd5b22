"""Waits that begin at a time which another clock may have written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kube_scheduler_operator.base.times import seconds_left

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ago", "left"),
    [
        (0.0, 60.0),
        (59.0, 1.0),
        (60.0, 0.0),
        (1200.0, 0.0),
        (-60.0, 120.0),
        (-61.0, 0.0),
        (-1200.0, 0.0),
        (-1e9, 0.0),
    ],
)
def test_a_wait_is_at_most_twice_its_period(ago: float, left: float) -> None:
    assert seconds_left(NOW, NOW - timedelta(seconds=ago), 60.0) == left
