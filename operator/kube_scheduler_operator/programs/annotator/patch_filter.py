"""What is worth a PATCH: what schedulers would decide otherwise, and what is about to grow stale.

Writing every small change costs the API server more than it gives anybody: crane-scheduler makes
some 97 PATCHes for a node and hour. What a reader finds instead is never older than the policy's
refresh (and one cycle), and never off by more than the tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ...load.policy import METRICS, LoadPolicy, Rules
from .measurement import KEYS, Load, score


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far what is written may be off.

    Attributes:
        usage: of any usage, fraction of capacity.
        score: of the score that follows from it, points of 100; an extender's score has ten steps.
        limit: so near to a limit, usage may be on the wrong side of it, fraction of capacity.
        amount: of mean and deviation of free CPU or memory, fraction of capacity.
        forecast: of its forecast, fraction of capacity; that is a guess, and policies that use it
            give it a fifth of the weight.
        congestion: points of 100.
        requested: of the sum of requests, fraction of capacity; pods: of their number.
    """

    usage: float = 0.05
    score: float = 5.0
    limit: float = 0.005
    amount: float = 0.05
    forecast: float = 0.1
    congestion: float = 10.0
    requested: float = 0.02
    pods: int = 1


TOLERANCE: Final = Tolerance()

_SKEW: Final = 60.0
"""Clocks of a cluster may be apart by so many seconds."""


def why_write(
    written: Load | None, load: Load, policy: LoadPolicy, tolerance: Tolerance = TOLERANCE
) -> str:
    """Why what is known must be written now; "" if it need not.

    Args:
        written: what the node's annotation says; None: nothing that could be read.
        load: what there is to say.
        policy: its rules say what matters, its refresh how old it may grow.
        tolerance: how far what is written may be off.
    """
    if written is None:
        return "new"
    if written.source != load.source:
        return "source"
    if [math.isnan(v) for v in written.values] != [math.isnan(v) for v in load.values]:
        return "known"
    age = load.at - written.at
    # At the next look it would be too old; or it is of a clock that was ahead, and never would be.
    if age + policy.cycle / 2 > refresh_of(policy) or age < -max(policy.cycle, _SKEW):
        return "refresh"
    before, now = _usage(written), _usage(load)
    if _crossed(before, now, policy.rules, tolerance.limit):
        return "limit"
    if any(abs(before[name] - now[name]) > tolerance.usage for name in METRICS):
        return "usage"
    if abs(score(before, policy.rules) - score(now, policy.rules)) > tolerance.score:
        return "score"
    return _amounts(written, load, tolerance)


def refresh_of(policy: LoadPolicy) -> float:
    """How old what is written may grow, seconds: as the policy says, unless it was stale by then.

    A cycle may come late by one; then it must still be valid.
    """
    periods = [sync.period + policy.rules.grace for sync in policy.rules.sync]
    if not periods:
        return policy.refresh
    return max(min(policy.refresh, min(periods) - 2 * policy.cycle), policy.cycle / 2)


def requested_changed(
    written: Mapping[str, float],
    requested: Mapping[str, float],
    capacities: tuple[float, float],
    tolerance: Tolerance = TOLERANCE,
) -> bool:
    """Whether the sums of requests are another matter than what was written of them."""
    for name in {*written, *requested}:
        change = abs(written.get(name, 0.0) - requested.get(name, 0.0))
        if name == "pods":
            allowed = float(tolerance.pods)
        elif name in ("cpu", "memory"):
            allowed = tolerance.requested * capacities[name == "memory"]
        else:
            allowed = 0.0  # counts of devices, and what is asked for rarely
        if change > allowed:
            return True
    return False


def _usage(load: Load) -> dict[str, float]:
    return dict(zip(METRICS, load.values, strict=False))


def _crossed(
    before: Mapping[str, float], now: Mapping[str, float], rules: Rules, near: float
) -> bool:
    """Whether a filter that goes by what is written would be wrong."""
    for predicate in rules.predicates:
        old, new = before.get(predicate.name, math.nan), now.get(predicate.name, math.nan)
        wrong = (old > predicate.limit) != (new > predicate.limit)
        if wrong and abs(new - predicate.limit) > near:
            return True
    return False


def _amounts(written: Load, load: Load, tolerance: Tolerance) -> str:
    for key, old, new in zip(KEYS, written.values, load.values, strict=True):
        if key.startswith("free_"):
            forecast = key.endswith("_forecast")
            allowed = tolerance.forecast if forecast else tolerance.amount
            if abs(old - new) > allowed * load.capacities["memory" in key]:
                return "forecast" if forecast else "amount"
        elif key == "congestion" and abs(old - new) > tolerance.congestion:
            return "congestion"
    return ""
