"""Properties of every policy with any cluster and any events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube_scheduler_operator.scheduling.policies.cluster import Cluster
from kube_scheduler_operator.scheduling.policies.learned_values import CONFIG_MAP, LearnedValues
from kube_scheduler_operator.scheduling.policies.node_loads import FORMATS
from kube_scheduler_operator.scheduling.policies.node_policy import NodePolicy
from kube_scheduler_operator.scheduling.policies.pods import read_pod
from kube_scheduler_operator.scheduling.policies.policy import (
    BEST,
    Policy,
    catalogue,
    make,
    policy_class,
)

from .playing import Clock, node, pod, rfc3339, usage

BUILT_IN = sorted(name for name, entry in catalogue().items() if not entry.distribution)
EXAMPLES = settings(max_examples=25, deadline=None)

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in BUILT_IN),
    ("safe-overload", {"compatibility": True}),
    ("safe-balance", {"annotations": "safe"}),
    ("pigeon-holing", {"objective": "LOAD_BALANCE", "numResources": 5}),
    ("pigeon-holing", {"objective": "CONSOLIDATE"}),
    ("pigeon-holing", {"numResources": 1}),
    ("load-aware", {"compatibility": True, "annotations": "crane", "timeZone": "UTC"}),
    ("load-aware", {"ownDemand": False, "variance": 0}),
    ("usage-thresholds", {"dominantResourceWeight": 2}),
]
every_policy = pytest.mark.parametrize(
    ("name", "arguments"), VARIANTS, ids=[f"{n}-{'-'.join(a)}" for n, a in VARIANTS]
)

FRACTIONS = ["cpu_usage_avg_5m", "cpu_usage_max_avg_1h", "cpu_usage_max_avg_1d",
             "mem_usage_avg_5m", "mem_usage_max_avg_1h", "mem_usage_max_avg_1d"]  # fmt: skip
shares = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.65, 0.7, 0.9, 1.0, 1.3]) | st.floats(0, 1.5)
amounts = st.sampled_from([0.0, 100.0, 1000.0, 2000.0, 4000.0]) | st.floats(0, 1e10)
strange = st.sampled_from([-1.0, 1e300, float("nan"), float("inf")])


@st.composite
def figures(draw: st.DrawFn) -> dict[str, float]:
    found = draw(st.dictionaries(st.sampled_from(FRACTIONS), shares | strange, max_size=6))
    for resource, most in (("cpu", 4000.0), ("memory", 2.0**33)):
        for what in ("mean", "std", "forecast"):
            if draw(st.booleans()):
                found[f"free_{resource}_{what}"] = most * draw(shares)
    if draw(st.booleans()):
        found["congestion"] = draw(st.floats(-10, 200) | strange)
    return found


def written_figures(output: Mapping[str, float], at: float) -> dict[str, str]:
    reported = {**usage(at, **output)}
    for name, value in output.items():
        reported[name] = f"{value:.5f},{rfc3339(at)}"
    for name in ("cpu", "memory"):
        for what in ("mean", "std"):
            if f"free_{name}_{what}" in output:
                reported[f"{what}-free-{name}"] = str(output[f"free_{name}_{what}"])
    return reported


NODES = list("abcdef")
nodes = st.builds(
    lambda name, cpu, memory, output, ago: ("node", name, cpu, memory, output, ago),
    st.sampled_from(NODES),
    st.sampled_from(["4", "8", "500m", "0"]),
    st.sampled_from(["8Gi", "1Gi"]),
    figures(),
    st.sampled_from([0.0, 30.0, 400.0]),
)
pods = st.builds(
    lambda key, name, cpu, memory, limit: ("pod", key, name, cpu, memory, limit),
    st.sampled_from([f"p{at}" for at in range(8)]),
    st.sampled_from(NODES),
    st.sampled_from([None, "100m", "1", "3500m"]),
    st.sampled_from([None, "64Mi", "2Gi"]),
    st.sampled_from([None, "2", "6"]),
)
gone = st.tuples(st.just("gone"), st.sampled_from([f"p{at}" for at in range(8)])) | st.tuples(
    st.just("no node"), st.sampled_from(NODES)
)
time = st.tuples(st.just("time"), st.sampled_from([1.0, 45.0, 100.0, 500.0]))
steps = st.lists(nodes | pods | gone | time, max_size=25)
ASKED = [
    pod("x1", "250m", "512Mi", labels={"app": "web"}),
    pod("x2", "2", "1Gi", limits={"cpu": "3", "memory": "2Gi"}),
    pod("x3", owner="DaemonSet"),
]


class World:
    """A cluster with its events."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.cluster = Cluster(self.clock)
        self.nodes: dict[str, Any] = {}
        self.pods: dict[str, Any] = {}
        self.measured: dict[str, float] = {}

    def happens(self, step: Any) -> None:
        what, *rest = step
        if what == "node":
            name, cpu, memory, output, ago = rest
            # A measurement is never older than the one before it.
            at = max(self.clock.now - ago, self.measured.get(name, 0.0))
            self.measured[name] = at
            self.nodes[name] = node(name, cpu, memory, written_figures(output, at))
            self.cluster.set_node(self.nodes[name])
        elif what == "pod":
            key, name, cpu, memory, limit = rest
            limits = {"cpu": limit} if limit else None
            if key in self.pods:
                return
            self.pods[key] = pod(key, cpu, memory, on=name, bound=self.clock.now, limits=limits)
            self.cluster.set_pod(self.pods[key])
        elif what == "gone":
            if self.pods.pop(rest[0], None):
                self.cluster.remove_pod({"metadata": {"uid": f"uid-{rest[0]}"}})
        elif what == "no node":
            if self.nodes.pop(rest[0], None):
                self.cluster.remove_node(rest[0])
        else:
            self.clock.now += rest[0]

    def again(self) -> Cluster:
        """The same cluster in a new process."""
        cluster = Cluster(self.clock)
        for each in self.pods.values():
            cluster.set_pod(each)
        for each in reversed(self.nodes.values()):
            cluster.set_node(each)
        return cluster


