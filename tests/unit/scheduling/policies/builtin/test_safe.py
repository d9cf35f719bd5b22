from __future__ import annotations

import numpy as np
import pytest

from kube_scheduler_operator.scheduling.policies.builtin import safe

from ..playing import Play, node, pod, usage

# Capacity, free, deviation, demand, forecast: mu, sigma, risk, whether it is accepted, scores.
GOLDEN = [
    ((4000, 2000, 400, 200, None), (0.55, 0.1), 0.000007, True, 9, 6),
    ((4000, 1000, 400, 200, None), (0.8, 0.1), 0.158360, True, 2, 4),
    ((4000, 600, 500, 200, None), (0.9, 0.125), 0.660094, False, 0, 4),
    ((4000, 600, 0, 200, None), (0.9, 0.0), 0.0, True, 10, 6),
    ((4000, 200, 0, 400, None), (1.0, 0.0), 1.0, False, 0, 5),
    ((8192, 3000, 1500, 200, 2000), (0.682617, 0.183105), 0.111341, True, 3, 4),
    ((4000, 2000, 2000, 0, None), (0.5, 0.5), 1.0, False, 0, 4),
]


@pytest.mark.parametrize("compatibility", [True, False])
@pytest.mark.parametrize(("given", "moments", "risk", "accepted", "overload", "balance"), GOLDEN)
def test_golden_vectors(
    given: tuple[float, ...],
    moments: tuple[float, float],
    risk: float,
    accepted: bool,
    overload: int,
    balance: int,
    compatibility: bool,
) -> None:
    capacity, free, deviation, demand, forecast = given
    reported = usage(free_cpu_mean=free, free_cpu_std=deviation, free_cpu_forecast=forecast)
    nodes = [node("a", cpu=f"{capacity}m", annotations=reported)]
    asked = pod(cpu=f"{demand}m")

    play = Play("safe-overload", nodes, compatibility=compatibility)
    assert (play.rejected(asked) == {}) == accepted
    assert play.scores(asked) == [overload]
    row = play.policy.explain(play.pod(asked), play.indices())[0]
    assert (row["cpuMean"], row["cpuDeviation"]) == pytest.approx(moments, abs=1e-6)
    if compatibility or moments[1] != 0.5:
        assert row["cpuRisk"] == pytest.approx(risk, abs=1e-6)

    assert Play("safe-balance", nodes, compatibility=compatibility).scores(asked) == [balance]


def test_the_worse_of_cpu_and_memory_counts() -> None:
    reported = usage(free_cpu_mean=4000, free_memory_mean=2**30, free_memory_std=0)
    play = Play("safe-overload", [node("a", "4", "8Gi", reported)])
    assert play.scores(pod(memory="100Mi")) == [10]
    assert play.scores(pod(memory="1Gi")) == [0]
    assert play.explained(pod(memory="1Gi"))["a"] == (
        "the risk of using more than 90 percent of memory with this pod exceeds 30 percent "
        "(memory: 100.0 percent)"
    )
    found = play.policy.filter(play.pod(pod(memory="1Gi")), play.indices())
    assert found
    assert found.unresolvable == {0}


def test_an_unknown_node_is_accepted_and_gets_the_median() -> None:
    nodes = [node(name, annotations=usage(free_cpu_mean=free)) for name, free in
             (("a", 4000), ("b", 2000), ("c", 1000))]  # fmt: skip
    play = Play("safe-balance", [*nodes, node("d")])
    assert play.scores() == [10, 8, 6, 8]
    assert play.rejected() == {}
    assert Play("safe-balance", [*nodes, node("d")], compatibility=True).scores() == [10, 8, 6, 0]
    assert Play("safe-balance", [node("d")]).scores() == [0]


def test_zero_tolerance_does_not_divide_by_zero() -> None:
    nodes = [
        node("a", annotations=usage(free_cpu_mean=4000)),
        node("b", annotations=usage(free_cpu_mean=600, free_cpu_std=500)),
    ]
    assert Play("safe-overload", nodes, percentile=0).scores() == [10, 0]


def test_an_idle_node_with_a_short_peak_is_not_overloaded() -> None:
    reported = usage(free_cpu_mean=3960, free_cpu_std=400)  # mu = 0.01, sigma = 0.1
    assert Play("safe-overload", [node("a", annotations=reported)]).rejected() == {}
    old = Play("safe-overload", [node("a", annotations=reported)], compatibility=True)
    assert list(old.rejected()) == ["a"]


def test_print_table_includes_the_distribution() -> None:
    reported = usage(free_cpu_mean=2000, free_cpu_std=400, free_memory_mean=2**32)
    play = Play("safe-overload", [node("a", annotations=reported)], printTable=True)
    table = play.policy.explain(play.pod(None), play.indices())[0]["cpuTable"]
    assert len(table) == 21
    assert table == sorted(table)
    assert table[20] == 1.0


def test_the_risk_falls_with_the_threshold() -> None:
    mu, sigma = np.array([0.3, 0.6, 0.9]), np.array([0.1, 0.2, 0.25])
    steps = np.array([safe.risk_above(mu, sigma, step / 50) for step in range(51)])
    assert (np.diff(steps, axis=0) <= 1e-12).all()
