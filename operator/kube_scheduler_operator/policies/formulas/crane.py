"""Filter and score of crane-scheduler's plugin Dynamic: pkg/plugins/dynamic/stats.go."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..arrays import clip, np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..arrays import Floats


def score(usages: Floats, weights: Floats, hot: Floats, *, original: bool = False) -> Floats:
    """100 for an idle node: trunc(Σ(1 - u)·w·100 / Σw) - trunc(10·hot), 0..100.

    Sums are made in the order of the metrics, as the original makes them: the result is cut off.

    Args:
        usages: of each metric and node, fractions; NaN where it is unknown (float64[m, n]).
        weights: of each metric (float64[m]).
        hot: of each node, whole numbers (float64[n]).
        original: what is unknown counts as fully used; otherwise the known metrics of a node count,
            and without any the score is NaN.
    """
    if not len(weights):
        return np.zeros(len(hot))
    known = ~np.isnan(usages)
    by = weights[:, None]
    total = np.add.reduce(np.where(known, (1.0 - usages) * by * 100.0, 0.0), 0)
    weighed = weights.sum() if original else np.add.reduce(known * by, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.trunc(total / weighed) - np.trunc(10.0 * hot)
    if original and not weighed > 0.0:
        return np.zeros(len(hot))
    clipped: Floats = clip(found, 0.0, 100.0)
    return clipped


def score_one(
    usages: Sequence[float], weights: Sequence[float], hot: float, *, original: bool = False
) -> float:
    """The same of one node, to the last digit."""
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