def made(name: str, arguments: Mapping[str, Any], cluster: Cluster) -> Policy:
    policy = make(name, arguments, cluster)
    state = LearnedValues()
    for at, each in enumerate(NODES[:4]):
        for _ in range(at):
            state.reward("web", each, 0.0)
    policy.on_config_map("", CONFIG_MAP, state.data())
    return policy


def answers(policy: Policy, names: list[str]) -> list[tuple[dict[str, int], dict[str, str]]]:
    """Scores and rejections by node for each requested Pod."""
    indices = np.array([policy.cluster.index[name] for name in names], np.intp)
    found = []
    for asked in map(read_pod, ASKED):
        rejected = policy.filter(asked, indices)
        scores = policy.score(asked, indices)
        listed = [0] * len(names) if scores is None else [int(each) for each in scores]
        if scores is not None and len(names):
            assert scores.dtype.kind == "i"
        assert len(listed) == len(names)
        assert all(0 <= score <= BEST for score in listed)
        reasons = {names[at]: why for at, why in (rejected.reasons if rejected else {}).items()}
        # kube-scheduler takes reasons for formats of printf.
        assert all(why and "%" not in why for why in reasons.values())
        if rejected is not None:
            assert rejected.unresolvable <= set(rejected.reasons)
        found.append((dict(zip(names, listed, strict=True)), reasons))
    return found


@every_policy
@EXAMPLES
@given(steps, st.randoms(use_true_random=False))
def test_results_equal_those_of_a_new_process(
    name: str, arguments: dict[str, Any], steps: list[Any], random: Any
) -> None:
    if name == "load-aware" and not arguments.get("compatibility"):
        # Pods that have started and gone are remembered; a new program knows only those that are.
        arguments = {**arguments, "hotValue": []}
    world = World()
    policy = made(name, arguments, world.cluster)
    for step in steps:
        world.happens(step)
        if random.random() < 0.5:  # or else several things have happened when it is asked again
            answers(policy, sorted(world.cluster.index))
    names = sorted(world.cluster.index)
    fresh = made(name, arguments, world.again())
    for each in (policy, fresh):  # which pods were asked for matters to pigeon-holing
        answers(each, names)
    expected = answers(fresh, names)
    assert answers(policy, names) == expected
    random.shuffle(names)
    assert answers(policy, names) == expected
    rows = policy.explain(
        read_pod(ASKED[0]), np.array([world.cluster.index[n] for n in names], np.intp)
    )
    assert [row["node"] for row in rows] == names


SINGLY = [each for each in VARIANTS if getattr(policy_class(each[0]), "singly", False)]


@pytest.mark.parametrize(("name", "arguments"), SINGLY)
@EXAMPLES
@given(steps)
def test_a_single_node_has_the_result_that_it_has_among_many(
    name: str, arguments: dict[str, Any], steps: list[Any]
) -> None:
    world = World()
    policy = make(name, arguments, world.cluster)
    assert isinstance(policy, NodePolicy)
    for step in steps:
        world.happens(step)
    policy.refresh()
    every = np.arange(len(world.cluster))
    for asked in map(read_pod, ASKED):
        kind = policy.kind(asked)
        one = [policy.score_one(kind, index) for index in every.tolist()]
        np.testing.assert_array_equal(policy.scores_of(kind, every), one)
        kind = policy.filter_kind(asked)
        rejected = [policy.rejects_one(kind, index) for index in every.tolist()]
        assert policy.rejects(kind, every).tolist() == rejected


