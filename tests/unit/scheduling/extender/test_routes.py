"""Paths and verbs, without a port."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from kube_scheduler_operator.base import klog
from kube_scheduler_operator.scheduling.extender.agent import PolicyAgent
from kube_scheduler_operator.scheduling.extender.routes import Routes, calls_of, verbs_of
from kube_scheduler_operator.scheduling.extender.verbs import VerbContext
from kube_scheduler_operator.scheduling.extender.wire import Binding
from kube_scheduler_operator.scheduling.policies.cluster import Cluster
from kube_scheduler_operator.serving.http_types import Answer, HttpRequest, HttpResponse

from .conftest import POD, StubPolicy, agent_of, names_body, node, nodes_body

Ask = Callable[..., HttpResponse]


def whole(answer: Answer | Awaitable[Answer]) -> HttpResponse:
    if isinstance(answer, HttpResponse):
        return answer
    assert isinstance(answer, bytes)
    return HttpResponse(200, answer, b"application/json")


@pytest.fixture
def served(context: VerbContext, cluster: Cluster) -> Routes:
    policy = StubPolicy(cluster, lambda n: np.arange(n), reasons={0: "hot"}, unresolvable=[0])
    return routes_of(
        context, agent_of(policy, name="strict"), agent_of(StubPolicy(cluster), name="mild")
    )


def routes_of(context: VerbContext, *agents: PolicyAgent, bind: Any = None) -> Routes:
    routes = Routes(
        version=lambda: {"version": "1"},
        alive=lambda: {"ping": None},
        ready=lambda: {"nodes": "not yet", "pods": None},
        render=lambda: b"metric 1\n",
        explain=lambda pod, details: context.decisions.explain(pod) if pod else {"pods": []},
    )
    routes.verbs = verbs_of(list(agents), context, bind)
    return routes


@pytest.fixture
def ask(served: Routes) -> Ask:
    def asked(method: str, path: str, body: bytes = b"", **more: Any) -> HttpResponse:
        path, _, query = path.partition("?")
        return whole(
            served(HttpRequest(method.encode(), path.encode(), query.encode(), body, **more))
        )

    return asked


@pytest.mark.parametrize("path", ["/strict/filter", "/scheduler/predicates/strict"])
def test_filter(ask: Ask, path: str) -> None:
    answer = json.loads(ask("POST", path, names_body("a", "b")).body)
    assert answer["NodeNames"] == ["b"]
    assert answer["FailedAndUnresolvableNodes"] == {"a": "p0: hot"}
    whole_nodes = json.loads(ask("POST", path, nodes_body(node("a"), node("b"))).body)
    assert whole_nodes["NodeNames"] is None
    assert [item["metadata"]["name"] for item in whole_nodes["Nodes"]["items"]] == ["b"]


@pytest.mark.parametrize("path", ["/strict/prioritize", "/scheduler/priorities/strict"])
def test_prioritize(ask: Ask, path: str) -> None:
    answer = ask("POST", path, names_body("b", "c"))
    assert json.loads(answer.body) == [{"Host": "b", "Score": 0}, {"Host": "c", "Score": 1}]
    unknown = ask("POST", path, names_body("b", "x", "c"))
    assert json.loads(unknown.body) == [
        {"Host": "b", "Score": 0},
        {"Host": "x", "Score": 1},
        {"Host": "c", "Score": 1},
    ]


def test_an_empty_list_of_nodes(ask: Ask) -> None:
    assert json.loads(ask("POST", "/strict/filter", names_body()).body)["NodeNames"] == []
    assert json.loads(ask("POST", "/strict/prioritize", names_body()).body) == []


def test_preempt_keeps_accepted_candidates(ask: Ask) -> None:
    victims = {"Pods": [{"UID": "v"}], "NumPDBViolations": 0}
    body = {"Pod": POD, "NodeNameToMetaVictims": {"a": victims, "b": victims}}
    answer = ask("POST", "/strict/preempt", json.dumps(body).encode())
    assert json.loads(answer.body) == {"NodeNameToMetaVictims": {"b": victims}}


@pytest.mark.parametrize("pods", [[], None])
def test_preempt_accepts_candidates_without_victims(ask: Ask, pods: Any) -> None:
    """kube-scheduler sends them from 1.38 on."""
    victims = {"Pods": pods, "NumPDBViolations": 0}
    body = {"Pod": POD, "NodeNameToMetaVictims": {"a": victims, "b": victims}}
    answer = ask("POST", "/strict/preempt", json.dumps(body).encode())
    assert json.loads(answer.body) == {
        "NodeNameToMetaVictims": {"b": {"Pods": [], "NumPDBViolations": 0}}
    }


def test_invalid_requests_get_an_error(ask: Ask, served: Routes) -> None:
    answer = ask("POST", "/strict/filter", b"{")
    assert answer.status == 200
    assert json.loads(answer.body)["Error"].startswith("the body is not JSON")
    for verb in ("prioritize", "preempt"):
        answer = ask("POST", f"/strict/{verb}", b"{")
        assert answer.status == 400
        assert "not JSON" in json.loads(answer.body)["Error"]
    assert json.loads(ask("POST", "/strict/bind", b"{").body)["Error"]
    assert sum(calls.errors for calls in calls_of(served.verbs)) == 4


def test_failure_policy_fail_returns_an_error(context: VerbContext, cluster: Cluster) -> None:
    broken = agent_of(StubPolicy(cluster, error=ValueError("oops")), failure_policy="Fail")
    routes = routes_of(context, broken)
    answer = whole(routes(HttpRequest(b"POST", b"/agent/filter", b"", names_body("a"))))
    assert "policy p0 failed" in json.loads(answer.body)["Error"]
    answer = whole(routes(HttpRequest(b"POST", b"/agent/prioritize", b"", names_body("a"))))
    assert answer.status == 400


async def test_bind_waits_for_the_api(context: VerbContext, cluster: Cluster) -> None:
    bound: list[str] = []

    async def bind(binding: Binding) -> None:
        await asyncio.sleep(0)
        if binding.name == "bad":
            raise OSError("no API today")
        bound.append(f"{binding.namespace}/{binding.name}/{binding.uid}@{binding.node}")

    routes = routes_of(context, agent_of(StubPolicy(cluster)), bind=bind)

    async def asked(name: str) -> Any:
        body = {"PodName": name, "PodNamespace": "n", "PodUID": "u", "Node": "a"}
        answer = routes(HttpRequest(b"POST", b"/agent/bind", b"", json.dumps(body).encode()))
        assert not isinstance(answer, bytes | HttpResponse)
        return json.loads(whole(await answer).body)

    assert await asked("p") == {"Error": ""}
    assert bound == ["n/p/u@a"]
    assert await asked("bad") == {"Error": "no API today"}


def test_verbs_need_post_and_other_paths_get(ask: Ask) -> None:
    assert ask("GET", "/strict/filter").status == 405
    for path in ("/version", "/healthz", "/readyz", "/metrics", "/explain"):
        assert ask("POST", path).status == 405


def test_health_and_version(ask: Ask) -> None:
    assert json.loads(ask("GET", "/version").body) == {"version": "1"}
    assert ask("GET", "/healthz").body == b"[+]ping ok\nok\n"
    assert ask("GET", "/livez").status == 200
    ready = ask("GET", "/readyz")
    assert (ready.status, ready.body) == (
        503,
        b"[-]nodes failed: not yet\n[+]pods ok\ncheck failed\n",
    )
    assert ask("GET", "/metrics").body == b"metric 1\n"


def test_unknown_paths_list_the_served_ones(ask: Ask) -> None:
    answer = ask("POST", "/tolt/filter")
    assert answer.status == 404
    assert b"/strict/filter" in answer.body


def test_clients_without_a_certificate_reach_only_health(served: Routes, ask: Ask) -> None:
    served.certificates = True
    for method, path in (("POST", "/strict/filter"), ("GET", "/explain")):
        assert ask(method, path, names_body("a")).status == 403
        assert ask(method, path, names_body("a"), certificate={"subject": ()}).status == 200
    assert ask("GET", "/healthz").status == 200


def test_the_health_handler_serves_only_health(served: Routes) -> None:
    def status(method: bytes, path: bytes) -> int:
        return whole(served.health(HttpRequest(method, path, b"", names_body("a")))).status

    assert [status(b"GET", path) for path in (b"/version", b"/healthz", b"/metrics")] == [200] * 3
    for path in (b"/strict/filter", b"/strict/bind", b"/explain", b"/"):
        assert status(b"POST", path) == 404
        assert status(b"GET", path) == 404


def test_decisions_are_recorded(ask: Ask) -> None:
    ask("POST", "/strict/filter", names_body("a", "b", "c"))
    ask("POST", "/strict/prioritize", names_body("b", "x", "c"))
    reported = json.loads(ask("GET", "/explain?pod=shop%2Fweb").body)
    assert (reported["pod"], reported["uid"]) == ("shop/web", "u-1")
    (agent,) = reported["agents"]
    assert agent["filter"]["nodes"] == 3
    assert agent["filter"]["rejected"] == [{"node": "a", "reason": "p0: hot", "unresolvable": True}]
    assert agent["prioritize"]["weights"] == {"p0": 1}
    assert agent["prioritize"]["nodes"] == [
        {"node": "c", "score": 1, "policies": {"p0": 1}},
        {"node": "x", "score": 1, "unknown": True},
        {"node": "b", "score": 0, "policies": {"p0": 0}},
    ]
    assert ask("GET", "/explain?pod=shop/other").status == 404


def test_calls_are_counted(ask: Ask, served: Routes) -> None:
    ask("POST", "/strict/filter", names_body("a", "b", "x"))
    ask("POST", "/scheduler/predicates/strict", names_body("a", "b"))
    (calls,) = [c for c in calls_of(served.verbs) if (c.agent, c.verb) == ("strict", "filter")]
    assert (calls.nodes, calls.unknown, calls.rejected, calls.errors) == (5, 1, 2, 0)
    assert sum(calls.counts) == 2
    assert calls.seconds > 0


def test_a_callback_receives_pods_without_nodes(context: VerbContext, cluster: Cluster) -> None:
    reported: list[tuple[str, dict[int, str]]] = []
    context.rejected = lambda agent, args, found: reported.append((agent, found.reasons))
    routes = routes_of(context, agent_of(StubPolicy(cluster, reasons={0: "hot"})))
    for names in (("a", "b"), ("a",)):
        routes(HttpRequest(b"POST", b"/agent/filter", b"", names_body(*names)))
    assert reported == [("agent", {0: "p0: hot"})]


def test_log_levels(ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    ask("POST", "/strict/filter", names_body("a"))
    assert not caplog.records
    with caplog.at_level(logging.DEBUG):
        ask("POST", "/mild/filter", names_body("a", "b"))
    assert [record.getMessage() for record in caplog.records] == ["Answered"]
    caplog.clear()
    with caplog.at_level(klog.TRACE):
        ask("POST", "/strict/prioritize", names_body("a", "b"))
    lines = [klog.TextFormatter().format(record).partition("] ")[2] for record in caplog.records]
    assert lines == [
        '"Answered" agent="strict" verb="prioritize" pod="shop/web" nodes=2',
        '"Calculated" policy="p0" verb="prioritize" pod="shop/web" node="a"',
        '"Calculated" policy="p0" verb="prioritize" pod="shop/web" node="b"',
        '"Scored" agent="strict" nodes="a=0 b=1"',
    ]


def test_a_policy_may_explain_a_node_with_the_keys_of_the_line(
    context: VerbContext, cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    class Explains(StubPolicy):
        def explain(self, pod: Any, indices: Any) -> Any:
            return [{"node": "a", "pod": "3 of 5", "verb": "x", "policy": "y"} for _ in indices]

    routes = routes_of(context, agent_of(Explains(cluster)))
    with caplog.at_level(klog.TRACE):
        for verb in ("filter", "prioritize"):
            body = names_body("a")
            assert (
                whole(routes(HttpRequest(b"POST", f"/agent/{verb}".encode(), b"", body))).status
                == 200
            )
    lines = [klog.TextFormatter().format(record).partition("] ")[2] for record in caplog.records]
    assert '"Calculated" policy="y" verb="x" pod="3 of 5" node="a"' in lines
