"""When a response waits for events, for how long, and what it contains then."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from kube_scheduler_operator.scheduling.extender import cache_freshness as module
from kube_scheduler_operator.scheduling.extender.cache_freshness import (
    ECHO,
    LONGEST,
    QUIET,
    SAVED,
    CacheFreshness,
)
from kube_scheduler_operator.scheduling.extender.verbs import Filter, VerbContext
from kube_scheduler_operator.scheduling.policies.cluster import Cluster
from kube_scheduler_operator.scheduling.policies.pods import Pod, read_pod

from .conftest import POD, StubPolicy, agent_of, names_body, node, nodes_body

AGENT = "agent"
LATER = 10 * ECHO


class Clock:
    """A clock that advances with each sleep, and events during sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.due: list[tuple[float, Callable[[], None]]] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        for at, happens in [one for one in self.due if one[0] <= self.now]:
            self.due.remove((at, happens))
            happens()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def behind(context: VerbContext, clock: Clock) -> CacheFreshness:
    """The CacheFreshness of the context, with the test's clock."""
    context.freshness = CacheFreshness(context.cluster, clock, clock.sleep)
    return context.freshness


@pytest.fixture
def pod() -> Pod:
    return read_pod(POD)


def other_pod(uid: str) -> Pod:
    return read_pod({"metadata": {"name": uid, "uid": uid}, "spec": {"containers": []}})


def changed(cluster: Cluster, value: str = "1") -> None:
    cluster.set_node(node("a", load=value))


class TestSuspicion:
    def test_a_repeated_rejection_without_events_may_be_stale(
        self, behind: CacheFreshness, clock: Clock, pod: Pod
    ) -> None:
        assert not behind.may_be_stale(AGENT, pod), "it is the first time"
        behind.rejected(AGENT, pod)
        clock.now = LATER
        assert behind.may_be_stale(AGENT, pod)
        assert not behind.may_be_stale("another", pod)
        assert not behind.may_be_stale(AGENT, other_pod("u-2"))

    def test_a_rejection_after_an_event_is_not_stale(
        self, behind: CacheFreshness, clock: Clock, pod: Pod, cluster: Cluster
    ) -> None:
        behind.rejected(AGENT, pod)
        changed(cluster)
        clock.now = LATER
        assert not behind.may_be_stale(AGENT, pod)
        behind.rejected(AGENT, pod)
        assert behind.may_be_stale(AGENT, pod)

    def test_the_retry_after_the_first_rejection_does_not_wait(
        self, behind: CacheFreshness, clock: Clock, pod: Pod
    ) -> None:
        behind.rejected(AGENT, pod)
        clock.now = ECHO * 0.9
        assert not behind.may_be_stale(AGENT, pod)
        behind.rejected(AGENT, pod)
        clock.now = ECHO
        assert behind.may_be_stale(AGENT, pod), "from the first rejection on, not from the last"

    def test_only_the_latest_rejections_are_recorded(
        self, behind: CacheFreshness, clock: Clock, pod: Pod
    ) -> None:
        behind.rejected(AGENT, pod)
        behind.rejected(AGENT, other_pod("old"))
        behind.rejected(AGENT, pod)
        for number in range(module._REMEMBERED - 1):
            behind.rejected(AGENT, other_pod(f"p{number}"))
        clock.now = LATER
        assert behind.may_be_stale(AGENT, pod)
        assert not behind.may_be_stale(AGENT, other_pod("old"))


class TestWaiting:
    async def test_the_wait_ends_with_a_sufficient_event(
        self, behind: CacheFreshness, clock: Clock, cluster: Cluster
    ) -> None:
        clock.due = [(0.01, lambda: changed(cluster))]
        await behind.wait(cluster.version, lambda: True)
        assert clock.now == pytest.approx(0.01, abs=0.003)
        assert behind.waits == [0, 1]

    async def test_an_event_before_the_wait_counts(
        self, behind: CacheFreshness, clock: Clock, cluster: Cluster
    ) -> None:
        looked = cluster.version
        changed(cluster)
        await behind.wait(looked, lambda: True)
        assert clock.now == 0
        assert behind.waits == [0, 1]

    async def test_the_wait_continues_after_an_insufficient_event(
        self, behind: CacheFreshness, clock: Clock, cluster: Cluster
    ) -> None:
        second = 0.005 + QUIET * 0.9
        clock.due = [
            (0.005, lambda: changed(cluster, "1")),
            (second, lambda: changed(cluster, "2")),
        ]
        asked: list[float] = []

        def enough() -> bool:
            asked.append(clock.now)
            return len(asked) == 2

        await behind.wait(cluster.version, enough)
        assert clock.now == pytest.approx(second, abs=0.003)

    async def test_the_wait_ends_when_no_more_events_are_expected(
        self, behind: CacheFreshness, clock: Clock, cluster: Cluster
    ) -> None:
        clock.due = [(0.005, lambda: changed(cluster))]
        await behind.wait(cluster.version, lambda: False)
        assert clock.now == pytest.approx(0.005 + QUIET, abs=0.005)
        assert behind.waits == [0, 1]

    async def test_the_wait_has_a_limit(
        self, behind: CacheFreshness, clock: Clock, cluster: Cluster
    ) -> None:
        await behind.wait(cluster.version, lambda: True)
        assert clock.now == pytest.approx(LONGEST, abs=0.003)
        assert behind.waits == [1, 0]
        clock.due = [
            (
                clock.now + 0.004 * number,
                partial(changed, cluster, str(number)),
            )
            for number in range(100)
        ]
        began = clock.now
        await behind.wait(cluster.version, lambda: False)
        assert clock.now - began == pytest.approx(LONGEST, abs=0.003)

    async def test_waits_without_events_have_a_budget(
        self, behind: CacheFreshness, clock: Clock, cluster: Cluster
    ) -> None:
        pods = [other_pod(f"u{number}") for number in range(200)]
        for one in pods:
            behind.rejected(AGENT, one)
        clock.now = LATER
        waited = 0.0
        for second in range(100):
            for one in pods:  # and all of them are asked about again and again
                if behind.may_be_stale(AGENT, one):
                    began = clock.now
                    await behind.wait(cluster.version, lambda: True)
                    waited += clock.now - began
                behind.rejected(AGENT, one)
            clock.now = LATER + 1.0 + second
        assert waited > 0.04 * 100
        assert waited < 0.05 * 100 + SAVED + LONGEST


