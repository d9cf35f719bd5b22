"""A burst of Pods: kube-scheduler places dozens of them before the first binding is observed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from kube_scheduler_operator.scheduling.extender.decisions import Decisions
from kube_scheduler_operator.scheduling.extender.routes import verbs_of
from kube_scheduler_operator.scheduling.extender.verbs import Verb, VerbContext
from kube_scheduler_operator.scheduling.extender.wire import Fragments
from kube_scheduler_operator.scheduling.policies.cluster import ASSUMED_SECONDS, Cluster
from kube_scheduler_operator.scheduling.policies.policy import make

from ..policies.playing import NOW, Clock, node, pod, usage
from .conftest import agent_of, names_body

NAMES = ("a", "b", "c")
Choose = Callable[[Mapping[str, int]], str]
"""The node that kube-scheduler chooses, from the extender's scores of the nodes that are left."""


class Scheduler:
    """Calls an agent as kube-scheduler does, over idle nodes of two CPUs."""

    def __init__(self, policy: str, choose: Choose, **arguments: Any) -> None:
        self.clock, self.choose = Clock(), choose
        self.cluster = Cluster(self.clock)
        for name in NAMES:
            idle = usage(cpu_usage_avg_5m=0.05, mem_usage_avg_5m=0.05)
            self.cluster.set_node(node(name, "2", "32Gi", annotations=idle))
        context = VerbContext(
            self.cluster, Fragments(self.cluster), Decisions(10, self.cluster.now)
        )
        agent = agent_of(make(policy, arguments, self.cluster))
        self._verbs: Mapping[bytes, Verb] = verbs_of([agent], context, None)  # type: ignore[arg-type]  # no test binds

    def place(self, obj: Mapping[str, Any], names: Sequence[str] = NAMES) -> str:
        """Return the chosen node; empty if the agent leaves none."""
        left = self._call("filter", names_body(*names, pod=obj))["NodeNames"]
        if len(left) < 2:
            return "".join(left)
        scores = self._call("prioritize", names_body(*left, pod=obj))
        return self.choose({each["Host"]: each["Score"] for each in scores})

    def bind(self, name: str, on: str) -> None:
        self.cluster.set_pod(pod(name, on=on, bound=self.clock.now))

    def _call(self, verb: str, body: bytes) -> Any:
        answer = self._verbs[f"/agent/{verb}".encode()](body)
        assert isinstance(answer, bytes)
        return json.loads(answer)


def by_score() -> Choose:
    """The extender's weight decides; of equal nodes the one with the fewest Pods."""
    placed = Counter[str]()

    def choose(scores: Mapping[str, int]) -> str:
        name = min(scores, key=lambda name: (-scores[name], placed[name]))
        placed[name] += 1
        return name

    return choose


def in_circle() -> Choose:
    """kube-scheduler's own plugins decide, which spread: the extender's weight is low."""
    choose = by_score()
    return lambda scores: choose(dict.fromkeys(scores, 0))


@pytest.mark.parametrize("pods", [30, 300])
@pytest.mark.parametrize("choose", [by_score, in_circle])
def test_a_burst_does_not_exceed_the_load_limit(pods: int, choose: Callable[[], Choose]) -> None:
    """A Pod without requests counts 250m, an eighth of a node: five of them exceed 65 percent."""
    scheduler = Scheduler("load-aware", choose())
    placed = Counter(scheduler.place(pod(f"p{number}")) for number in range(pods))
    waiting = placed.pop("")
    assert sorted(placed) == list(NAMES)
    assert max(placed.values()) <= 6, placed
    assert placed.total() == pods - waiting == 15


def test_an_observed_binding_replaces_what_was_assumed() -> None:
    scheduler = Scheduler("load-aware", by_score())
    for number in range(5):
        placed = scheduler.place(pod(f"p{number}"), ["a"])
        assert placed == "a"
    assert scheduler.place(pod("refused"), ["a"]) == ""
    scheduler.bind("p0", "b")  # another scheduler was faster
    assert scheduler.place(pod("p5"), ["a"]) == "a"
    for number in range(1, 6):
        scheduler.bind(f"p{number}", "a")
    scheduler.clock.now += 2 * ASSUMED_SECONDS
    assert scheduler.place(pod("refused"), ["a"]) == "", "the bound ones stay"


def test_a_pod_that_is_tried_again_does_not_stand_in_its_own_way() -> None:
    scheduler = Scheduler("load-aware", by_score())
    for number in range(5):
        scheduler.place(pod(f"p{number}"), ["a"])
    assert scheduler.place(pod("p4"), ["a"]) == "a"
    assert scheduler.place(pod("p5"), ["a"]) == ""


def test_a_pod_that_is_not_bound_counts_for_seconds_only() -> None:
    scheduler = Scheduler("load-aware", by_score())
    for number in range(5):
        scheduler.place(pod(f"p{number}"), ["a"])
    scheduler.clock.now = NOW + ASSUMED_SECONDS - 1
    assert scheduler.place(pod("p5"), ["a"]) == ""
    scheduler.clock.now = NOW + ASSUMED_SECONDS
    assert scheduler.place(pod("p5"), ["a"]) == "a"


def test_a_policy_that_packs_keeps_a_burst_together() -> None:
    scheduler = Scheduler("pigeon-holing", by_score(), objective="CONSOLIDATE")
    placed = Counter(scheduler.place(pod(f"p{number}", cpu="100m")) for number in range(9))
    assert max(placed.values()) >= 8, "chance decides only where the first one goes"


def test_without_watches_nothing_is_assumed() -> None:
    """Bindings would never be observed."""
    scheduler = Scheduler("load-aware", by_score())
    context = VerbContext(
        scheduler.cluster, Fragments(scheduler.cluster), Decisions(10, scheduler.cluster.now)
    )
    context.learn = lambda _items: None
    agent = agent_of(make("load-aware", {}, scheduler.cluster))
    verbs = verbs_of([agent], context, None)  # type: ignore[arg-type]  # no test binds
    verbs[b"/agent/prioritize"](names_body(*NAMES, pod=pod("p")))
    on_nodes = [list(scheduler.cluster.pods_on(index)) for index in range(len(scheduler.cluster))]
    assert on_nodes == [[], [], []]
