"""The record of decisions is bounded, and keeps the rejected Pods."""

from __future__ import annotations

from typing import Any

import numpy as np

from kube_scheduler_operator.scheduling.extender.agent import Scores
from kube_scheduler_operator.scheduling.extender.decisions import Decisions
from kube_scheduler_operator.scheduling.extender.wire import Args, ArgsReader
from kube_scheduler_operator.scheduling.policies.policy import Rejections

from .conftest import names_body


def args_of(pod: str, *names: str, uid: str = "u") -> Args:
    metadata = {"name": pod, "namespace": "n", "uid": uid}
    return ArgsReader().read(names_body(*names, pod={"metadata": metadata}))


def decisions(pods: int = 3, **more: Any) -> Decisions:
    return Decisions(pods, lambda: 1.5, **more)


def test_the_oldest_pod_is_removed() -> None:
    memory = decisions()
    for number in range(5):
        memory.filtered("x", args_of(f"p{number}", "a"), None)
    memory.filtered("x", args_of("p2", "a"), None)
    memory.filtered("x", args_of("p5", "a"), None)
    assert memory.pods() == ["n/p5", "n/p2", "n/p4"]


def test_scheduled_pods_do_not_displace_rejected_ones() -> None:
    memory = decisions()
    memory.filtered("x", args_of("stuck", "a"), Rejections({0: "hot"}))
    for number in range(50):
        memory.filtered("x", args_of(f"p{number}", "a"), None)
    assert len(memory) == 4
    reported = memory.explain("n/stuck")
    assert reported is not None
    assert reported["agents"][0]["filter"]["rejected"][0]["reason"] == "hot"
    memory.filtered("x", args_of("stuck", "a"), None)
    assert len(memory) == 3


def test_a_recreated_pod_replaces_the_old_one() -> None:
    memory = decisions()
    memory.filtered("x", args_of("p", "a"), None)
    memory.filtered("y", args_of("p", "a", uid="v"), None)
    reported = memory.explain("n/p")
    assert reported is not None
    assert reported["uid"] == "v"
    assert [agent["agent"] for agent in reported["agents"]] == ["y"]


def test_several_agents_of_one_pod() -> None:
    memory = decisions()
    memory.filtered("x", args_of("p", "a", "b"), Rejections({1: "hot"}, {1}))
    memory.filtered("y", args_of("p", "a"), None)
    memory.scored("x", args_of("p", "a"), Scores(np.array([7])))
    reported = memory.explain("n/p")
    assert reported is not None
    assert [agent["agent"] for agent in reported["agents"]] == ["x", "y"]
    assert reported["agents"][0]["filter"]["at"] == "1970-01-01T00:00:01.500Z"
    last = memory.last("n/p")
    assert last is not None
    assert last.names == ["a", "b"]


def test_very_many_nodes_reduce_the_number_of_pods() -> None:
    memory = decisions(1000, limit=1_000_000)
    names = [f"a-node-with-a-name-{number}" for number in range(5000)]
    for number in range(50):
        memory.filtered("x", args_of(f"p{number}", *names), None)
    assert 1 <= len(memory) <= 10
    assert memory.pods()[0] == "n/p49"


def test_a_very_large_request_is_not_recorded() -> None:
    memory = decisions(limit=100_000)
    memory.filtered("x", args_of("p", "a"), None)
    memory.filtered("x", args_of("q", *["a" * 200] * 200), None)
    large = {"metadata": {"name": "r", "namespace": "n", "uid": "u"}, "x": "y" * 30_000}
    for body in (
        names_body("a", pod=large),
        names_body("a", pod=large).replace(b'"Pod"', b'"pod"'),
    ):
        args = ArgsReader().read(body)
        memory.filtered("x", args, None)
        memory.scored("x", args, Scores(np.array([7])))
    assert memory.pods() == ["n/p"]


def test_a_request_in_another_layout_is_recorded() -> None:
    memory = decisions()
    body = names_body("a", pod={"metadata": {"name": "p", "namespace": "n", "uid": "u"}})
    memory.filtered("x", ArgsReader().read(body.replace(b'"Pod"', b'"pod"')), None)
    last = memory.last("n/p")
    assert last is not None
    assert last.pod.name == "p"


def test_the_record_can_be_reduced_and_disabled() -> None:
    memory = decisions()
    for number in range(3):
        memory.filtered("x", args_of(f"p{number}", "a"), None)
    memory.resize(1)
    assert memory.pods() == ["n/p2"]
    memory.resize(0)
    memory.filtered("x", args_of("p", "a"), None)
    memory.scored("x", args_of("p", "a"), Scores(np.array([7])))
    assert (memory.pods(), memory.explain("n/p"), memory.last("n/p")) == ([], None, None)
