"""Agents combine the results of their policies, valid or not."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.scheduling.extender.agent import PolicyFailedError
from kube_scheduler_operator.scheduling.extender.config import PodSelector
from kube_scheduler_operator.scheduling.extender.verbs import VerbContext
from kube_scheduler_operator.scheduling.policies.cluster import Cluster

from .conftest import POD, StubPolicy, agent_of, names_body, node


@pytest.fixture
def ask(context: VerbContext) -> Any:
    def located(*names: str, pod: Any = POD) -> Any:
        return context.read(names_body(*names, pod=pod))

    return located


def test_all_policies_must_accept_a_node(cluster: Cluster, ask: Any) -> None:
    first = StubPolicy(cluster, reasons={0: "hot", 2: "full"}, figures={0: "0.9", 2: "1.5"})
    second = StubPolicy(
        cluster, reasons={1: "old", 2: "gone"}, unresolvable=[2], figures={1: "", 2: "7"}
    )
    agent = agent_of(first, second)
    found = agent.filter(ask("a", "b", "c"))
    assert found is not None
    assert found.reasons == {0: "p0: hot", 1: "p1: old", 2: "p0: full; p1: gone"}
    assert found.describe(2) == "p0: full; p1: gone (1.5; 7)"
    assert [found.describe(at) for at in (0, 1)] == ["p0: hot (0.9)", "p1: old"]
    assert found.unresolvable == {2}
    assert [member.rejected for member in agent.members] == [2, 2]


def test_no_rejections_are_none(cluster: Cluster, ask: Any) -> None:
    assert agent_of(StubPolicy(cluster), StubPolicy(cluster)).filter(ask("a", "b")) is None


def test_scores_are_the_weighted_mean_with_halves_rounded_up(cluster: Cluster, ask: Any) -> None:
    first, second = (
        StubPolicy(cluster, np.array([0, 5, 10])),
        StubPolicy(cluster, np.array([10, 6, 10])),
    )
    assert agent_of(first, second).score(ask("a", "b", "c")).known.tolist() == [5, 6, 10]
    weighted = agent_of((first, 1), (second, 10)).score(ask("a", "b", "c"))
    assert weighted.known.tolist() == [9, 6, 10]
    assert [(name, weight) for name, weight, _ in weighted.parts] == [("p0", 1), ("p1", 10)]


def test_a_policy_without_scores_is_skipped(cluster: Cluster, ask: Any) -> None:
    agent = agent_of((StubPolicy(cluster, None), 100), StubPolicy(cluster, np.array([3])))
    assert agent.score(ask("a")).known.tolist() == [3]
    assert agent_of(StubPolicy(cluster, None)).score(ask("a", "b")).known.tolist() == [0, 0]


def test_a_policy_with_weight_zero_only_filters(cluster: Cluster, ask: Any) -> None:
    silent = StubPolicy(cluster, np.array([10, 0]), reasons={1: "full"})
    agent = agent_of((silent, 0), StubPolicy(cluster, np.array([1, 2])))
    assert agent.score(ask("a", "b")).known.tolist() == [1, 2]
    rejected = agent.filter(ask("a", "b"))
    assert rejected is not None
    assert rejected.reasons == {1: "p0: full"}
    assert agent_of((silent, 0)).score(ask("a", "b")).parts == []


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (np.array([-3, 11, 5]), [0, 10, 5]),
        ([1, 2, 3], [1, 2, 3]),
        (np.array([np.nan, np.inf, -np.inf]), [0, 10, 0]),
        (np.array([1.4, 1.6, 99.0]), [1, 2, 10]),
        (np.array([1, 2, 3], np.int8), [1, 2, 3]),
        (np.array([200, 0, 1], np.uint8), [10, 0, 1]),
    ],
)
def test_scores_are_clipped_to_the_range(
    cluster: Cluster, ask: Any, output: Any, expected: list[int]
) -> None:
    scores = agent_of(StubPolicy(cluster, output)).score(ask("a", "b", "c"))
    assert scores.known.tolist() == expected
    assert scores.known.dtype == np.intp


@given(st.lists(st.floats() | st.integers(-(2**70), 2**70), min_size=3, max_size=3))
def test_arbitrary_scores_stay_in_range(output: list[Any]) -> None:
    cluster = Cluster(lambda: 0.0)
    for name in "abc":
        cluster.set_node(node(name))
    from kube_scheduler_operator.scheduling.extender.wire import ArgsReader

    args = ArgsReader().read(names_body("a", "b", "c"))
    args.locate(cluster)
    scores = agent_of(StubPolicy(cluster, output)).score(args)
    assert all(type(s) is int and 0 <= s <= 10 for s in scores.all(args))


def test_a_policy_that_raises_is_skipped(
    cluster: Cluster, ask: Any, caplog: pytest.LogCaptureFixture
) -> None:
    broken = StubPolicy(cluster, error=ZeroDivisionError("oops"))
    agent = agent_of(broken, StubPolicy(cluster, np.array([4, 4]), reasons={1: "hot"}))
    found = agent.filter(ask("a", "b"))
    assert found is not None
    assert found.reasons == {1: "p1: hot"}
    assert agent.score(ask("a", "b")).known.tolist() == [4, 4]
    assert agent.members[0].errors == 2
    assert caplog.text.count("A policy failed") == 1  # the next one in a minute


def test_errors_are_logged_at_intervals(
    cluster: Cluster, ask: Any, caplog: pytest.LogCaptureFixture
) -> None:
    now = [0.0]
    agent = agent_of(StubPolicy(cluster, error=ValueError("oops")), clock=lambda: now[0])
    for now[0] in (0.0, 59.0, 61.0):
        agent.filter(ask("a"))
    assert caplog.text.count("A policy failed") == 2


@pytest.mark.parametrize(
    "policy",
    [
        {"scores": [1]},
        {"scores": [[1, 2]]},
        {"scores": "nonsense"},
        {"scores": ["a", "b"]},
        {"reasons": {2: "no such node"}},
        {"reasons": {-1: "no such node"}},
        {"reasons": {"a": "no position"}},
    ],
)
def test_a_policy_with_an_invalid_result_is_skipped(
    cluster: Cluster, ask: Any, policy: dict[str, Any]
) -> None:
    agent = agent_of(StubPolicy(cluster, **policy))
    assert agent.filter(ask("a", "b")) is None
    assert agent.score(ask("a", "b")).known.tolist() == [0, 0]
    assert agent.members[0].errors >= 1


def test_failure_policy_fail_fails_the_call(cluster: Cluster, ask: Any) -> None:
    agent = agent_of(StubPolicy(cluster, error=ValueError("oops")), failure_policy="Fail")
    with pytest.raises(PolicyFailedError, match="policy p0 failed: ValueError"):
        agent.filter(ask("a"))
    with pytest.raises(PolicyFailedError):
        agent.score(ask("a"))


def test_unknown_nodes_are_accepted_and_get_the_median(cluster: Cluster, ask: Any) -> None:
    policy = StubPolicy(
        cluster, lambda n: np.array([2, 9, 7][:n]), reasons={0: "hot"},
        figures={0: "0.9", 2: "of one that is not rejected", 99: "of none"},
    )  # fmt: skip
    args = ask("x", "c", "y", "a", "b")
    found = agent_of(policy).filter(args)
    assert found is not None
    assert found.reasons == {1: "p0: hot"}
    assert found.figures == {1: "0.9"}
    assert policy.asked == [["c", "a", "b"]]
    assert agent_of(policy).score(args).all(args) == [7, 2, 7, 9, 7]


def test_only_unknown_nodes_get_equal_scores(cluster: Cluster, ask: Any) -> None:
    policy = StubPolicy(cluster, lambda n: np.array([2] * n), reasons={0: "hot"})
    args = ask("x", "y")
    assert agent_of(policy).filter(args) is None
    assert agent_of(policy).score(args).all(args) == [0, 0]
    assert policy.asked == []


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        (PodSelector(), True),
        (PodSelector(frozenset(["mine", "other"])), True),
        (PodSelector(frozenset(["other"])), False),
        (PodSelector(match_labels={"app": "web"}), True),
        (PodSelector(match_labels={"app": "web", "tier": "x"}), False),
        (PodSelector(frozenset(["mine"]), {"app": "db"}), False),
    ],
)
def test_pods_outside_the_selector_are_accepted_everywhere(
    cluster: Cluster, ask: Any, selector: PodSelector, selected: bool
) -> None:
    policy = StubPolicy(cluster, np.array([3, 4]), reasons={0: "hot"})
    agent = agent_of(policy, selector=selector)
    args = ask("a", "b")
    assert (agent.filter(args) is not None) == selected
    assert agent.score(args).all(args) == ([3, 4] if selected else [0, 0])
    assert bool(policy.asked) == selected


def test_a_pod_without_scheduler_name_belongs_to_the_default_scheduler(
    cluster: Cluster, ask: Any
) -> None:
    selector = PodSelector(frozenset(["default-scheduler"]))
    agent = agent_of(StubPolicy(cluster, reasons={0: "hot"}), selector=selector)
    assert agent.filter(ask("a", pod={"metadata": {"name": "p"}})) is not None


def test_a_failed_explanation_does_not_affect_others(
    cluster: Cluster, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = agent_of(StubPolicy(cluster), StubPolicy(cluster))
    monkeypatch.setattr(agent.members[0].policy, "explain", lambda *_: 1 / 0)
    reported = agent.explain(ask("a", "b"))
    assert reported == {"p1": [{"node": "a"}, {"node": "b"}]}
    json.dumps(reported)
