"""Filter and score of crane-scheduler's plugin Dynamic: pkg/plugins/dynamic/stats.go."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..arrays import Floats, clip, np


def score(usages: Floats, weights: Floats, hot: Floats, *, original: bool = False) -> Floats:
    """Return trunc(Σ(1 - u)·w·100 / Σw) - trunc(10·hot), 0..100; 100 for an idle node.

    Sums are in the order of the metrics as in the original, because the result is truncated.

    Args:
        usages: value of each metric and node, fractions; NaN where unknown (float64[m, n]).
        weights: weight of each metric (float64[m]).
        hot: hot value of each node, integers (float64[n]).
        original: whether unknown values count as full use; otherwise only the known metrics of a
            node count, and without any the score is NaN.
    """
    if not len(weights):
        return np.zeros(len(hot))
    known = ~np.isnan(usages)
    by = weights[:, None]
    total = np.add.reduce(np.where(known, (1.0 - usages) * by * 100.0, 0.0), 0)
    weighed = weights.sum() if original else np.add.reduce(known * by, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.trunc(total / weighed) - np.trunc(10.0 * hot)
    if original and not weighed > 0.0:
        return np.zeros(len(hot))
    clipped: Floats = clip(score, 0.0, 100.0)
    return clipped


def score_one(
    usages: Sequence[float], weights: Sequence[float], hot: float, *, original: bool = False
) -> float:
    """Return exactly the same for one node."""
    if not weights:
        return 0.0
    total = weighed = 0.0
    for usage, weight in zip(usages, weights, strict=True):
        if usage == usage:
            total += (1.0 - usage) * weight * 100.0
            weighed += weight
    if original:
        weighed = sum(weights)
    if not weighed > 0.0:
        return 0.0 if original else math.nan
    return min(max(math.trunc(total / weighed) - math.trunc(10.0 * hot), 0), 100)
