"""Scores of scheduler-plugins' Trimaran, 0..100: pkg/trimaran, KEP 61-Trimaran-real-load-aware."""

from __future__ import annotations

import math
from typing import Final

from ..arrays import Floats, clip, np
from . import beta

_WIDEST: Final = 0.99
"""A beta distribution needs deviation² < mean·(1 - mean); Trimaran's limit below that."""


def target_load_packing(usage: Floats, target: float) -> Floats:
    """Fill nodes up to the target and then avoid them.

    The score rises from `target` for an idle node to 100 at the target; beyond, it falls from
    `target` to 0 at full use.

    Args:
        usage: percent of capacity, including the Pod.
        target: percent, between 0 and 100.
    """
    rising = (100.0 - target) * usage / target + target
    falling = target * (100.0 - usage) / (100.0 - target)
    scores = np.where(usage <= target, rising, np.where(usage <= 100.0, falling, 0.0))
    scores[np.isnan(usage)] = np.nan
    return np.floor(scores + 0.5)


def load_variation_risk(
    mean: Floats, deviation: Floats, margin: float, sensitivity: float
) -> Floats:
    """Return 100·(1 - (mu + margin·sigma^(1/sensitivity))/2): 100 for an idle node.

    Args:
        mean: mean use with the Pod, fraction of allocatable.
        deviation: standard deviation of use, fraction.
        margin: weight of the standard deviation, 0 or more.
        sensitivity: more than 0; higher values give small deviations more weight.
    """
    mu = clip(mean, 0.0, 1.0)
    sigma = clip(np.where(np.isnan(deviation), 0.0, deviation), 0.0, 1.0)
    spread = clip(margin * sigma ** (1.0 / sensitivity), 0.0, 1.0)
    return 100.0 * (1.0 - (mu + spread) / 2.0)


def risk_of_limits(capacity: Floats, requests: Floats, limits: Floats) -> Floats:
    """Return the share of limits above requests that exceeds the capacity: 0..1.

    Args:
        capacity: allocatable.
        requests: sum over all Pods, including the one to schedule; at most the capacity.
        limits: sum over all Pods, at least the requests.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        excess = (limits - capacity) / (limits - requests)
    return np.where(limits > capacity, excess, 0.0)


def risk_of_load(
    mean: Floats, deviation: Floats, requests: Floats, limits: Floats, window: float
) -> Floats:
    """Return the probability that Pods exceed their requests; inputs are fractions of capacity.

    Args:
        mean: mean use, 0..1; NaN: unknown.
        deviation: standard deviation of use; 0: unknown.
        requests: sum without the Pod to schedule, at most 1.
        limits: sum without the Pod to schedule.
        window: measurements per mean; the deviation of a single one is √window larger.
    """
    if len(mean) <= beta.FEW:
        lists = (values.tolist() for values in (mean, deviation, requests, limits))
        return np.array(
            [risk_of_load_at(m, d, r, li, window) for m, d, r, li in zip(*lists, strict=True)]
        )
    risks = np.full(len(mean), np.nan)
    known = ~np.isnan(mean)
    mu = clip(mean[known], 0.0, 1.0)
    widest = np.sqrt(_WIDEST * mu * (1.0 - mu))
    sigma = np.minimum(deviation[known] * math.sqrt(window), widest)
    below, above = clip(requests[known], 0.0, 1.0), limits[known]
    allocated = _probability(below, mu, sigma)
    capped = (above < 1.0) & (below <= above)
    whole = np.ones(len(mu))
    if capped.any():  # use never exceeds the limits, so the distribution is below them
        whole[capped] = _probability(above[capped], mu[capped], sigma[capped])
    with np.errstate(divide="ignore", invalid="ignore"):
        allocated = np.where(whole > 0.0, allocated / whole, 1.0)
    allocated[capped & (above <= 0.0)] = 1.0
    risks[known] = 1.0 - clip(allocated, 0.0, 1.0)
    return risks


def risk_of_load_at(
    mean: float, deviation: float, requests: float, limits: float, window: float
) -> float:
    """Return the same for one node."""
    if math.isnan(mean) or math.isnan(requests):
        return math.nan
    mu, below = min(max(mean, 0.0), 1.0), min(max(requests, 0.0), 1.0)
    sigma = min(deviation * math.sqrt(window), math.sqrt(_WIDEST * mu * (1.0 - mu)))
    allocated = _probability_at(below, mu, sigma)
    if limits < 1.0 and below <= limits:
        whole = _probability_at(limits, mu, sigma)
        allocated = allocated / whole if whole > 0.0 and limits > 0.0 else 1.0
    return 1.0 - min(max(allocated, 0.0), 1.0)


def _probability(x: Floats, mu: Floats, sigma: Floats) -> Floats:
    """Return P(U <= x)."""
    probabilities = np.where(mu <= x, 1.0, 0.0)
    alpha, other = beta.shape(mu, sigma)
    proper = (mu > 0.0) & (mu < 1.0) & (sigma > 0.0) & (alpha > 0.0) & (other > 0.0)
    if proper.any():
        probabilities[proper] = beta.distribution(x[proper], alpha[proper], other[proper])
    return probabilities


def _probability_at(x: float, mu: float, sigma: float) -> float:
    """Return the same for one node."""
    if 0.0 < mu < 1.0 and sigma > 0.0:
        alpha, other = beta.shape_at(mu, sigma)
        if alpha > 0.0 and other > 0.0:
            return beta.distribution_at(x, alpha, other)
    return float(mu <= x)
