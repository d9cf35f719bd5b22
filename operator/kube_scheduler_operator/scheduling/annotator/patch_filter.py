"""Decides whether a load is worth a PATCH: if it affects scheduling, or the annotation gets stale.

Writing every small change costs the API server more than it is worth: crane-scheduler sends some
97 PATCHes per node and hour. With this filter, an annotation is never older than the policy's
refresh (plus one cycle), and never off by more than the tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from ..load.policy import METRICS, LoadPolicy, Rules
from .measurement import KEYS, Load, score


class Tolerance:
    """The allowed difference between an annotation and the current load."""

    usage: Final = 0.05  # for each usage metric, fraction of capacity
    score: Final = 5.0  # for the resulting score, points of 100; an extender's score has ten steps
    # distance within which usage may be on the wrong side of a limit, fraction of capacity
    limit: Final = 0.005
    # for mean and standard deviation of free CPU or memory, fraction of capacity
    amount: Final = 0.05
    # for the forecast, fraction of capacity; an estimate, to which policies give a fifth of the
    # weight
    forecast: Final = 0.1
    congestion: Final = 10.0  # for the congestion, points of 100
    requested: Final = 0.02  # for sums of requests, fraction of capacity
    pods: Final = 1


_SKEW: Final = 60.0
"""Tolerated clock skew between machines in seconds."""


def why_write(written: Load | None, load: Load, policy: LoadPolicy) -> str:
    """Return the reason to write a load now; "" if it need not be written.

    `written` is the load in the node's annotation; None if missing or invalid.
    """
    if written is None:
        return "new"
    if written.source != load.source:
        return "source"
    if [math.isnan(v) for v in written.values] != [math.isnan(v) for v in load.values]:
        return "known"
    age = load.at - written.at
    # Too old at the next poll; or from a clock that was ahead, so that it would never be too old.
    if age + policy.cycle / 2 > refresh_of(policy) or age < -max(policy.cycle, _SKEW):
        return "refresh"
    before, now = _usage(written), _usage(load)
    if _crossed(before, now, policy.rules):
        return "limit"
    if any(abs(before[name] - now[name]) > Tolerance.usage for name in METRICS):
        return "usage"
    if abs(score(before, policy.rules) - score(now, policy.rules)) > Tolerance.score:
        return "score"
    return _amounts(written, load)


def refresh_of(policy: LoadPolicy) -> float:
    """Return an annotation's maximum age in seconds: the policy's refresh, less than its validity.

    An annotation must still be valid if a cycle is late by one.
    """
    if not policy.rules.sync:
        return policy.refresh
    latest = policy.rules.shortest_validity - 2 * policy.cycle
    return max(min(policy.refresh, latest), policy.cycle / 2)


def requested_changed(
    written: Mapping[str, float], requested: Mapping[str, float], capacities: tuple[float, float]
) -> bool:
    """Return whether sums of requests differ from the written ones by more than the tolerance."""
    for name in {*written, *requested}:
        change = abs(written.get(name, 0.0) - requested.get(name, 0.0))
        if name == "pods":
            allowed = float(Tolerance.pods)
        elif name in ("cpu", "memory"):
            allowed = Tolerance.requested * capacities[name == "memory"]
        else:
            allowed = 0.0  # devices and rarely requested resources
        if change > allowed:
            return True
    return False


def _usage(load: Load) -> dict[str, float]:
    return dict(zip(METRICS, load.values, strict=False))


def _crossed(before: Mapping[str, float], now: Mapping[str, float], rules: Rules) -> bool:
    """Return whether a filter would decide wrongly with the written load."""
    for predicate in rules.predicates:
        old, new = before.get(predicate.name, math.nan), now.get(predicate.name, math.nan)
        wrong = (old > predicate.limit) != (new > predicate.limit)
        if wrong and abs(new - predicate.limit) > Tolerance.limit:
            return True
    return False


def _amounts(written: Load, load: Load) -> str:
    for key, old, new in zip(KEYS, written.values, load.values, strict=True):
        if key.startswith("free_"):
            forecast = key.endswith("_forecast")
            allowed = Tolerance.forecast if forecast else Tolerance.amount
            if abs(old - new) > allowed * load.capacities["memory" in key]:
                return "forecast" if forecast else "amount"
        elif key == "congestion" and abs(old - new) > Tolerance.congestion:
            return "congestion"
    return ""
