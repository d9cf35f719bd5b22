"""What the bench makes of repeated measurements and of Prometheus' text."""

from __future__ import annotations

import math
import random

import pytest

from benchmarks.intervals import buckets_of, estimate, quantile, samples, total

TEXT = """\
# HELP took how long
took_bucket{verb="filter",le="0.1"} 90
took_bucket{verb="filter",le="1"} 99
took_bucket{verb="filter",le="+Inf"} 100
took_bucket{verb="bind",le="0.1"} 10
took_bucket{verb="bind",le="1"} 10
took_bucket{verb="bind",le="+Inf"} 10
took_sum{verb="filter"} 12.5
took_sum{verb="bind"} 0.5
took_sum_of_others 7
up 1
"""


@pytest.mark.parametrize(
    ("count", "rank", "confidence"),
    # From tables of the sign test's confidence intervals.
    [(2, 1, 0.5), (5, 1, 0.9375), (6, 1, 0.96875), (10, 2, 0.978515625), (20, 6, 0.958610534)],
)
def test_the_interval_is_of_order_statistics(count: int, rank: int, confidence: float) -> None:
    values = list(range(1, count + 1))
    random.Random(count).shuffle(values)
    found = estimate(values)
    assert (found.low, found.high) == (rank, count + 1 - rank)
    assert found.confidence == pytest.approx(confidence)
    assert found.median == (count + 1) / 2


def test_the_interval_contains_the_median_with_its_confidence() -> None:
    chance = random.Random(7)
    hits = 0
    for _ in range(2000):
        found = estimate([chance.expovariate(1.0) for _ in range(10)])
        hits += found.low <= math.log(2) <= found.high  # the median of that distribution
    assert hits / 2000 == pytest.approx(0.9785, abs=0.015)


def test_one_value_proves_nothing() -> None:
    found = estimate([3.0])
    assert (found.median, found.low, found.high, found.confidence) == (3.0, 3.0, 3.0, None)
    with pytest.raises(ValueError, match="no values"):
        estimate([])


def test_samples_are_those_of_the_name_and_the_labels() -> None:
    assert samples(TEXT, "took_sum") == [({"verb": "filter"}, 12.5), ({"verb": "bind"}, 0.5)]
    assert samples(TEXT, "up") == [({}, 1.0)]
    assert total(TEXT, "took_sum") == 13.0
    assert total(TEXT, "took_sum", verb="filter") == 12.5
    assert total(TEXT, "missing") == 0.0


def test_a_quantile_is_interpolated_in_its_bucket() -> None:
    buckets = buckets_of(TEXT, "took", verb="filter")
    assert buckets == [(0.1, 90.0), (1.0, 99.0), (math.inf, 100.0)]
    assert quantile(buckets, 0.45) == pytest.approx(0.05)
    assert quantile(buckets, 0.945) == pytest.approx(0.55)
    assert quantile(buckets, 0.999) == 1.0  # beyond what was looked at: at least so much
    assert buckets_of(TEXT, "took")[0] == (0.1, 100.0)
    assert math.isnan(quantile([], 0.5))
