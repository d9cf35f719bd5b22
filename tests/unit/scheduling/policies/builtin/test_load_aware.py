from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.scheduling.policies.policy import ArgumentsError, read_arguments

from ..playing import NOW, Play, node, pod, rfc3339, usage

NAMES = [f"{r}_usage_{w}" for r in ("cpu", "mem") for w in ("avg_5m", "max_avg_1h", "max_avg_1d")]

GOLDEN = [
    ((0.63012, 0.66, 0.70, 0.30, 0.35, 0.40), 0, 48),
    ((0.63012, 0.66, 0.70, 0.30, 0.35, 0.40), 1, 38),
    ((0.1, 0.2, 0.3, 0.1, 0.2, 0.3), 3, 47),
    ((0.1, 0.2, None, 0.1, 0.2, None), 0, 42),
    ((None,) * 6, 0, 0),
    ((0.0,) * 6, 0, 100),
    ((0.0,) * 6, 12, 0),
]


def cranes(values: tuple[float | None, ...], hot: int = 0, at: float = NOW) -> dict[str, str]:
    time = rfc3339(at)
    reported = {
        name: f"{value:.5f},{time}"
        for name, value in zip(NAMES, values, strict=True)
        if value is not None
    }
    return {**reported, "node_hot_value": f"{hot},{time}"}


def percent(play: Play, asked: Any = None) -> float:
    row = play.policy.explain(play.pod(asked), play.indices())[0]
    return float(row["percent"])


@pytest.mark.parametrize(("values", "hot", "score"), GOLDEN)
def test_golden_vectors_of_crane(values: tuple[float | None, ...], hot: int, score: int) -> None:
    play = Play("load-aware", [node("a", annotations=cranes(values, hot))],
                annotations="crane", timeZone="UTC", compatibility=True)  # fmt: skip
    assert percent(play) == score
    assert play.scores() == [int(score / 10 + 0.5)]


@pytest.mark.parametrize(("usage", "rejected"), [(0.65, False), (0.65001, True)])
@pytest.mark.parametrize("compatibility", [True, False])
def test_a_limit_itself_passes(usage: float, rejected: bool, compatibility: bool) -> None:
    reported = cranes((usage, None, None, None, None, None))
    play = Play("load-aware", [node("a", annotations=reported)], annotations="crane",
                timeZone="UTC", compatibility=compatibility)  # fmt: skip
    found = play.policy.filter(play.pod(None), play.indices())
    assert (found is not None) == rejected
    if found is not None:
        assert found.reasons[0] == "the load is too high: cpu_usage_avg_5m above 65 percent"
        assert found.figures[0] == "cpu_usage_avg_5m: 65.0 percent"
        assert found.unresolvable == (set() if compatibility else {0})
    assert play.rejected(pod(owner="DaemonSet")) == {}


@pytest.mark.parametrize(
    ("name", "seconds"), [("avg_5m", 480), ("max_avg_1h", 1200), ("max_avg_1d", 11100)]
)
def test_measurements_are_valid_for_their_period_and_five_minutes(
    name: str, seconds: float
) -> None:
    metric = f"cpu_usage_{name}"
    limits = [{"name": metric, "maxLimit": 0.5}]
    reported = {metric: f"0.9,{rfc3339(NOW)}"}
    play = Play("load-aware", [node("a", annotations=reported)], annotations="crane",
                timeZone="UTC", predicate=limits, compatibility=True)  # fmt: skip
    play.clock.now += seconds - 1
    assert list(play.rejected()) == ["a"]
    play.clock.now += 1
    assert play.rejected() == {}


def test_the_hot_value_of_the_annotation_is_valid_for_five_minutes() -> None:
    reported = cranes((0.0,) * 6, 3)
    play = Play("load-aware", [node("a", annotations=reported)], annotations="crane",
                timeZone="UTC", compatibility=True)  # fmt: skip
    assert percent(play) == 70
    play.clock.now += 300
    assert percent(play) == 100


HOT = [
    ([10, 20], 1),
    ([10, 20, 30, 40], 2),
    ([10, 100, 150, 200, 250], 1),
    ([10, 70, 80, 90, 100, 110, 120, 130, 140, 150], 2),
    ([1, 2, 3, 4, 5, 6, 7], 4),
    ([59], 0),
    ([60, 60], 0),
    ([300, 299, 298, 297, 296], 0),
]


