"""Windows give the same results as a naive computation over all samples."""

from __future__ import annotations

import json
import math
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.scheduling.load.windows import (
    AVERAGE_SECONDS,
    DAY,
    HOUR,
    Holt,
    SlidingMax,
    SlidingMean,
    SlidingMoments,
    Usage,
    UsageWindows,
)

USAGE = st.floats(0, 1)
PAUSES = st.one_of(st.integers(1, 120), st.integers(1, 5000), st.integers(1, 200_000)).map(float)
SERIES = st.lists(st.tuples(PAUSES, USAGE), min_size=1, max_size=60)
"""Pauses before samples, and the usage in each."""


def _samples(series: Any, begin: float = 1e6) -> Any:
    at, samples = begin, []
    for pause, value in series:
        at += pause
        samples.append((at, pause, value))
    return samples


def _mean(samples: Any, now: Any, span: Any = AVERAGE_SECONDS) -> Any:
    recent = [(seconds, value) for end, seconds, value in samples if end > now - span]
    weight = sum(seconds for seconds, _ in recent)
    return (sum(s * v for s, v in recent) / weight, weight) if weight else (0.0, 0.0)


@given(SERIES, st.floats(0, 400))
def test_mean_of_the_window(series: Any, later: Any) -> None:
    samples, mean = _samples(series), SlidingMean()
    for sample in samples:
        mean.add(*sample)
    now = samples[-1][0] + later
    expected, weight = _mean(samples, now)
    assert mean.read(now) == (pytest.approx(expected), pytest.approx(weight))


@given(SERIES, st.sampled_from([(HOUR, 60.0), (DAY, 300.0), (DAY, 900.0), (50.0, 7.0)]), PAUSES)
def test_maximum_of_the_window_plus_at_most_one_step(series: Any, window: Any, later: Any) -> None:
    span, step = window
    greatest, samples = SlidingMax(span, step), _samples(series)
    for at, _, value in samples:
        greatest.add(at, value)
    now = samples[-1][0] + later
    newest = math.floor(now / step)
    counted = [
        v for at, _, v in samples if math.floor(at / step) >= newest - math.ceil(span / step)
    ]
    assert greatest.read(now) == (max(counted) if counted else None)
    # Conversely, no value of the window is lost.
    certain = [v for at, _, v in samples if at > now - span]
    assert not certain or greatest.read(now) >= max(certain)


@given(SERIES, PAUSES)
def test_mean_and_standard_deviation_of_the_window(series: Any, later: Any) -> None:
    moments, samples = SlidingMoments(DAY, 300.0), _samples(series)
    for sample in samples:
        moments.add(*sample)
    now = samples[-1][0] + later
    oldest = math.floor(now / 300) - 288
    counted = [(s, v) for at, s, v in samples if math.floor(at / 300) >= oldest]
    found = moments.read(now)
    if not counted:
        assert found is None
        return
    weight = sum(seconds for seconds, _ in counted)
    mean = sum(s * v for s, v in counted) / weight
    deviation = math.sqrt(sum(s * (v - mean) ** 2 for s, v in counted) / weight)
    assert found == (pytest.approx(mean, abs=1e-9), pytest.approx(deviation, abs=1e-6))


def test_equal_weights_give_the_population_standard_deviation() -> None:
    moments, values = SlidingMoments(), [0.1, 0.4, 0.4, 0.9]
    for number, value in enumerate(values):
        moments.add(number * 15.0, 15.0, value)
    assert moments.read(60.0) == (
        pytest.approx(statistics.fmean(values)),
        pytest.approx(statistics.pstdev(values)),
    )


def read(windows: UsageWindows, at: float) -> Usage:
    found = windows.read(at)
    assert found is not None
    return found


@given(st.lists(st.tuples(st.integers(1, 120).map(float), USAGE), min_size=1, max_size=80))
def test_maxima_are_of_averages(series: Any) -> None:
    samples, windows = _samples(series), UsageWindows(hour_step=60.0, day_step=300.0)
    averages = []
    for number, sample in enumerate(samples):
        windows.add(*sample)
        average, covered = _mean(samples[: number + 1], sample[0])
        if covered >= AVERAGE_SECONDS / 2:
            averages.append((sample[0], average))
    now = samples[-1][0]
    usage = read(windows, now)
    average, _ = _mean(samples, now)
    assert usage.active == samples[-1][2]
    assert usage.avg_5m == pytest.approx(average)

    def greatest(span: Any, step: Any) -> Any:
        first = math.floor(now / step) - math.ceil(span / step)
        return max([v for at, v in averages if math.floor(at / step) >= first] + [average])

    assert usage.max_avg_1h == pytest.approx(greatest(HOUR, 60.0))
    assert usage.max_avg_1d == pytest.approx(greatest(DAY, 300.0))


