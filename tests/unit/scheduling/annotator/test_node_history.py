"""The history of a node's load: windows that the source lacks, forecast and resumption."""

from __future__ import annotations

import math
from typing import Any

import pytest

from kube_scheduler_operator.scheduling.annotator.annotation import own, read_own
from kube_scheduler_operator.scheduling.annotator.measurement import (
    KEYS,
    Load,
    Measurement,
    congestion,
    score,
)
from kube_scheduler_operator.scheduling.annotator.node_history import LoadHistory
from kube_scheduler_operator.scheduling.load.policy import METRICS, Predicate, Priority, Rules

CAPACITIES = (4000.0, 8e9)
RULES = Rules()
AT = 1_700_000_000.0


def take(history: Any, at: Any, cpu: Any, mem: float = 0.5) -> Any:
    measured = Measurement(at, {}, {"cpu": cpu, "mem": mem})
    return history.update(measured, "MetricsServer", CAPACITIES, 60.0, RULES)


def test_source_without_history_gets_windows() -> None:
    history = LoadHistory()
    for number in range(30):
        load = take(history, AT + 60 * number, 0.9 if 10 <= number < 15 else 0.2)
    assert load["cpu_usage_avg_5m"] == pytest.approx(0.2)
    assert load["cpu_usage_max_avg_1h"] == load["cpu_usage_max_avg_1d"] == pytest.approx(0.9)
    assert load["mem_usage_max_avg_1d"] == pytest.approx(0.5)
    mean = (25 * 0.2 + 5 * 0.9) / 30
    std = math.sqrt((25 * 0.2**2 + 5 * 0.9**2) / 30 - mean**2)
    assert load["free_cpu_mean"] == pytest.approx((1 - mean) * 4000, abs=2)
    assert load["free_cpu_std"] == pytest.approx(std * 4000, abs=2)
    assert load["free_memory_mean"] == pytest.approx(4e9, rel=1e-4)
    assert not any(map(math.isnan, load.values))


def test_same_sample_counts_once() -> None:
    history, twice = LoadHistory(), LoadHistory()
    for number in range(20):
        at, usage = AT + 60 * number, 0.9 if number > 10 else 0.1
        load = take(history, at, usage)
        take(twice, at, usage)
        again = take(twice, at, usage)
    assert load == again


def test_values_of_a_complete_source_are_used() -> None:
    usage = {name: 0.1 * number for number, name in enumerate(METRICS)}
    measured = Measurement(
        AT, usage, {"cpu": 0.2, "mem": 0.3}, {"cpu": 0.25, "mem": 0.35}, {"cpu": 0.1, "mem": 0.01},
        8000.0, 16e9,
    )  # fmt: skip
    history = LoadHistory()
    load = history.update(measured, "NodeMetrics", CAPACITIES, 60.0, RULES)
    assert [load[name] for name in METRICS] == [pytest.approx(value) for value in usage.values()]
    assert (load["free_cpu_mean"], load["free_cpu_std"]) == (6000, 800)
    assert load["free_memory_forecast"] == pytest.approx(0.7 * 16e9)
    assert load.capacities == (8000.0, 16e9)
    assert not history._windows


def test_missing_values_are_computed_from_averages() -> None:
    measured = Measurement(AT, {"cpu_usage_avg_5m": 0.4, "cpu_usage_max_avg_1h": 0.6})
    load = LoadHistory().update(measured, "Prometheus", CAPACITIES, 60.0, RULES)
    assert load["cpu_usage_max_avg_1h"] == 0.6
    assert load["cpu_usage_max_avg_1d"] == 0.4  # all that was ever seen
    assert load["free_cpu_mean"] == 2400
    assert math.isnan(load["mem_usage_avg_5m"])
    assert math.isnan(load["free_memory_mean"])


def test_node_without_capacity_has_no_amounts() -> None:
    history = LoadHistory()
    measured = Measurement(AT, dict.fromkeys(METRICS, 0.5))
    load = history.update(measured, "Prometheus", (0.0, 0.0), 60.0, RULES)
    assert load["cpu_usage_avg_5m"] == 0.5
    assert math.isnan(load["free_cpu_mean"])


