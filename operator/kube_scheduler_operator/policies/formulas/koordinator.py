"""Filter and score of koordinator's LoadAwareScheduling: pkg/scheduler/plugins/loadaware."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..arrays import np

if TYPE_CHECKING:
    from ..arrays import Floats


def percent(used: Floats, capacity: Floats) -> Floats:
    """Use in whole percent of capacity, rounded as Go rounds."""
    return np.floor(100.0 * used / capacity + 0.5)


def least_used(used: Floats, capacity: Floats) -> Floats:
    """(capacity - used)·100/capacity in whole numbers, 0 where more is used than there is."""
    free = np.floor((capacity - used) * 100.0 / capacity)
    return np.where(used > capacity, 0.0, free)


def score(scores: Floats, weights: Sequence[float], dominant: float) -> Floats:
    """The weighted mean of the resources' scores, the lowest once more with weight `dominant`.

    Args:
        scores: of each resource, 0..100; NaN where it is unknown (float64[resources, n]).
        weights: of each resource.
        dominant: the weight of the lowest score.
    """
    known = ~np.isnan(scores)
    by = np.array(weights)
    total, weighed = by @ np.where(known, scores, 0.0), by @ known
    if dominant:
        lowest: Floats = np.fmin.reduce(scores)
        total = total + dominant * np.nan_to_num(lowest)
        weighed = weighed + dominant * ~np.isnan(lowest)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.floor(total / weighed)
    return found
