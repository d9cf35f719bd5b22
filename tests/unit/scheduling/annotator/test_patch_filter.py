"""The PATCH filter: annotations are never too old, inaccurate or on the wrong side of limits."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube_scheduler_operator.scheduling.annotator.annotation import own, read_own
from kube_scheduler_operator.scheduling.annotator.measurement import KEYS, Load, score
from kube_scheduler_operator.scheduling.annotator.patch_filter import (
    Tolerance,
    refresh_of,
    requested_changed,
    why_write,
)
from kube_scheduler_operator.scheduling.load.policy import (
    METRICS,
    LoadPolicy,
    Predicate,
    Priority,
    Rules,
    Sync,
)

CAPACITIES = (4000.0, 8e9)
POLICY = LoadPolicy()


def load(
    at: float = 0.0, usage: float = 0.3, *, source: str = "NodeMetrics", **changed: Any
) -> Load:
    values = dict.fromkeys(METRICS, usage)
    for amount, capacity in zip(("cpu", "memory"), CAPACITIES, strict=True):
        values |= {
            f"free_{amount}_mean": (1 - usage) * capacity,
            f"free_{amount}_std": 0.1 * capacity,
            f"free_{amount}_forecast": (1 - usage) * capacity,
        }
    values["congestion"] = 0.0
    values |= changed
    return Load(at, source, tuple(values[key] for key in KEYS), CAPACITIES)


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (load(), ""),
        (load(60.0, 0.32), ""),
        (load(180.0), ""),
        (load(211.0), "refresh"),
        (load(-59.0), ""),
        (load(-61.0), "refresh"),  # it was written by a clock that was ahead
        (load(source="Prometheus"), "source"),
        (load(cpu_usage_max_avg_1d=math.nan), "known"),
        (load(cpu_usage_avg_5m=0.36), "usage"),
        (load(cpu_usage_avg_5m=0.66), "limit"),
        (load(mem_usage_max_avg_1h=0.76), "limit"),
        (load(free_cpu_mean=2800 - 201), "amount"),
        (load(free_memory_std=0.8e9 + 0.41e9), "amount"),
        (load(free_cpu_forecast=2800 - 399), ""),
        (load(free_cpu_forecast=2800 - 401), "forecast"),
        (load(congestion=11.0), "congestion"),
    ],
)
def test_reason_for_a_patch(now: Any, why: Any) -> None:
    assert why_write(load(), now, POLICY) == why


def test_node_without_annotation_is_written() -> None:
    assert why_write(None, load(), POLICY) == "new"


def test_fluctuation_near_a_limit_is_tolerated() -> None:
    just_below, just_above = load(cpu_usage_avg_5m=0.648), load(cpu_usage_avg_5m=0.652)
    assert why_write(just_below, just_above, POLICY) == ""
    assert why_write(just_below, load(cpu_usage_avg_5m=0.656), POLICY) == "limit"


def test_small_change_with_high_weight_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = Rules(predicates=(), priorities=(Priority("cpu_usage_avg_5m", 1.0),))
    monkeypatch.setattr(Tolerance, "usage", 0.5)
    before, now = load(), load(cpu_usage_avg_5m=0.36)
    assert why_write(before, now, LoadPolicy(rules)) == "score"
    light = (Priority("cpu_usage_avg_5m", 0.1), Priority("mem_usage_avg_5m", 1.0))
    assert why_write(before, now, LoadPolicy(Rules(predicates=(), priorities=light))) == ""


@pytest.mark.parametrize(
    ("periods", "grace", "cycle", "refresh", "effective"),
    [
        ((180, 900), 300, 60, 240, 240),
        ((60,), 60, 60, 240, 30),  # it is stale after 120: with every look
        ((5,), 5, 2, 5, 5),
        ((5,), 5, 2, 60, 6),
        ((), 300, 60, 240, 240),
    ],
)
def test_refresh_is_before_expiry(
    periods: Any, grace: Any, cycle: Any, refresh: Any, effective: Any
) -> None:
    sync = tuple(Sync("cpu_usage_avg_5m", period) for period in periods)
    policy = LoadPolicy(Rules(sync=sync, grace=grace), cycle=cycle, refresh=refresh)
    assert refresh_of(policy) == effective


USAGE = st.floats(0, 1, allow_nan=False)


@st.composite
def histories(draw: Any) -> Any:
    """Loads of a node, one a cycle, that move in steps of all sizes."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    step = draw(st.sampled_from([0.002, 0.01, 0.05, 0.3]))
    values: dict[str, Any] = {name: rng.random() for name in METRICS}
    found, at = [], 1e9
    for _ in range(draw(st.integers(1, 60))):
        at += 60 * rng.uniform(0.9, 1.1)
        for name in values:
            values[name] = min(max(values[name] + rng.gauss(0, step), 0.0), 1.0)
        free: dict[str, Any] = {
            f"free_{amount}_{figure}": (1 - values["cpu_usage_avg_5m"]) * capacity
            for figure in ("mean", "forecast")
            for amount, capacity in zip(("cpu", "memory"), CAPACITIES, strict=True)
        }
        found.append(load(at, **values, **free))
    return found


