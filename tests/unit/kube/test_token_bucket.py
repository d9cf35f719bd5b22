"""Bursts and refills."""

from __future__ import annotations

from kube_scheduler_operator.kube.token_bucket import TokenBucket


def test_spent_tokens_refill_up_to_the_size() -> None:
    now = 100.0
    bucket = TokenBucket(3, 10.0, lambda: now)
    assert bucket.left() == 3
    bucket.spend()
    bucket.spend(1.5)
    assert bucket.left() == 0.5
    now += 5
    assert bucket.left() == 1
    now += 1000
    assert bucket.left() == 3


def test_debt_is_refilled_first() -> None:
    now = 0.0
    bucket = TokenBucket(1, 1.0, lambda: now)
    bucket.spend(3)
    assert bucket.left() == -2
    now += 2.5
    assert bucket.left() == 0.5
