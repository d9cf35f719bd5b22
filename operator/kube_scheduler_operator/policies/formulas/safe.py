"""Risk and balance of kube-safe-scheduler's agent safe: utilisation as a beta distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..arrays import clip, np
from ..policy import BEST
from . import beta

if TYPE_CHECKING:
    from ..arrays import Floats


def expected_free(free: Floats, forecast: Floats, weight: float) -> Floats:
    """What will be free: the mean of what was, and of `weight` what is forecast, where it is."""
    return np.where(np.isnan(forecast), free, (1.0 - weight) * free + weight * forecast)


def utilisation(
    capacity: Floats, free: Floats, deviation: Floats, demand: float
) -> tuple[Floats, Floats]:
    """(mu, sigma) with the pod: mean and deviation as fractions of capacity, 0..1.

    Args:
        capacity: more than 0.
        free: of it, expected.
        deviation: of what is free; NaN means 0.
        demand: of the pod.
    """
    used = np.maximum(capacity - free, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mu = clip((used + demand) / capacity, 0.0, 1.0)
        sigma = clip(np.where(np.isnan(deviation), 0.0, deviation) / capacity, 0.0, 1.0)
    return mu, sigma


def risk(mu: Floats, sigma: Floats, threshold: float, *, original: bool = False) -> Floats:
    """The probability that utilisation goes above `threshold`.

    No beta distribution has sigma² >= mu·(1 - mu). The original says 1 then, and so keeps pods from
    idle nodes with a short peak; the limit of ever wider beta distributions, all at 0 and at 1, is
    mu.
    """
    found = np.where(mu <= threshold, 0.0, 1.0)  # sigma = 0: it is known
    found[mu <= 0.0] = 0.0
    alpha, other = beta.shape(mu, sigma)
    uncertain = (sigma > 0.0) & (mu > 0.0)
    wide = uncertain & ~((alpha > 0.0) & (other > 0.0))
    found[wide] = 1.0 if original else mu[wide]
    proper = uncertain & ~wide
    if proper.any():
        x = np.full(int(np.count_nonzero(proper)), threshold)
        found[proper] = 1.0 - beta.distribution(x, alpha[proper], other[proper])
    found[np.isnan(mu)] = np.nan
    return found


def overload_score(risk: Floats, tolerated: float) -> Floats:
    """10 without any risk, 0 when it is all that is tolerated: trunc((1 - √f)·10), f = risk/P."""
    if tolerated > 0.0:
        share = np.minimum(risk / tolerated, 1.0)
    else:
        share = np.where(np.isnan(risk), risk, (risk > 0.0).astype(np.float64))
    return np.trunc((1.0 - np.sqrt(share)) * BEST)


def balance_score(mu: Floats, sigma: Floats) -> Floats:
    """10 for a node that is idle and calm: round((1 - (mu + √sigma)/2)·10)."""
    return np.trunc((1.0 - (mu + np.sqrt(sigma)) / 2.0) * BEST + 0.5)


def table(mu: Floats, sigma: Floats) -> list[list[float]]:
    """For each node P(U <= u) for u = 0, 0.05, …, 1."""
    steps = [1.0 - risk(mu, sigma, step / 20.0) for step in range(21)]
    return [[round(float(step[node]), 6) for step in steps] for node in range(len(mu))]
