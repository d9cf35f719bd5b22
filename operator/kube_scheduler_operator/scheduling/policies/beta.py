"""The beta distribution of a utilisation with a given mean and standard deviation.

Method of moments, and the regularised incomplete beta function by its continued fraction
(Abramowitz and Stegun 26.5.8; modified Lentz's method), as in kube-safe-scheduler's package `beta`
and scheduler-plugins' Trimaran.
"""

from __future__ import annotations

import math
from typing import Final

from .arrays import Floats, clip, np

FEW: Final = 8
"""Up to this number of values, a loop is faster than numpy."""
_ITERATIONS: Final = 300
_CHECKED_EVERY: Final = 4
_PRECISION: Final = 1e-12
_TINY: Final = 1e-300
_SYMMETRIC: Final = 100.0
"""If alpha or beta is smaller, the distribution is too skewed for a normal approximation."""
_FAR: Final = 38.0
"""Standard deviations beyond which a normal distribution's density is 0 in float64."""
_NARROWEST: Final = 1e15  # practically without deviation, and far from an overflow

NARROW: Final = 2e4
"""If alpha + beta is larger, the fraction converges too slowly, and the distribution is nearly
normal: with Edgeworth's first term for its skewness, the error is less than 1e-5."""


def shape(mean: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """Return (alpha, beta) of the beta distribution with this mean and deviation; both 0..1.

    Neither is positive if no beta distribution is as wide, deviation² >= mean·(1 - mean); the whole
    distribution is then at 0 and 1.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        total = mean * (1.0 - mean) / (deviation * deviation) - 1.0
        total = np.minimum(total, _NARROWEST)
        return mean * total, (1.0 - mean) * total


def shape_at(mean: float, deviation: float) -> tuple[float, float]:
    """Return the same for one value; the deviation is more than 0."""
    variance = deviation * deviation
    total = mean * (1.0 - mean) / variance - 1.0 if variance > 0.0 else _NARROWEST
    total = min(total, _NARROWEST)
    return mean * total, (1.0 - mean) * total


def distribution(x: Floats, alpha: Floats, beta: Floats) -> Floats:
    """Return P(U <= x) for U ~ Beta(alpha, beta), both positive and finite (float64[n] each)."""
    if len(x) <= FEW:
        inputs = zip(x.tolist(), alpha.tolist(), beta.tolist(), strict=True)
        return np.array([distribution_at(*values) for values in inputs], np.float64)
    probabilities = np.empty(len(x))
    inside = (x > 0.0) & (x < 1.0)
    probabilities[x <= 0.0] = 0.0
    probabilities[x >= 1.0] = 1.0
    narrow = inside & (alpha + beta > NARROW) & (np.minimum(alpha, beta) > _SYMMETRIC)
    for at in np.flatnonzero(narrow).tolist():
        probabilities[at] = distribution_at(float(x[at]), float(alpha[at]), float(beta[at]))
    rest = inside & ~narrow
    if rest.any():
        probabilities[rest] = _incomplete(x[rest], alpha[rest], beta[rest])
    return clip(probabilities, 0.0, 1.0)


def distribution_at(x: float, alpha: float, beta: float) -> float:
    """Return the same for one value: for few values numpy costs more than the calculation."""
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    total = alpha + beta
    if total > NARROW and min(alpha, beta) > _SYMMETRIC:
        return _nearly_normal(x, alpha, beta)
    mirrored = x > (alpha + 1.0) / (total + 2.0)
    if mirrored:
        x, alpha, beta = 1.0 - x, beta, alpha
    log_beta = math.lgamma(alpha) + math.lgamma(beta) - math.lgamma(total)
    front = math.exp(alpha * math.log(x) + beta * math.log1p(-x) - log_beta) / alpha
    tail = min(max(front * _fraction_at(x, alpha, beta), 0.0), 1.0)
    return 1.0 - tail if mirrored else tail


def _fraction_at(x: float, a: float, b: float) -> float:
    """Return the continued fraction of A&S 26.5.8."""
    ab, a_more, a_less = a + b, a + 1.0, a - 1.0
    c = 1.0
    d = 1.0 / ((1.0 - ab * x / a_more) or _TINY)
    value = d
    for m in range(1, _ITERATIONS + 1):
        am = a + 2.0 * m
        term = m * (b - m) * x / ((a_less + 2.0 * m) * am)
        d = 1.0 / ((1.0 + term * d) or _TINY)
        c = (1.0 + term / c) or _TINY
        value *= d * c
        term = -(a + m) * (ab + m) * x / (am * (a_more + 2.0 * m))
        d = 1.0 / ((1.0 + term * d) or _TINY)
        c = (1.0 + term / c) or _TINY
        step = d * c
        value *= step
        if abs(step - 1.0) < _PRECISION:
            break
    return value


def _incomplete(x: Floats, a: Floats, b: Floats) -> Floats:
    # The fraction converges fast only on one side of the mean; the other is its mirror image.
    mirrored = x > (a + 1.0) / (a + b + 2.0)
    x = np.where(mirrored, 1.0 - x, x)
    a, b = np.where(mirrored, b, a), np.where(mirrored, a, b)
    front = (
        _each(math.exp, a * _each(math.log, x) + b * _each(math.log1p, -x) - _log_beta(a, b)) / a
    )
    tail = front * _fraction(x, a, b)
    return np.where(mirrored, 1.0 - tail, tail)


def _fraction(x: Floats, a: Floats, b: Floats) -> Floats:
    """Return the continued fraction of A&S 26.5.8."""
    ab, a_more, a_less = a + b, a + 1.0, a - 1.0
    c = np.ones(len(x))
    d = 1.0 / _away_from_zero(1.0 - ab * x / a_more)
    value = d.copy()
    for m in range(1, _ITERATIONS + 1):
        am = a + 2.0 * m
        term = m * (b - m) * x / ((a_less + 2.0 * m) * am)
        d = 1.0 / _away_from_zero(1.0 + term * d)
        c = _away_from_zero(1.0 + term / c)
        value *= d * c
        term = -(a + m) * (ab + m) * x / (am * (a_more + 2.0 * m))
        d = 1.0 / _away_from_zero(1.0 + term * d)
        c = _away_from_zero(1.0 + term / c)
        step = d * c
        value *= step
        if m % _CHECKED_EVERY == 0 and bool(np.all(np.abs(step - 1.0) < _PRECISION)):
            break
    return value


def _away_from_zero(values: Floats) -> Floats:
    values[np.abs(values) < _TINY] = _TINY
    return values


def _log_beta(a: Floats, b: Floats) -> Floats:
    return _each(math.lgamma, a) + _each(math.lgamma, b) - _each(math.lgamma, a + b)


def _nearly_normal(x: float, a: float, b: float) -> float:
    total = a + b
    deviation = math.sqrt(a * b / (total + 1.0)) / total
    skewness = 2.0 * (b - a) * math.sqrt(total + 1.0) / ((total + 2.0) * math.sqrt(a * b))
    z = min(max((x - a / total) / deviation, -_FAR), _FAR)
    normal = 0.5 * math.erfc(-z / math.sqrt(2.0))
    density = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return min(max(normal - density * skewness * (z * z - 1.0) / 6.0, 0.0), 1.0)


def _each(function: object, values: Floats) -> Floats:
    return np.fromiter(map(function, values.tolist()), np.float64, len(values))  # type: ignore[call-overload]
