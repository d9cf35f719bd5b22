"""Objectives of the agent pigeon of kube-safe-scheduler over all nodes of a request.

Tantawi and Steinder, "Autonomic cloud placement of mixed workload: an adaptive bin packing
algorithm", ICAC 2019, pp. 187-193. The original evaluates the objective over all nodes for
each placement, in n² steps; here sums over all nodes are corrected for the one node that changes,
in n steps (n·log n for CONSOLIDATE). Lower is better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from ..arrays import Bools, Floats, np
from ..policy import BEST

_STEPS: Final = 1e9
"""Differences below 1e-9 are rounding errors."""
_TINY: Final = 1e-300


def load_balance(x: Floats, after: Floats) -> Floats:
    """Return the standard deviation of use over all nodes.

    Args:
        x: use of each node, fraction (float64[n]).
        after: use of each node with the Pod.
    """
    n = len(x)
    mean = x.sum() / n
    y, step = x - mean, after - x
    squares = (y * y).sum() + (2.0 * y + step) * step
    deviation: Floats = np.sqrt(np.maximum(squares / n - (step / n) ** 2, 0.0))
    return deviation


def consolidate(x: Floats, after: Floats) -> Floats:
    """Return the distance from a state in which all nodes are empty or full.

    1 - the root mean square of the distances from the mean a, relative to the distance to 0 or 1.

    Args:
        x: use of each node, fraction (float64[n]).
        after: use of each node with the Pod.
    """
    n = len(x)
    ordered = np.sort(x)
    sums = np.zeros((2, n + 1))  # of the lowest k values, and of their squares
    np.add.accumulate(ordered, out=sums[0, 1:])
    np.add.accumulate(ordered * ordered, out=sums[1, 1:])
    total, total_of_squares = sums[:, n].tolist()
    a = (total + (after - x)) / n
    lowest, highest = float(a.min()), float(a.max())
    inside = lowest > 0.0 and highest < 1.0
    if not inside:
        outside = (a <= 0.0) | (a >= 1.0)
        a[outside] = 0.5
    to_empty, to_full = 1.0 / a, 1.0 / (1.0 - a)
    k = ordered.searchsorted(a)  # number of nodes below the mean
    s, q = sums.take(k, 1)
    count = k.astype(np.float64)
    below = count - to_empty * (2.0 * s - to_empty * q)
    above = total_of_squares - q - a * (2.0 * (total - s) - a * (n - count))
    squares = below + above * to_full * to_full
    # Replace the current distance of the node by the distance with the Pod.
    now, then = x - a, after - a
    now *= np.where(now < 0.0, to_empty, to_full)
    then *= np.where(then < 0.0, to_empty, to_full)
    squares += then * then - now * now
    distance: Floats = 1.0 - np.sqrt(np.maximum(squares, 0.0) / n)
    if not inside:
        distance[outside] = 0.0
    return distance


def variation(x: Floats, after: Floats) -> Floats:
    """Return the multivariate coefficient of variation (Albert and Zhang) of use: √(μᵀΣμ)/μᵀμ.

    Args:
        x: use of each node, by resource (float64[m, n]).
        after: use of each node with the Pod.
    """
    n = x.shape[1]
    seconds = x @ x.T / n
    # float64[m, n]: the mean for each candidate node.
    mean = (np.add.reduce(x, 1)[:, None] + (after - x)) / n
    norm = np.add.reduce(mean * mean)
    old, new = np.add.reduce(mean * x), np.add.reduce(mean * after)
    spread = np.add.reduce((seconds @ mean) * mean) + (new * new - old * old) / n - norm * norm
    np.maximum(spread, 0.0, out=spread)
    coefficient: Floats = np.sqrt(spread) / np.maximum(norm, _TINY)
    return coefficient


def demand_variation(mean: Sequence[float], seconds: Sequence[Sequence[float]]) -> float:
    """Return the same for the demands of Pods.

    Args:
        mean: mean of each resource, as a fraction of the average node.
        seconds: the matrix of second moments.
    """
    norm = sum(value * value for value in mean)
    spread = -norm * norm + sum(
        first * value * second
        for first, row in zip(mean, seconds, strict=True)
        for second, value in zip(mean, row, strict=True)
    )
    return math.sqrt(spread) / norm if spread > 0.0 and norm > 0.0 else 0.0


def scores(values: Floats, fits: Bools) -> Floats:
    """Return 10 for the lowest value, 1 for the highest, 0 if the Pod does not fit."""
    if fits.all():
        return _scores(values)
    points = np.zeros(len(values))
    if fits.any():
        points[fits] = _scores(values[fits])
    return points


def _scores(values: Floats) -> Floats:
    if not len(values):
        return values
    rounded = np.rint(values * _STEPS)
    low, high = float(rounded.min()), float(rounded.max())
    if high <= low:
        return np.full(len(values), float(BEST))
    # Also nine digits, so that half points do not depend on rounding errors.
    share = np.rint((high - rounded) * (_STEPS / (high - low))) / _STEPS
    points: Floats = np.floor(1.5 + (BEST - 1.0) * share)
    return points
