"""Risk and balance of kube-safe-scheduler's agent safe: utilisation as a beta distribution."""

from __future__ import annotations

from ..arrays import Floats, clip, np
from ..policy import BEST
from . import beta


def expected_free(free: Floats, forecast: Floats, weight: float) -> Floats:
    """Return the mean unused amount, and the forecast with `weight` where it exists."""
    return np.where(np.isnan(forecast), free, (1.0 - weight) * free + weight * forecast)


def utilisation(
    capacity: Floats, free: Floats, deviation: Floats, demand: float
) -> tuple[Floats, Floats]:
    """Return (mu, sigma) with the Pod: mean and standard deviation as fractions of capacity, 0..1.

    Args:
        capacity: more than 0.
        free: expected unused amount.
        deviation: standard deviation of the unused amount; NaN means 0.
        demand: request of the Pod.
    """
    used = np.maximum(capacity - free, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mu = clip((used + demand) / capacity, 0.0, 1.0)
        sigma = clip(np.where(np.isnan(deviation), 0.0, deviation) / capacity, 0.0, 1.0)
    return mu, sigma


def risk(mu: Floats, sigma: Floats, threshold: float, *, original: bool = False) -> Floats:
    """Return the probability that utilisation exceeds `threshold`.

    No beta distribution has sigma² >= mu·(1 - mu). The original then returns 1, which rejects idle
    nodes with a short peak; the limit of ever wider beta distributions is mu.
    """
    risks = np.where(mu <= threshold, 0.0, 1.0)  # sigma = 0: certain
    risks[mu <= 0.0] = 0.0
    alpha, other = beta.shape(mu, sigma)
    uncertain = (sigma > 0.0) & (mu > 0.0)
    wide = uncertain & ~((alpha > 0.0) & (other > 0.0))
    risks[wide] = 1.0 if original else mu[wide]
    proper = uncertain & ~wide
    if proper.any():
        x = np.full(int(np.count_nonzero(proper)), threshold)
        risks[proper] = 1.0 - beta.distribution(x, alpha[proper], other[proper])
    risks[np.isnan(mu)] = np.nan
    return risks


def overload_score(risk: Floats, tolerated: float) -> Floats:
    """Return trunc((1 - √f)·10), f = risk/P: 10 without risk, 0 at the tolerated risk P."""
    if tolerated > 0.0:
        share = np.minimum(risk / tolerated, 1.0)
    else:
        share = np.where(np.isnan(risk), risk, (risk > 0.0).astype(np.float64))
    return np.trunc((1.0 - np.sqrt(share)) * BEST)


def balance_score(mu: Floats, sigma: Floats) -> Floats:
    """Return round((1 - (mu + √sigma)/2)·10): 10 for an idle node with a steady load."""
    return np.trunc((1.0 - (mu + np.sqrt(sigma)) / 2.0) * BEST + 0.5)


def table(mu: Floats, sigma: Floats) -> list[list[float]]:
    """Return for each node P(U <= u) for u = 0, 0.05, …, 1."""
    steps = [1.0 - risk(mu, sigma, step / 20.0) for step in range(21)]
    return [[round(float(step[node]), 6) for step in steps] for node in range(len(mu))]