Ask = Callable[[bytes], Awaitable[Any]]


@pytest.fixture
def reported(cluster: Cluster) -> StubPolicy:
    return StubPolicy(cluster, reasons={0: "hot", 1: "hot"})


@pytest.fixture
def ask(context: VerbContext, reported: StubPolicy, behind: CacheFreshness) -> Ask:
    """Calls filter and completes its wait."""
    verb = Filter(context, agent_of(reported))

    async def asked(body: bytes) -> Any:
        answer: Any = verb(body)
        return json.loads(answer if isinstance(answer, bytes) else await answer)

    return asked


class TestFilter:
    async def test_the_response_uses_the_latest_view(
        self, ask: Ask, reported: StubPolicy, cluster: Cluster, clock: Clock
    ) -> None:
        body = names_body("a", "b")
        assert (await ask(body))["NodeNames"] == []

        def relieved() -> None:
            reported.reasons = {1: "hot"}
            changed(cluster)

        clock.now = LATER
        clock.due = [(LATER + 0.01, relieved)]
        answer = await ask(body)
        assert answer["NodeNames"] == ["a"]
        assert list(answer["FailedNodes"]) == ["b"]
        assert clock.now < LATER + 0.02

    async def test_without_events_the_response_is_unchanged(
        self, ask: Ask, behind: CacheFreshness, clock: Clock
    ) -> None:
        body = names_body("a", "b")
        first = await ask(body)
        clock.now = LATER
        assert await ask(body) == first
        assert behind.waits == [1, 0]

    async def test_nodes_may_change_during_the_wait(
        self, ask: Ask, reported: StubPolicy, cluster: Cluster, clock: Clock
    ) -> None:
        body = names_body("a", "b")
        await ask(body)

        def gone() -> None:
            cluster.remove_node("a")
            reported.reasons = {0: "hot"}

        clock.now = LATER
        clock.due = [(LATER + 0.01, gone)]
        answer = await ask(body)
        assert answer["NodeNames"] == ["a"], "not known any more: no reason to reject it"
        assert list(answer["FailedNodes"]) == ["b"]

    async def test_a_policy_may_fail_during_the_wait(
        self, context: VerbContext, behind: CacheFreshness, cluster: Cluster, clock: Clock
    ) -> None:
        reported = StubPolicy(cluster, reasons={0: "hot"})
        verb = Filter(context, agent_of(reported, failure_policy="Fail"))
        verb(names_body("a"))
        clock.now = LATER

        def broken() -> None:
            reported.error = RuntimeError("no")
            changed(cluster)

        clock.due = [(LATER + 0.01, broken)]
        answer: Any = verb(names_body("a"))
        assert not isinstance(answer, bytes)
        assert "no" in json.loads(await answer)["Error"]
        assert verb.calls.errors == 1

    async def test_node_data_of_requests_is_never_stale(
        self, ask: Ask, context: VerbContext, behind: CacheFreshness, clock: Clock
    ) -> None:
        context.learn = lambda _items: None
        await ask(names_body("a", "b"))
        clock.now = LATER
        assert (await ask(names_body("a", "b")))["NodeNames"] == []
        assert behind.waits == [0, 0]

    async def test_an_agent_that_accepts_all_nodes_never_waits(
        self, ask: Ask, reported: StubPolicy, behind: CacheFreshness, clock: Clock
    ) -> None:
        reported.reasons = {}
        for clock.now in (0.0, LATER, 2 * LATER):
            await ask(names_body("a", "b"))
        await ask(nodes_body(node("a"), pod={"metadata": {"name": "x"}}))
        assert behind.waits == [0, 0]