RULES = st.builds(
    Rules,
    predicates=st.lists(
        st.builds(Predicate, st.sampled_from(METRICS), st.floats(0.05, 1)), max_size=4
    ).map(tuple),
    priorities=st.lists(
        st.builds(Priority, st.sampled_from(METRICS), st.floats(0.1, 10)), max_size=6
    ).map(tuple),
)


@settings(deadline=None)
@given(histories(), RULES, st.sampled_from([60.0, 240.0, 600.0]))
def test_annotation_is_never_too_old_or_too_inaccurate(
    history: Any, rules: Any, refresh: Any
) -> None:
    policy = LoadPolicy(rules, refresh=refresh)
    stale_after = min(sync.period for sync in rules.sync) + rules.grace
    slack = 1e-5  # of rounding
    written: Load | None = None
    for now in history:
        if why_write(written, now, policy):
            (text,) = own(now).values()
            written = read_own(text)  # what readers get, rounded to seconds
        assert written is not None
        age = now.at - written.at
        assert age <= refresh + policy.cycle
        assert age + 1.2 * policy.cycle < stale_after  # also until after the next look
        written_usage = {name: written[name] for name in METRICS}
        true = {name: now[name] for name in METRICS}
        for name in METRICS:
            assert abs(written_usage[name] - true[name]) <= Tolerance.usage + slack
        for predicate in rules.predicates:
            agree = (written_usage[predicate.name] > predicate.limit) == (
                true[predicate.name] > predicate.limit
            )
            assert agree or abs(true[predicate.name] - predicate.limit) <= Tolerance.limit + slack
        assert (
            abs(score(written_usage, rules) - score(true, rules)) <= Tolerance.score + 100 * slack
        )
        for key in KEYS:
            if key.startswith("free_"):
                part = Tolerance.forecast if key.endswith("forecast") else Tolerance.amount
                allowed = part * CAPACITIES["memory" in key] + 1
                assert abs(written[key] - now[key]) <= allowed


@pytest.mark.parametrize(
    ("written", "requested", "changed"),
    [
        ({}, {}, False),
        ({"cpu": 1000.0}, {"cpu": 1080.0}, False),
        ({"cpu": 1000.0}, {"cpu": 1081.0}, True),
        ({"memory": 1e9}, {"memory": 1.17e9}, True),
        ({"pods": 10.0}, {"pods": 11.0}, False),
        ({"pods": 10.0}, {"pods": 12.0}, True),
        ({}, {"gpu": 1.0}, True),
        ({"gpu": 1.0}, {}, True),
    ],
)
def test_requested_changed(written: Any, requested: Any, changed: Any) -> None:
    assert requested_changed(written, requested, CAPACITIES) is changed
