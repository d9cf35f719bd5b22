from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ..playing import Play, node, pod

CAPACITIES = [(4000, 8192), (4000, 8192), (8000, 16384), (2000, 4096)]
USED = [(2000, 2048), (1000, 6144), (800, 1024), (1900, 1000)]
PODS = [(500, 512), (1000, 2048), (200, 4096)]

GOLDEN: dict[str, list[tuple[list[float | None], list[int]]]] = {
    "LOAD_BALANCE": [
        ([0.331368, 0.306887, 0.305851, None], [1, 10, 10, 0]),
        ([0.348882, 0.300780, 0.291212, None], [1, 9, 10, 0]),
        ([0.324760, None, 0.315424, None], [1, 0, 10, 0]),
    ],
    "CONSOLIDATE": [
        ([0.338222, 0.388820, 0.395017, None], [10, 2, 1, 0]),
        ([0.301268, 0.397005, 0.422885, None], [10, 3, 1, 0]),
        ([0.352982, None, 0.375002, None], [10, 0, 1, 0]),
    ],
    "A_BINPACK": [
        ([0.494797, 0.511726, 0.453632, None], [4, 1, 10, 0]),
        ([0.055162, 0.097255, 0.075204, None], [10, 1, 6, 0]),
        ([0.012354, None, 0.123752, None], [10, 0, 1, 0]),
    ],
}


def nodes() -> list[Any]:
    return [
        node(f"n{at}", f"{cpu}m", f"{memory}Mi", {
            "requested-cpu": str(used_cpu), "requested-memory": str(used_memory * 2**20),
        })
        for at, (cpu, memory) in enumerate(CAPACITIES)
        for used_cpu, used_memory in [USED[at]]
    ]  # fmt: skip


@pytest.mark.parametrize("usage", ["pods", "annotations"])
@pytest.mark.parametrize("objective", sorted(GOLDEN))
def test_golden_vectors(objective: str, usage: str) -> None:
    play = Play("pigeon-holing", nodes(), objective=objective, usage=usage)
    if usage == "pods":
        for at, (cpu, memory) in enumerate(USED):
            play.cluster.set_pod(pod(f"on-{at}", f"{cpu}m", f"{memory}Mi", on=f"n{at}"))
    for at, (values, scores) in enumerate(GOLDEN[objective]):
        asked = pod(f"p{at}", f"{PODS[at][0]}m", f"{PODS[at][1]}Mi")
        assert play.scores(asked) == scores
        rows = play.policy.explain(play.pod(asked), play.indices())
        found = [row["objective"] for row in rows]
        assert [value is None for value in found] == [value is None for value in values]
        assert [v for v in found if v is not None] == pytest.approx(
            [v for v in values if v is not None], abs=2e-6
        )


def test_equal_nodes_get_equal_scores() -> None:
    for objective in GOLDEN:
        play = Play("pigeon-holing", [node(name) for name in "abcde"], objective=objective)
        assert play.scores(pod(cpu="1", memory="1Gi")) == [10] * 5


def test_a_pod_without_requests_has_a_small_demand() -> None:
    play = Play("pigeon-holing", [node("a", cpu="5m"), node("b")])
    assert play.scores()[0] == 0
    assert play.scores()[1] == 10


def test_an_unknown_node_gets_the_median_and_is_excluded_from_the_system() -> None:
    play = Play("pigeon-holing", nodes(), objective="LOAD_BALANCE", usage="annotations")
    alone = play.scores(pod(cpu="500m", memory="512Mi"))
    play.cluster.set_pod(pod("x", on="n9"))
    assert play.scores(pod(cpu="500m", memory="512Mi")) == [*alone, 1]


def test_gpus_and_storage_count_except_with_compatibility() -> None:
    storage: dict[str, Any] = {"ephemeral-storage": "10Gi"}
    wanted = {"nvidia.com/gpu": "1", "ephemeral-storage": "1Gi"}
    asked = pod(containers=[{"resources": {"requests": wanted}}])
    both = [node("a", **storage, **dict[str, Any]({"nvidia.com/gpu": "2"})), node("b", **storage)]
    assert Play("pigeon-holing", both, numResources=5).scores(asked) == [10, 0]
    old = Play("pigeon-holing", both, numResources=4, compatibility=True)
    assert old.scores(asked) == [10, 10]
    old = Play("pigeon-holing", both, numResources=5, compatibility=True)
    assert old.scores(asked) == [0, 0]


def original(objective: str, x: list[float], d: float, size: list[float]) -> list[float]:
    """The original algorithm: evaluate the objective over all nodes for each placement."""
    found = []
    for at in range(len(x)):
        y = np.array(x)
        y[at] += d / size[at]
        if objective == "LOAD_BALANCE":
            found.append(float(y.std()))
            continue
        a = y.mean()
        if a <= 0 or a >= 1:
            found.append(0.0)
            continue
        terms = np.where(y < a, (a - y) / a, (y - a) / (1 - a)) ** 2
        found.append(float(1 - np.sqrt(terms.mean())))
    return found


@pytest.mark.parametrize("objective", ["LOAD_BALANCE", "CONSOLIDATE"])
def test_corrected_sums_equal_a_full_evaluation(objective: str) -> None:
    rng = np.random.default_rng(7)
    for _ in range(50):
        n = int(rng.integers(1, 40))
        sizes = rng.integers(2, 64, n) * 1000
        used = (sizes * rng.random(n)).astype(int)
        play = Play(
            "pigeon-holing",
            [node(f"n{at:02}", f"{size}m", "1Ti") for at, size in enumerate(sizes)],
            objective=objective,
        )
        for at, amount in enumerate(used):
            play.cluster.set_pod(pod(f"p{at}", f"{amount}m", on=f"n{at:02}"))
        rows = play.policy.explain(play.pod(pod(cpu="700m")), play.indices())
        expected = original(objective, list(used / sizes), 700.0, list(sizes))
        for row, value in zip(rows, expected, strict=True):
            if row["fits"]:
                assert row["objective"] == pytest.approx(value, abs=1e-6)


def test_environment_variables_of_the_original() -> None:
    from kube_scheduler_operator.scheduling.policies.policy import read_arguments

    environ = {"POLICY_OBJECTIVE": "CONSOLIDATE", "NUM_RESOURCES": "3"}
    made = read_arguments("pigeon-holing", {}, environ)
    assert (made.objective, made.num_resources) == ("CONSOLIDATE", 3)
    assert (
        read_arguments("pigeon-holing", {}, {"POLICY_OBJECTIVE": "NONE"}).objective == "A_BINPACK"
    )


def test_demands_count_once_and_the_last_hundred_most() -> None:
    from kube_scheduler_operator.scheduling.policies.builtin.pigeon_holing import Demands

    once, again = Demands(1, each_attempt=False), Demands(1, each_attempt=True)
    one = [1.0]
    for demands in (once, again):
        demands.add("a", [1.0])
        demands.add("b", [3.0])
        demands.add("b", [3.0])
    assert once.variation(one) == pytest.approx(0.5)
    assert again.variation(one) == pytest.approx(np.std([1, 3, 3]) / np.mean([1, 3, 3]))
    for at in range(1000):
        once.add(f"c{at}", [5.0])
    assert once.variation(one) < 0.1