def test_rising_load_gives_a_rising_forecast() -> None:
    history = LoadHistory()
    for number in range(20):
        load = take(history, AT + 60 * number, 0.02 * number)
    assert 4000 * (1 - 0.6) < load["free_cpu_forecast"] < 4000 * (1 - 0.38)
    for number in range(20, 40):
        load = take(history, AT + 60 * number, 1.0)
    assert 0 <= load["free_cpu_forecast"] < 400


def written(text: str) -> Load:
    found = read_own(text)
    assert found is not None
    return found


def test_history_resumes_from_the_annotation() -> None:
    history = LoadHistory()
    for number in range(120):
        before = take(history, AT + 60 * number, 0.9 if number < 10 else 0.2)
    (text,) = own(before).values()
    resumed = LoadHistory()
    resumed.resume(written(text))
    for number in range(120, 125):
        after = take(resumed, AT + 60 * number, 0.2)
    assert after["cpu_usage_max_avg_1d"] == pytest.approx(0.9)
    assert after["cpu_usage_max_avg_1h"] == pytest.approx(0.2)
    assert after["free_cpu_mean"] == pytest.approx(before["free_cpu_mean"], rel=0.02)
    assert after["free_cpu_std"] == pytest.approx(before["free_cpu_std"], rel=0.05)
    assert after["cpu_usage_avg_5m"] == pytest.approx(0.2)


def test_unknown_values_stay_unknown_after_a_restart() -> None:
    history = LoadHistory()
    history.resume(written('{"at":"2023-11-14T00:00:00Z","source":"x","mem_usage_avg_5m":0.5}'))
    measured = Measurement(AT, {}, {"mem": 0.4})
    load = history.update(measured, "MetricsServer", CAPACITIES, 60.0, RULES)
    assert math.isnan(load["cpu_usage_avg_5m"])
    assert load["mem_usage_avg_5m"] == pytest.approx(0.4)


def test_clock_set_back_does_not_stop_updates() -> None:
    history = LoadHistory()
    take(history, AT + 100_000, 0.9)
    for number in range(10):
        load = take(history, AT + 60 * number, 0.2)
    assert load["cpu_usage_avg_5m"] == pytest.approx(0.2)
    assert load["cpu_usage_max_avg_1h"] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({}, 0),
        ({"cpu_usage_avg_5m": 0.65}, 0),
        ({"cpu_usage_avg_5m": 0.825}, 50),
        ({"cpu_usage_avg_5m": 0.7, "mem_usage_max_avg_1h": 0.875}, 50),
        ({"cpu_usage_avg_5m": 1.0}, 100),
        ({"cpu_usage_avg_5m": math.nan}, 0),
        ({"cpu_usage_max_avg_1d": 1.0}, 0),  # nothing limits it
    ],
)
def test_congestion(usage: Any, expected: Any) -> None:
    assert congestion(usage, RULES) == pytest.approx(expected)
    assert congestion(usage, Rules(predicates=(Predicate("cpu_usage_avg_5m", 1.0),))) == 0


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ((0.63012, 0.66, 0.7, 0.3, 0.35, 0.4), 48),
        ((0.1, 0.2, 0.3, 0.1, 0.2, 0.3), 77),
        ((0.0,) * 6, 100),
        ((1.0,) * 6, 0),
    ],
)
def test_score_is_cranes(usage: Any, expected: Any) -> None:
    assert int(score(dict(zip(METRICS, usage, strict=True)), RULES)) == expected


def test_score_without_metrics_is_zero() -> None:
    assert score({}, RULES) == 0
    rules = Rules(priorities=(Priority("cpu_usage_avg_5m", 0.0),))
    assert score({"cpu_usage_avg_5m": 0.5}, rules) == 0


def test_metrics_are_in_order() -> None:
    assert KEYS[:6] == METRICS