def test_few_and_many_changes_have_the_same_result() -> None:
    clock = Clock()
    cluster = Cluster(clock)
    everything = [f"n{at:03}" for at in range(100)]

    def measured(at: int) -> None:
        share = (at * 37 % 100) / 100
        varies = {"free_cpu_std": 9.0 * at, "free_memory_std": at * 2.0**24}
        output = usage(clock.now, **dict.fromkeys(FRACTIONS, share), **varies)
        cluster.set_node(node(everything[at], annotations=output))

    for at in range(100):
        cluster.set_node(node(everything[at]))
    policy = make("load-aware", {}, cluster)
    answers(policy, everything)
    answers(policy, everything)
    for at in range(100):  # one by one
        measured(at)
        answers(policy, everything)
    few = answers(policy, everything)
    clock.now += 1000.0  # all are too old now, at once
    assert answers(policy, everything) != few
    for at in range(100):
        measured(at)
    assert answers(policy, everything) == few
    assert few == answers(make("load-aware", {}, cluster), everything)


@EXAMPLES
@given(steps)
def test_hot_values_equal_those_of_a_new_process(steps: list[Any]) -> None:
    world = World()
    arguments = {"inFlight": False, "ownDemand": False}
    policy = made("load-aware", arguments, world.cluster)
    for step in steps:
        if step[0] not in ("gone", "no node"):
            world.happens(step)
            answers(policy, sorted(world.cluster.index))
    names = sorted(world.cluster.index)
    assert answers(policy, names) == answers(made("load-aware", arguments, world.again()), names)


@every_policy
@EXAMPLES
@given(steps)
def test_a_closed_policy_has_no_callbacks(
    name: str, arguments: dict[str, Any], steps: list[Any]
) -> None:
    world = World()
    policy = made(name, arguments, world.cluster)
    policy.close()
    for step in steps:
        world.happens(step)
    assert not world.cluster._node_callbacks
    assert not world.cluster._pod_callbacks
    assert not world.cluster._name_callbacks


# Where more use of a figure must not make a node score better, all else being equal.
MONOTONE = [
    ("congestion", "congestion", 1.0, {}),
    ("load-aware", "cpu_usage_avg_5m", 0.01, {}),
    ("load-aware", "mem_usage_max_avg_1d", 0.01, {}),
    ("load-variation-risk-balancing", "cpu_usage_avg_5m", 0.01, {}),
    ("load-variation-risk-balancing", "free_cpu_std", 40.0, {"cpu_usage_avg_5m": 0.3}),
    ("safe-balance", "free_cpu_mean", -40.0, {}),
    ("safe-balance", "free_cpu_std", 40.0, {"free_cpu_mean": 2000.0}),
    ("safe-overload", "free_cpu_mean", -40.0, {}),
    ("usage-thresholds", "cpu_usage_avg_5m", 0.01, {}),
]


@pytest.mark.parametrize(("name", "figure", "unit", "others"), MONOTONE)
@EXAMPLES
@given(st.lists(st.integers(0, 100), min_size=2, max_size=8), st.sampled_from(ASKED[:2]))
def test_more_load_never_increases_the_score(
    name: str, figure: str, unit: float, others: dict[str, float], levels: list[int], asked: Any
) -> None:
    cluster = Cluster(Clock())
    for at, level in enumerate(sorted(levels)):
        output = {**others, figure: unit * level if unit > 0 else -100 * unit + unit * level}
        cluster.set_node(node(f"n{at}", annotations=usage(**output)))
    policy = made(name, {}, cluster)
    scores = policy.score(read_pod(asked), np.arange(len(levels)))
    assert scores is not None
    assert list(scores) == sorted(scores, reverse=True)
    rejected = policy.filter(read_pod(asked), np.arange(len(levels)))
    positions = sorted(rejected.reasons) if rejected else []
    assert positions == list(range(len(levels) - len(positions), len(levels)))


@EXAMPLES
@given(st.dictionaries(st.sampled_from([*FRACTIONS, "congestion-factor", "mean-free-cpu",
       "node_hot_value", "requested-cpu", next(iter(usage()))]), st.text(max_size=30)),
       st.sampled_from(VARIANTS), st.sampled_from(FORMATS))  # fmt: skip
def test_arbitrary_annotations_are_accepted(
    output: dict[str, str], variant: tuple[str, dict[str, Any]], family: str
) -> None:
    name, arguments = variant
    cluster = Cluster(Clock())
    cluster.set_node(node("a", annotations=output))
    if name == "pigeon-holing":
        arguments = {**arguments, "usage": "annotations"}
    elif name == "congestion":
        arguments = {"annotations": "safe" if family == "safe" else "own"}
    answers(made(name, arguments, cluster), ["a"])
