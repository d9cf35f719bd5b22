"""When the operator process reports that it does not do its work."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kube_scheduler_operator.operator.engine.reconcile_health import (
    FAILING_SECONDS,
    STALE_SECONDS,
    ReconcileHealth,
)


class Clock:
    seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.mark.parametrize(
    ("reconciles", "problem"),
    [
        pytest.param([], "no reconcile has succeeded yet", id="start"),
        pytest.param([("x", 0.0)], "no reconcile has succeeded yet", id="fails-from-the-start"),
        pytest.param([((), 0.0)], None, id="fine"),
        pytest.param([((), 1_000.0)], None, id="idle"),
        pytest.param([((), 0.0), ("403", 10.0)], None, id="fails-for-a-short-time"),
        pytest.param(
            [((), 1.0), ("403", FAILING_SECONDS)],
            "no reconcile has succeeded for 121 s: 403",
            id="fails-for-long",
        ),
        pytest.param(
            [((), 300.0), (["step x", "step y"], 0.0)],
            "no reconcile has succeeded for 300 s: step x; step y",
            id="steps-fail",
        ),
        pytest.param([((), 300.0), ("403", 5.0), ((), 0.0)], None, id="recovered"),
    ],
)
def test_readyz_reports_that_no_reconcile_succeeds(
    reconciles: list[tuple[str | Sequence[str], float]], problem: str | None
) -> None:
    """Each is the error that ended it, or what failed in its plan; and the seconds after it."""
    clock = Clock()
    health = ReconcileHealth(clock)
    for outcome, seconds in reconciles:
        if isinstance(outcome, str):
            health.failed(outcome)
        else:
            health.executed(outcome)
        clock.seconds += seconds
    assert health.problem() == problem


def test_healthz_fails_once_no_reconcile_ends() -> None:
    clock = Clock()
    health = ReconcileHealth(clock)
    clock.seconds += 2 * STALE_SECONDS
    assert health.staleness() is None, "it has not led before"
    health.executed(["step x"])
    clock.seconds += STALE_SECONDS
    assert health.staleness() is None
    clock.seconds += 1
    assert health.staleness() == "this process leads but has not reconciled for 601 s"


def test_the_error_of_the_last_reconcile_is_kept_until_one_ends() -> None:
    health = ReconcileHealth(Clock())
    health.failed("403")
    assert health.error == "403"
    assert health.executed(["step x"]), "it is the first one"
    assert health.error == ""
    assert not health.executed([])
