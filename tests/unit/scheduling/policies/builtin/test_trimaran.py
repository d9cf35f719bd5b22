from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.scheduling.policies.builtin.load_variation_risk_balancing import (
    steadiness,
)
from kube_scheduler_operator.scheduling.policies.builtin.low_risk_over_commitment import (
    risk_of_limits,
    risk_of_load,
    risk_of_load_at,
)
from kube_scheduler_operator.scheduling.policies.builtin.target_load_packing import packed

from ..playing import NOW, Play, node, pod, usage


def one(value: float) -> np.ndarray:
    return np.array([float(value)])


@pytest.mark.parametrize(
    ("target", "percent", "capacity", "asked", "score"),
    [(40, 0, 4000, 1500, 96), (40, 25, 4000, 500, 96), (40, 40, 4000, 0, 100),
     (40, 50, 4000, 1000, 17), (40, 90, 4000, 1000, 0)],
)  # fmt: skip
def test_target_load_packing(
    target: float, percent: float, capacity: float, asked: float, score: float
) -> None:
    used = one(percent + 100 * asked / capacity)
    assert packed(used, target)[0] == score
    reported = usage(cpu_usage_avg_5m=percent / 100)
    play = Play("target-load-packing", [node("a", f"{capacity}m", annotations=reported)],
                targetUtilization=target, defaultRequest=0)  # fmt: skip
    limits = {"cpu": f"{asked}m"}
    assert play.scores(pod(limits=limits)) == [int(score / 10 + 0.5)]


def test_the_expected_load_of_a_pod() -> None:
    play = Play("target-load-packing")
    containers = [
        {"resources": {"limits": {"cpu": "300m"}, "requests": {"cpu": "100m"}}},
        {"resources": {"requests": {"cpu": "200m"}}},
        {},
    ]
    asked = play.pod(pod(containers=containers, overhead={"cpu": "50m"}))
    policy: Any = play.policy
    assert policy.kind(asked) == 300 + 300 + 1000 + 50


def test_unmeasured_pods_count() -> None:
    reported = usage(cpu_usage_avg_5m=0.1)
    play = Play("target-load-packing", [node("a", "10", annotations=reported)])

    def arrives(name: str, bound: float) -> float:
        play.cluster.set_pod(pod(name, cpu="500m", limits={"cpu": "1"}, on="a", bound=bound))
        rows = play.policy.explain(play.pod(pod(limits={"cpu": "1"})), play.indices())
        return float(rows[0]["percentWithPod"])

    assert arrives("measured", NOW - 60) == pytest.approx(20.0)
    assert arrives("just before", NOW - 59) == pytest.approx(30.0)
    assert arrives("after", NOW + 5) == pytest.approx(40.0)
    play.clock.now = NOW + 40
    play.cluster.set_node(node("a", "10", annotations=usage(NOW + 40, cpu_usage_avg_5m=0.2)))
    assert arrives("latest", NOW + 41) == pytest.approx(20.0 + 10.0 + 20.0)
    play.cluster.remove_pod({"metadata": {"uid": "uid-after"}})
    assert arrives("last", NOW + 42) == pytest.approx(20.0 + 10.0 + 20.0)


def test_old_pods_are_not_kept_without_measurements() -> None:
    play = Play("target-load-packing", [node("a", "10")])
    play.cluster.set_pod(pod("old", cpu="1", on="a", bound=NOW - 5 * 3600))
    play.cluster.set_pod(pod("new", cpu="2", on="a", bound=NOW - 100))
    rows = play.policy.explain(play.pod(None), play.indices())
    assert rows[0]["inFlight"] == 3000.0


@pytest.mark.parametrize(
    ("margin", "sensitivity", "score"), [(1, 1, 67.5), (1, 2, 56.689), (2, 1, 62.5)]
)
def test_load_variation_risk_balancing(margin: float, sensitivity: float, score: float) -> None:
    found = steadiness(one(2200 / 4000), one(400 / 4000), margin, sensitivity)
    assert found[0] == pytest.approx(score, abs=1e-3)
    reported = usage(cpu_usage_avg_5m=0.5, free_cpu_std=400)
    play = Play("load-variation-risk-balancing", [node("a", annotations=reported)],
                safeVarianceMargin=margin, safeVarianceSensitivity=sensitivity)  # fmt: skip
    assert play.scores(pod(cpu="200m")) == [int(score / 10 + 0.5)]