@pytest.mark.parametrize(("ages", "hot"), HOT)
def test_golden_vectors_of_hot_values(ages: list[float], hot: int) -> None:
    idle = usage(cpu_usage_avg_5m=0.0)
    play = Play("load-aware", [node("a", annotations=idle)], inFlight=False, ownDemand=False)
    for at, age in enumerate(ages):
        play.cluster.set_pod(pod(f"p{at}", on="a", bound=NOW - age))
    assert percent(play) == 100 - 10 * hot
    assert play.scores() == [10 - hot]


def test_hot_values_expire() -> None:
    idle = usage(cpu_usage_avg_5m=0.0)
    play = Play("load-aware", [node("a", annotations=idle)], inFlight=False, ownDemand=False)
    for at in range(4):
        play.cluster.set_pod(pod(f"p{at}", on="a", bound=NOW + at))
    assert play.scores() == [8]
    play.cluster.set_pod(pod("p0", cpu="1", on="a", bound=NOW))  # resized, not new
    play.cluster.remove_pod({"metadata": {"uid": "uid-p1"}})  # it did start here
    assert play.scores() == [8]
    play.clock.now = NOW + 60
    assert play.scores() == [9]
    play.clock.now = NOW + 63
    assert play.scores() == [10]


def test_a_pod_that_was_bound_elsewhere_makes_no_node_hot() -> None:
    idle = usage(cpu_usage_avg_5m=0.0)
    nodes = [node(name, annotations=idle) for name in ("a", "b")]
    play = Play("load-aware", nodes, inFlight=False, ownDemand=False)
    for name in ("p", "q"):
        play.cluster.assume(play.pod(pod(name)), play.cluster.index["a"])
    assert play.scores() == [9, 10]
    for name in ("p", "q"):
        play.cluster.set_pod(pod(name, on="b", bound=NOW))
    assert play.scores() == [10, 9]
    play.cluster.assume(play.pod(pod("r")), play.cluster.index["a"])
    play.cluster.set_pod(pod("r", on="a", bound=NOW))
    play.cluster.remove_pod({"metadata": {"uid": "uid-r"}})
    play.cluster.set_pod(pod("s", on="a", bound=NOW))
    assert play.scores() == [9, 9], "r did start there"


def known(**figures: float) -> dict[str, str]:
    return usage(
        **{f"{r}_usage_{w}": 0.2 for r in ("cpu", "mem") for w in ("avg_5m", "max_avg_1h")}
        | figures
    )


def test_unmeasured_pods_count_in_proportion() -> None:
    play = Play("load-aware", [node("a", "10", annotations=known())], ownDemand=False, hotValue=[])
    play.cluster.set_pod(pod("p", cpu="5", on="a", bound=NOW - 150))  # 85 % of 5, half of it
    row = play.policy.explain(play.pod(None), play.indices())[0]
    assert row["cpuInFlight"] == pytest.approx(2125.0)
    assert row["cpu_usage_avg_5mExpected"] == pytest.approx(0.2 + 0.2125)
    assert row["cpu_usage_max_avg_1hExpected"] == pytest.approx(0.2 + 0.2125)
    assert row["cpu_usage_max_avg_1d"] is None
    play.cluster.set_pod(pod("q", cpu="5", on="a", bound=NOW))
    assert "cpu_usage_avg_5m: 83.7 percent (20.0 measured)" in play.explained()["a"]
    play.cluster.set_node(node("a", "10", annotations=known(cpu_usage_avg_5m=0.3) | {"x": "y"}))
    later = usage(NOW + 300, cpu_usage_avg_5m=0.6)
    play.clock.now += 300
    play.cluster.set_node(node("a", "10", annotations=later))
    assert play.rejected() == {}
    assert play.policy.explain(play.pod(None), play.indices())[0]["cpuInFlight"] == 0.0


def test_thirty_concurrent_pods_are_spread() -> None:
    nodes = [node(name, "8", annotations=known(cpu_usage_avg_5m=u, cpu_usage_max_avg_1h=u))
             for name, u in (("a", 0.05), ("b", 0.15), ("c", 0.25))]  # fmt: skip
    play, got = Play("load-aware", nodes), dict.fromkeys("abc", 0)
    for at in range(30):
        asked = pod(f"p{at}", cpu="200m")
        rejected = play.rejected(asked)
        names = [name for name in "abc" if name not in rejected]
        scores = dict(zip(names, play.scores(asked, *names), strict=True))
        best = max(names, key=lambda name: (scores[name], -got[name]))
        got[best] += 1
        play.cluster.set_pod(pod(f"p{at}", cpu="200m", on=best, bound=NOW + at))
    assert min(got.values()) >= 6, got


