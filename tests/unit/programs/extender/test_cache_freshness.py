"""When an answer waits for news, how long, and what it says then."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kube_scheduler_operator.policies.cluster import Cluster
from kube_scheduler_operator.policies.pods import Pod, read_pod
from kube_scheduler_operator.programs.extender import cache_freshness as module
from kube_scheduler_operator.programs.extender.cache_freshness import (
    ECHO,
    LONGEST,
    QUIET,
    SAVED,
    Behind,
)
from kube_scheduler_operator.programs.extender.verbs import Context, Filter

from .conftest import POD, Told, agent_of, names_body, node, nodes_body

AGENT = "agent"
LATER = 10 * ECHO


class Clock:
    """Time that passes when somebody sleeps, and what happens meanwhile."""

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
def behind(context: Context, clock: Clock) -> Behind:
    """Of the context, from now on."""
    context.behind = Behind(context.cluster, clock, clock.sleep)
    return context.behind


@pytest.fixture
def pod() -> Pod:
    return read_pod(POD)


def other_pod(uid: str) -> Pod:
    return read_pod({"metadata": {"name": uid, "uid": uid}, "spec": {"containers": []}})


def changed(cluster: Cluster, value: str = "1") -> None:
    cluster.set_node(node("a", load=value))


class TestSuspicion:
    def test_a_pod_that_is_rejected_again_while_nothing_has_changed(
        self, behind: Behind, clock: Clock, pod: Pod
    ) -> None:
        assert not behind.suspects(AGENT, pod), "it is the first time"
        behind.rejected(AGENT, pod)
        clock.now = LATER
        assert behind.suspects(AGENT, pod)
        assert not behind.suspects("another", pod)
        assert not behind.suspects(AGENT, other_pod("u-2"))

    def test_what_has_changed_since_is_known(
        self, behind: Behind, clock: Clock, pod: Pod, cluster: Cluster
    ) -> None:
        behind.rejected(AGENT, pod)
        changed(cluster)
        clock.now = LATER
        assert not behind.suspects(AGENT, pod)
        behind.rejected(AGENT, pod)
        assert behind.suspects(AGENT, pod)

    def test_kube_scheduler_asks_once_more_by_itself(
        self, behind: Behind, clock: Clock, pod: Pod
    ) -> None:
        behind.rejected(AGENT, pod)
        clock.now = ECHO * 0.9
        assert not behind.suspects(AGENT, pod)
        behind.rejected(AGENT, pod)
        clock.now = ECHO
        assert behind.suspects(AGENT, pod), "from the first rejection on, not from the last"

    def test_those_that_were_rejected_last_are_remembered(
        self, behind: Behind, clock: Clock, pod: Pod
    ) -> None:
        behind.rejected(AGENT, pod)
        behind.rejected(AGENT, other_pod("old"))
        behind.rejected(AGENT, pod)
        for number in range(module._REMEMBERED - 1):
            behind.rejected(AGENT, other_pod(f"p{number}"))
        clock.now = LATER
        assert behind.suspects(AGENT, pod)
        assert not behind.suspects(AGENT, other_pod("old"))


class TestWaiting:
    async def test_it_ends_with_the_news_that_is_enough(
        self, behind: Behind, clock: Clock, cluster: Cluster
    ) -> None:
        clock.due = [(0.01, lambda: changed(cluster))]
        await behind.wait(cluster.version, lambda: True)
        assert clock.now == pytest.approx(0.01, abs=0.003)
        assert behind.waits == [0, 1]

    async def test_news_that_came_before_it_began_is_news(
        self, behind: Behind, clock: Clock, cluster: Cluster
    ) -> None:
        looked = cluster.version
        changed(cluster)
        await behind.wait(looked, lambda: True)
        assert clock.now == 0
        assert behind.waits == [0, 1]

    async def test_where_one_change_is_not_enough_the_next_may_be(
        self, behind: Behind, clock: Clock, cluster: Cluster
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

    async def test_it_ends_when_no_more_news_is_to_be_expected(
        self, behind: Behind, clock: Clock, cluster: Cluster
    ) -> None:
        clock.due = [(0.005, lambda: changed(cluster))]
        await behind.wait(cluster.version, lambda: False)
        assert clock.now == pytest.approx(0.005 + QUIET, abs=0.005)
        assert behind.waits == [0, 1]

    async def test_it_does_not_wait_longer_than_it_may(
        self, behind: Behind, clock: Clock, cluster: Cluster
    ) -> None:
        await behind.wait(cluster.version, lambda: True)
        assert clock.now == pytest.approx(LONGEST, abs=0.003)
        assert behind.waits == [1, 0]
        clock.due = [
            (clock.now + 0.004 * number, lambda number=number: changed(cluster, str(number)))
            for number in range(100)
        ]
        began = clock.now
        await behind.wait(cluster.version, lambda: False)
        assert clock.now - began == pytest.approx(LONGEST, abs=0.003)

    async def test_waiting_in_vain_has_a_budget(
        self, behind: Behind, clock: Clock, cluster: Cluster
    ) -> None:
        pods = [other_pod(f"u{number}") for number in range(200)]
        for one in pods:
            behind.rejected(AGENT, one)
        clock.now = LATER
        waited = 0.0
        for second in range(100):
            for one in pods:  # and all of them are asked about again and again
                if behind.suspects(AGENT, one):
                    began = clock.now
                    await behind.wait(cluster.version, lambda: True)
                    waited += clock.now - began
                behind.rejected(AGENT, one)
            clock.now = LATER + 1.0 + second
        assert waited > 0.04 * 100
        assert waited < 0.05 * 100 + SAVED + LONGEST


Ask = Callable[[bytes], Awaitable[Any]]


@pytest.fixture
def told(cluster: Cluster) -> Told:
    return Told(cluster, reasons={0: "hot", 1: "hot"})


@pytest.fixture
def ask(context: Context, told: Told, behind: Behind) -> Ask:
    """Asks filter; what had to wait has waited."""
    verb = Filter(context, agent_of(told))

    async def asked(body: bytes) -> Any:
        answer = verb(body)
        return json.loads(answer if isinstance(answer, bytes) else await answer)  # type: ignore[arg-type]

    return asked


class TestFilter:
    async def test_the_answer_is_by_what_is_known_when_it_is_given(
        self, ask: Ask, told: Told, cluster: Cluster, clock: Clock
    ) -> None:
        body = names_body("a", "b")
        assert (await ask(body))["NodeNames"] == []

        def relieved() -> None:
            told.reasons = {1: "hot"}
            changed(cluster)

        clock.now = LATER
        clock.due = [(LATER + 0.01, relieved)]
        answer = await ask(body)
        assert answer["NodeNames"] == ["a"]
        assert list(answer["FailedNodes"]) == ["b"]
        assert clock.now < LATER + 0.02

    async def test_without_news_it_is_what_it_would_have_been(
        self, ask: Ask, behind: Behind, clock: Clock
    ) -> None:
        body = names_body("a", "b")
        first = await ask(body)
        clock.now = LATER
        assert await ask(body) == first
        assert behind.waits == [1, 0]

    async def test_nodes_may_come_and_go_meanwhile(
        self, ask: Ask, told: Told, cluster: Cluster, clock: Clock
    ) -> None:
        body = names_body("a", "b")
        await ask(body)

        def gone() -> None:
            cluster.remove_node("a")
            told.reasons = {0: "hot"}

        clock.now = LATER
        clock.due = [(LATER + 0.01, gone)]
        answer = await ask(body)
        assert answer["NodeNames"] == ["a"], "not known any more: no reason to reject it"
        assert list(answer["FailedNodes"]) == ["b"]

    async def test_a_policy_that_fails_meanwhile(
        self, context: Context, behind: Behind, cluster: Cluster, clock: Clock
    ) -> None:
        told = Told(cluster, reasons={0: "hot"})
        verb = Filter(context, agent_of(told, failure_policy="Fail"))
        verb(names_body("a"))
        clock.now = LATER

        def broken() -> None:
            told.error = RuntimeError("no")
            changed(cluster)

        clock.due = [(LATER + 0.01, broken)]
        answer = verb(names_body("a"))
        assert not isinstance(answer, bytes)
        assert "no" in json.loads(await answer)["Error"]  # type: ignore[misc,arg-type]
        assert verb.calls.errors == 1

    async def test_a_view_that_comes_with_the_requests_is_never_behind(
        self, ask: Ask, context: Context, behind: Behind, clock: Clock
    ) -> None:
        context.learn = lambda _items: None
        await ask(names_body("a", "b"))
        clock.now = LATER
        assert (await ask(names_body("a", "b")))["NodeNames"] == []
        assert behind.waits == [0, 0]

    async def test_who_accepts_all_never_waits(
        self, ask: Ask, told: Told, behind: Behind, clock: Clock
    ) -> None:
        told.reasons = {}
        for clock.now in (0.0, LATER, 2 * LATER):
            await ask(names_body("a", "b"))
        await ask(nodes_body(node("a"), pod={"metadata": {"name": "x"}}))
        assert behind.waits == [0, 0]
