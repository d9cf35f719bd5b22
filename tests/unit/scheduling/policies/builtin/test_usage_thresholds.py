from __future__ import annotations

import numpy as np
import pytest

from kube_scheduler_operator.scheduling.policies.builtin import usage_thresholds

from ..playing import NOW, Play, node, pod, usage


def test_golden_vector() -> None:
    cpu, memory = (np.array([float(each)]) for each in (4000, 16384))
    used_cpu, used_memory = np.array([2600.0]), np.array([6000.0])
    assert usage_thresholds.percent(used_cpu, cpu) == [65.0]
    scores = [
        usage_thresholds.least_used(used_cpu, cpu),
        usage_thresholds.least_used(used_memory, memory),
    ]
    assert scores == [[35.0], [63.0]]
    assert usage_thresholds.weighted_score(np.array(scores), [1.0, 1.0], 0.0) == [49.0]
    assert usage_thresholds.weighted_score(np.array(scores), [1.0, 1.0], 1.0) == [
        np.floor((35 + 63 + 35) / 3)
    ]

    reported = usage(cpu_usage_avg_5m=0.59, mem_usage_avg_5m=5000 / 16384)
    play = Play("usage-thresholds", [node("a", "4", "16Gi", reported)],
                estimatedScalingFactors={"cpu": 100, "memory": 100})  # fmt: skip
    assert play.rejected(pod(cpu="240m", memory="1000Mi")) == {}
    assert play.scores(pod(cpu="240m", memory="1000Mi")) == [5]
    assert play.explained(pod(cpu="290m", memory="1000Mi"))["a"] == (
        "the load with this pod would be too high: more than 65 percent of CPU (CPU: 66 percent)"
    )


def test_a_pod_of_a_daemon_set_is_accepted() -> None:
    reported = usage(cpu_usage_avg_5m=0.9)
    play = Play("usage-thresholds", [node("a", annotations=reported)])
    assert list(play.rejected(pod())) == ["a"]
    assert play.rejected(pod(owner="DaemonSet")) == {}


def test_recently_bound_pods_count_with_their_estimate() -> None:
    play = Play("usage-thresholds", [node("a", annotations=usage(cpu_usage_avg_5m=0.3))])
    assert play.rejected(pod(cpu="1")) == {}
    play.cluster.set_pod(pod("new", cpu="1", on="a", bound=NOW))
    assert list(play.rejected(pod(cpu="1"))) == ["a"]
    play.clock.now = NOW + 60
    play.cluster.set_node(node("a", annotations=usage(NOW + 60, cpu_usage_avg_5m=0.3)))
    assert play.rejected(pod(cpu="1")) == {}


@pytest.mark.parametrize(
    ("text", "rejected"),
    [('{"usageThresholds":{"cpu":95}}', False), ('{"usageThresholds":{"cpu":0}}', False),
     ('{"usageThresholds":{"cpu":50}}', True), ('{"usageThresholds":{"cpu":"95"}}', True),
     pytest.param("[" * 100_000, True, id="deep"),
     ('{"usageThresholds":{"cpu":' + "9" * 400 + "}}", True), ("[]", True), ("{", True),
     ('{"usageThresholds":3}', True)],
)  # fmt: skip
def test_an_annotation_overrides_the_thresholds(text: str, rejected: bool) -> None:
    reported = {**usage(cpu_usage_avg_5m=0.8), "scheduling.koordinator.sh/usage-thresholds": text}
    play = Play("usage-thresholds", [node("a", annotations=reported)])
    assert bool(play.rejected(pod(cpu="100m"))) == rejected


def test_a_node_with_expired_data_is_accepted() -> None:
    play = Play("usage-thresholds", [node("a", annotations=usage(cpu_usage_avg_5m=0.9))],
                expirationSeconds=60)  # fmt: skip
    assert list(play.rejected()) == ["a"]
    play.clock.now += 60
    assert play.rejected() == {}
