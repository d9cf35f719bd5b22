"""Filter and score of koordinator's LoadAwareScheduling: pkg/scheduler/plugins/loadaware."""

from __future__ import annotations

from collections.abc import Sequence

from ..arrays import Floats, np


def percent(used: Floats, capacity: Floats) -> Floats:
    """Use in percent of capacity, rounded to integers as in Go."""
    return np.floor(100.0 * used / capacity + 0.5)


def least_used(used: Floats, capacity: Floats) -> Floats:
    """Return (capacity - used)·100/capacity as integers; 0 where use exceeds the capacity."""
    free = np.floor((capacity - used) * 100.0 / capacity)
    return np.where(used > capacity, 0.0, free)


def score(scores: Floats, weights: Sequence[float], dominant: float) -> Floats:
    """Return the weighted mean of the resources' scores, with additional weight for the lowest.

    Args:
        scores: score of each resource, 0..100; NaN where unknown (float64[resources, n]).
        weights: weight of each resource.
        dominant: additional weight of the lowest score.
    """
    known = ~np.isnan(scores)
    by = np.array(weights)
    total, weighed = by @ np.where(known, scores, 0.0), by @ known
    if dominant:
        lowest: Floats = np.fmin.reduce(scores)
        total = total + dominant * np.nan_to_num(lowest)
        weighed = weighed + dominant * ~np.isnan(lowest)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean: Floats = np.floor(total / weighed)
    return mean