@given(SERIES, st.booleans())
def test_values_are_in_range_and_ordered(series: Any, max_of_samples: Any) -> None:
    windows, samples = UsageWindows(max_of_samples=max_of_samples), _samples(series)
    for sample in samples:
        windows.add(*sample)
    usage = read(windows, samples[-1][0])
    tiny = 1e-12
    assert -tiny <= usage.avg_5m <= usage.max_avg_1h <= usage.max_avg_1d <= 1 + tiny
    assert 0 <= usage.active <= 1
    assert -tiny <= usage.mean <= 1 + tiny
    assert 0 <= usage.std <= 0.5 + 1e-6


def test_spike_counts_fully_only_with_maxima_of_samples() -> None:
    ours, theirs = UsageWindows(), UsageWindows(max_of_samples=True)
    for number in range(40):
        for windows in (ours, theirs):
            windows.add(number * 15.0, 15.0, 1.0 if number == 30 else 0.1)
    assert read(theirs, 39 * 15.0).max_avg_1h == 1.0
    assert read(ours, 39 * 15.0).max_avg_1h == pytest.approx(0.1 + 0.9 / 20)


def test_first_seconds_do_not_count_as_maximum() -> None:
    windows = UsageWindows()
    windows.add(1.0, 1.0, 1.0)
    assert read(windows, 1.0).max_avg_1d == 1.0  # there is nothing else to say
    for number in range(1, 40):
        windows.add(1 + number * 15.0, 15.0, 0.1)
    assert read(windows, 1 + 39 * 15.0).max_avg_1d < 0.12


def test_without_samples_the_result_is_none() -> None:
    windows = UsageWindows()
    assert windows.read(0.0) is None
    windows.add(10.0, 10.0, 0.5)
    assert windows.read(10.0) is not None
    assert windows.read(10.0 + AVERAGE_SECONDS) is None


@given(SERIES, st.sampled_from([0.0, 3600.0, -123300.0]))  # whole steps: the buckets stay
def test_dump_round_trips(series: Any, shift: Any) -> None:
    windows, samples = UsageWindows(), _samples(series)
    for sample in samples:
        windows.add(*sample)
    resumed = UsageWindows()
    resumed.load(json.loads(json.dumps(windows.dump())), shift)
    end = samples[-1][0] + 15.0
    windows.add(end, 15.0, 0.25)
    resumed.add(end + shift, 15.0, 0.25)
    before, after = read(windows, end), read(resumed, end + shift)
    for name in ("active", "avg_5m", "max_avg_1h", "max_avg_1d", "mean"):
        assert getattr(after, name) == pytest.approx(getattr(before, name), abs=2e-6), name
    assert after.std == pytest.approx(before.std, abs=2e-3)  # squares are rounded, roots of them


@pytest.mark.parametrize(
    "damage",
    [
        {"average": [1.0]},
        {"average": [1.0, 15.0, 7.0]},
        {"average": [30.0, 15.0, 0.1, 15.0, 15.0, 0.1]},
        {"average": [float("nan"), 15.0, 0.1]},
        {"hour": {"at": 0, "values": [5.0]}},
        {"hour": {"at": float("inf"), "values": [0.5]}},
        {"day": {"values": []}},
        {"moments": {"at": 0, "values": [1.0, 2.0]}},
        {"moments": {"at": 0, "values": [1.0, 2.0, 0.0]}},
        {"moments": "no"},
        {"hour": None},
    ],
)
def test_damaged_dump_is_rejected(damage: Any) -> None:
    windows = UsageWindows()
    windows.add(15.0, 15.0, 0.5)
    with pytest.raises((ValueError, KeyError, TypeError)):
        UsageWindows().load({**windows.dump(), **damage}, 0.0)


def ahead(holt: Holt, steps: int) -> float:
    found = holt.ahead(steps)
    assert found is not None
    return found


def test_forecast_of_a_constant_is_the_constant() -> None:
    holt = Holt()
    assert holt.ahead(5) is None
    for _ in range(50):
        holt.add(0.4)
    assert holt.ahead(10) == pytest.approx(0.4)


def test_forecast_of_rising_load_is_higher_and_damped() -> None:
    holt = Holt()
    for number in range(60):
        holt.add(0.01 * number)
    soon, late, never = (ahead(holt, steps) for steps in (1, 10, 10_000))
    assert 0.58 < soon < late < never < 0.7  # the last value was 0.59; it follows with a lag


@given(st.lists(USAGE, min_size=1, max_size=100))
def test_forecast_stays_near_the_values(values: Any) -> None:
    holt = Holt()
    for value in values:
        holt.add(value)
    assert -2 < ahead(holt, 10) < 3


def test_first_update_matches_the_textbook() -> None:
    holt = Holt()
    holt.add(1.0)
    holt.add(2.0)  # level 1.4, trend 0.04
    assert holt.ahead(1) == pytest.approx(1.4 + 0.9 * 0.04)
    assert holt.ahead(2) == pytest.approx(1.4 + (0.9 + 0.81) * 0.04)