def test_the_worse_resource_counts_and_one_is_sufficient() -> None:
    nodes = [
        node("a", annotations=usage(cpu_usage_avg_5m=0.2, mem_usage_avg_5m=0.8)),
        node("b", annotations=usage(free_memory_mean=2**33)),
        node("c", annotations={"mean-free-cpu": "2000"}),
    ]
    assert Play("load-variation-risk-balancing", nodes).scores() == [6, 10, 6]
    assert Play("load-variation-risk-balancing", nodes, annotations="safe").scores() == [8, 8, 8]


@pytest.mark.parametrize(
    ("limits", "limits_before", "by_limits", "by_load", "score"),
    [(7000, 6000, 0.666667, 0.190419, 57), (3500, 3000, 0.0, 0.189749, 91)],
)
def test_low_risk_over_commitment(
    limits: float, limits_before: float, by_limits: float, by_load: float, score: float
) -> None:
    capacity = one(4000)
    first = risk_of_limits(capacity, one(2500), one(limits))
    second = risk_of_load(one(0.4), one(0.05), one(0.5), one(limits_before / 4000), 5)
    assert first[0] == pytest.approx(by_limits, abs=1e-6)
    assert second[0] == pytest.approx(by_load, abs=1e-6)
    total = 0.5 * first[0] + 0.5 * second[0]
    assert int(100 * (1 - total) + 0.5) == score

    reported = usage(cpu_usage_avg_5m=0.4, free_cpu_std=200)
    play = Play("low-risk-over-commitment", [node("a", annotations=reported)])
    play.cluster.set_pod(pod("old", "2", limits={"cpu": f"{limits_before}m"}, on="a"))
    asked = pod("new", "500m", limits={"cpu": f"{limits - limits_before}m"})
    row = play.policy.explain(play.pod(asked), play.indices())[0]
    assert row["cpuRiskOfLimits"] == pytest.approx(by_limits, abs=1e-6)
    assert row["cpuRiskOfLoad"] == pytest.approx(by_load, abs=1e-6)
    assert play.scores(asked) == [int(score / 10 + 0.5)]


def test_low_risk_over_commitment_scores_best_effort_pods_zero() -> None:
    reported = usage(cpu_usage_avg_5m=0.4, free_cpu_std=200)
    assert Play("low-risk-over-commitment", [node("a", annotations=reported)]).scores() == [0]


@given(st.floats(0, 1), st.floats(0, 0.5), st.floats(0, 1), st.floats(0, 3), st.integers(1, 20))
def test_the_risk_of_load_is_a_probability(
    mean: float, deviation: float, requests: float, limits: float, window: int
) -> None:
    found = risk_of_load(
        one(mean), one(deviation), one(requests), one(max(limits, requests)), window
    )
    assert 0.0 <= found[0] <= 1.0


@given(st.floats(0, 4000), st.lists(st.floats(0, 20000), min_size=2, max_size=8))
def test_the_risk_of_limits_increases_with_the_limits(requests: float, limits: list[float]) -> None:
    ordered = np.array(sorted(max(limit, requests) for limit in limits))
    ones = np.ones(len(ordered))
    found = risk_of_limits(4000 * ones, requests * ones, ordered)
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found) >= -1e-12).all()


@given(
    st.lists(
        st.tuples(
            st.floats(0, 1), st.floats(0, 0.5), st.floats(0, 1), st.sampled_from([0.0, 0.5, 2.0])
        ),
        min_size=9,
        max_size=12,
    )
)
def test_arrays_have_the_same_risk_as_single_nodes(
    given: list[tuple[float, float, float, float]],
) -> None:
    mean, deviation, requests, more = np.array(given).T
    mean[0] = np.nan
    together = risk_of_load(mean, deviation, requests, requests * more, 5)
    for at in range(len(given)):
        limits = float(requests[at] * more[at])
        alone = risk_of_load_at(
            float(mean[at]), float(deviation[at]), float(requests[at]), limits, 5
        )
        assert alone == pytest.approx(together[at], abs=1e-6, nan_ok=True)
