"""The result of repeated measurements: a median and its confidence interval."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A median with its interval."""

    median: float  # of the values
    low: float  # the interval
    high: float
    # how probable it is that the interval has the true median; None for one value
    confidence: float | None

    def as_json(self) -> dict[str, float | None]:
        """All of it."""
        return {
            "median": self.median,
            "low": self.low,
            "high": self.high,
            "confidence": self.confidence,
        }


def estimate(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """The median and the shortest symmetric interval of order statistics that is good enough.

    The number of values below the true median is binomial with p = 1/2, whatever they are
    distributed like, so the interval from the k-th smallest to the k-th largest of n has it with a
    probability of 1 - 2 * sum(C(n, i), i < k) / 2**n. Few values may not reach `confidence`; then
    it is from the smallest to the largest; `probability` is its own confidence level.

    Raises:
        ValueError: There are no values.
    """
    if not values:
        raise ValueError("no values")
    ordered, count = sorted(values), len(values)
    best, reached = 0, _coverage(count, 1)
    for rank in range(2, count // 2 + 1):
        covered = _coverage(count, rank)
        if covered < confidence:
            break
        best, reached = rank - 1, covered
    return Estimate(
        statistics.median(ordered),
        ordered[best],
        ordered[-1 - best],
        reached if count > 1 else None,
    )


def _coverage(count: int, rank: int) -> float:
    outside = sum(math.comb(count, below) for below in range(rank))
    return 1.0 - 2.0 * outside / 2.0**count


_SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

Labels = Mapping[str, str]


def samples(text: str, name: str) -> list[tuple[Labels, float]]:
    """The samples of one name in Prometheus' text format."""
    matches = (_SAMPLE.match(line) for line in text.splitlines() if line.startswith(name))
    return [
        (dict(_LABEL.findall(match[2] or "")), float(match[3]))
        for match in matches
        if match and match[1] == name
    ]


def total(text: str, name: str, **labels: str) -> float:
    """The sum of the samples of one name that have these labels."""
    return sum(value for found, value in samples(text, name) if labels.items() <= found.items())


def quantile(buckets: Iterable[tuple[float, float]], wanted: float) -> float:
    """A quantile of a cumulative histogram, as Prometheus' `histogram_quantile` has it.

    Args:
        buckets: upper bound -> how many are at most so much; the last bound is infinity.
        wanted: 0.99 is the 99th percentile.

    Returns:
        What is interpolated in the bucket; the last finite bound if it is beyond; NaN without any.
    """
    ordered = sorted(buckets)
    if not ordered or ordered[-1][1] == 0:
        return math.nan
    rank = wanted * ordered[-1][1]
    lower, below = 0.0, 0.0
    for upper, count in ordered:
        if count >= rank:
            if math.isinf(upper):
                return lower
            share = (rank - below) / (count - below) if count > below else 1.0
            return lower + (upper - lower) * share
        lower, below = upper, count
    return lower


def buckets_of(text: str, name: str, **labels: str) -> list[tuple[float, float]]:
    """The buckets of a histogram, those of all samples that have these labels added up."""
    added: dict[float, float] = {}
    for found, value in samples(text, f"{name}_bucket"):
        if labels.items() <= found.items():
            bound = float(found["le"])
            added[bound] = added.get(bound, 0.0) + value
    return sorted(added.items())
