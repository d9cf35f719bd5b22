"""Reasons are equal for many nodes; figures are per node."""

from __future__ import annotations

from typing import Any

import pytest

from .playing import Play, node, pod, usage

FREE = {"free_memory_mean": 2**34, "free_memory_std": 0}


@pytest.mark.parametrize(
    ("policy", "figure", "level"),
    [
        ("load-aware", "cpu_usage_avg_5m", lambda at: 0.7 + at / 1000),
        ("usage-thresholds", "cpu_usage_avg_5m", lambda at: 0.7 + at / 1000),
        ("safe-overload", "free_cpu_mean", lambda at: 50.0 + at),
    ],
)
def test_reasons_do_not_contain_figures(policy: str, figure: str, level: Any) -> None:
    """kube-scheduler writes all different reasons into the status: megabytes with one per node."""
    nodes = [
        node(f"n{at:03}", annotations=usage(**{figure: level(at), "free_cpu_std": 10 + at, **FREE}))
        for at in range(100)
    ]
    play = Play(policy, nodes)
    rejected = play.rejected(pod(cpu="100m", memory="64Mi"))
    assert len(rejected) == 100
    assert len(set(rejected.values())) == 1
    explained = play.explained(pod(cpu="100m", memory="64Mi"))
    assert all(explained[name].startswith(f"{why} (") for name, why in rejected.items())
    rows = play.policy.explain(play.pod(pod(cpu="100m", memory="64Mi")), play.indices())
    assert {row["node"]: row["rejected"] for row in rows} == explained


def test_each_set_of_exceeded_limits_has_a_reason() -> None:
    def hot(cpu: float, memory: float) -> dict[str, str]:
        return usage(cpu_usage_avg_5m=cpu, mem_usage_avg_5m=memory)

    nodes = [
        node(name, annotations=hot(cpu, memory))
        for name, cpu, memory in (
            ("a", 0.7, 0.1),
            ("b", 0.1, 0.8),
            ("c", 0.8, 0.9),
            ("d", 0.1, 0.1),
        )
    ]
    cpu, memory = (f"{kind}_usage_avg_5m above 65 percent" for kind in ("cpu", "mem"))
    output = "the load is too high: "
    play = Play("load-aware", nodes)
    assert play.rejected() == {
        "a": output + cpu, "b": output + memory, "c": f"{output}{cpu}, {memory}"
    }  # fmt: skip
    assert play.explained()["c"] == (
        f"{output}{cpu}, {memory} (cpu_usage_avg_5m: 80.0 percent, mem_usage_avg_5m: 90.0 percent)"
    )