def test_the_standard_deviation_is_added_to_the_load() -> None:
    nodes = [node("a", annotations=known()), node("b", annotations=known(free_cpu_std=1600.0))]
    scores = Play("load-aware", nodes, ownDemand=False).scores()
    assert scores[1] < scores[0]
    assert Play("load-aware", nodes, variance=0, ownDemand=False).scores() == [scores[0]] * 2


def test_the_pods_own_load_counts_only_in_the_score() -> None:
    small, large = pod(cpu="100m"), pod(cpu="3900m")
    play = Play("load-aware", [node("a", annotations=known())])
    assert play.scores(large)[0] < play.scores(small)[0]
    assert play.rejected(large) == {}


def test_unknown_nodes_are_accepted_and_get_the_median() -> None:
    nodes = [node(name, annotations=known(cpu_usage_max_avg_1d=u)) for name, u in
             (("a", 0.0), ("b", 0.5), ("c", 1.0))]  # fmt: skip
    play = Play("load-aware", [*nodes, node("d")], ownDemand=False)
    scores = play.scores()
    assert scores[3] == scores[1]
    assert play.rejected() == {}
    old = Play("load-aware", [*nodes, node("d")], compatibility=True)
    assert old.scores()[3] == 0


POLICY = """
apiVersion: scheduler.policy.crane.io/v1alpha1
kind: DynamicSchedulerPolicy
spec:
  syncPolicy: [{name: cpu_usage_avg_5m, period: 3m}]
  predicate: [{name: cpu_usage_avg_5m, maxLimitPecent: LIMIT}]
  priority: [{name: cpu_usage_avg_5m, weight: 0.2}]
  hotValue: []
"""


def test_a_changed_policy_file_is_reloaded(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"

    def write(text: str) -> None:
        fresh = tmp_path / "fresh"
        fresh.write_text(text)
        fresh.replace(file)

    write(POLICY.replace("LIMIT", "0.65"))
    play = Play(
        "load-aware", [node("a", annotations=known(cpu_usage_avg_5m=0.5))], policyFile=str(file)
    )
    play.cluster.set_pod(pod("p", cpu="400m", on="a", bound=NOW))
    assert play.rejected() == {}
    write(POLICY.replace("LIMIT", "0.45"))
    assert play.rejected() == {}  # not yet looked at
    play.clock.now += 1
    assert play.explained()["a"] == (
        "the load is too high: cpu_usage_avg_5m above 45 percent "
        "(cpu_usage_avg_5m: 58.5 percent (50.0 measured))"
    )
    write("spec: [")
    play.clock.now += 1
    assert list(play.rejected()) == ["a"]  # the last good one holds
    write(POLICY.replace("LIMIT", "75"))  # percent, as in the plus fork
    play.clock.now += 1
    assert play.rejected() == {}


def test_a_policy_file_may_appear_later(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    play = Play(
        "load-aware", [node("a", annotations=known(cpu_usage_avg_5m=0.6))], policyFile=str(file)
    )
    assert play.rejected() == {}
    file.write_text(POLICY.replace("LIMIT", "0.45"))
    play.clock.now += 1
    assert list(play.rejected()) == ["a"]


@pytest.mark.parametrize(
    ("given", "output"),
    [
        ({"predicate": [{"name": "cpu_usage_avg_5m", "maxLimit": 65}]},
         r"arguments\.predicate\[0\]\.maxLimit: 65 is not a fraction"),
        ({"predicate": 3}, r"arguments\.predicate: this must be a list of objects"),
        ({"hotValue": [{"seconds": 60, "count": 0}]}, r"arguments\.hotValue\[0\]\.count"),
        ({"policyFile": "x", "priority": []}, r"set priority in the file or omit policyFile"),
        ({"timeZone": "Mars/Olympus"}, 'unknown time zone "Mars/Olympus"'),
        ({"scalingFactors": {"cpu": 120}}, "arguments.scalingFactors.cpu: 120 is not between"),
    ],
)  # fmt: skip
def test_invalid_arguments(given: dict[str, Any], output: str) -> None:
    with pytest.raises(ArgumentsError, match=output):
        read_arguments("load-aware", given)
