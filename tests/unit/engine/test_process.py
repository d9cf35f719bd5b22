"""When the operator process reports that it does not do its work."""

from __future__ import annotations

import time

import pytest

from kube_scheduler_operator.engine.process import FAILING_SECONDS, Operator


@pytest.mark.parametrize(
    ("reconciled", "succeeded", "failing", "problem"),
    [
        pytest.param(None, None, "x", "no reconcile has succeeded yet", id="start"),
        pytest.param(0.0, 0.0, "", None, id="fine"),
        pytest.param(1_000.0, 1_000.0, "", None, id="idle"),
        pytest.param(10.0, 10.0, "403", None, id="fails-for-a-short-time"),
        pytest.param(
            FAILING_SECONDS + 1,
            FAILING_SECONDS + 1,
            "403",
            "no reconcile has succeeded for 121 s: 403",
            id="fails-for-long",
        ),
        pytest.param(
            0.0, 300.0, "step x", "no reconcile has succeeded for 300 s: step x", id="a-step-fails"
        ),
    ],
)
def test_readyz_reports_that_no_reconcile_succeeds(
    reconciled: float | None, succeeded: float | None, failing: str, problem: str | None
) -> None:
    """Ages are in seconds."""
    now = time.monotonic()
    operator = object.__new__(Operator)
    operator._failing = failing
    operator._reconciled_at = None if reconciled is None else now - reconciled
    operator._succeeded_at = None if succeeded is None else now - succeeded
    assert operator._reconcile_problem() == problem
