"""Paths and verbs: requests in, answers out, without a port."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from kube_scheduler_operator.base import klog
from kube_scheduler_operator.policies.cluster import Cluster
from kube_scheduler_operator.programs.extender.agent import Agent
from kube_scheduler_operator.programs.extender.messages import Answer, Request, Response
from kube_scheduler_operator.programs.extender.routes import Routes, calls_of, verbs_of
from kube_scheduler_operator.programs.extender.verbs import Context
from kube_scheduler_operator.programs.extender.wire_bind_preempt import Binding

from .conftest import POD, Told, agent_of, names_body, node, nodes_body

Ask = Callable[..., Response]


def whole(answer: Answer | Awaitable[Answer]) -> Response:
    if isinstance(answer, Response):
        return answer
    assert isinstance(answer, bytes)
    return Response(200, answer, b"application/json")


@pytest.fixture
def served(context: Context, cluster: Cluster) -> Routes:
    policy = Told(cluster, lambda n: np.arange(n), reasons={0: "hot"}, unresolvable=[0])
    return routes_of(context, agent_of(policy, name="told"), agent_of(Told(cluster), name="mild"))


def routes_of(context: Context, *agents: Agent, bind: Any = None) -> Routes:
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
    def asked(method: str, path: str, body: bytes = b"", **more: Any) -> Response:
        path, _, query = path.partition("?")
        return whole(served(Request(method.encode(), path.encode(), query.encode(), body, **more)))

    return asked


@pytest.mark.parametrize("path", ["/told/filter", "/scheduler/predicates/told"])
def test_filter(ask: Ask, path: str) -> None:
    answer = json.loads(ask("POST", path, names_body("a", "b")).body)
    assert answer["NodeNames"] == ["b"]
    assert answer["FailedAndUnresolvableNodes"] == {"a": "p0: hot"}
    whole_nodes = json.loads(ask("POST", path, nodes_body(node("a"), node("b"))).body)
    assert whole_nodes["NodeNames"] is None
    assert [item["metadata"]["name"] for item in whole_nodes["Nodes"]["items"]] == ["b"]


@pytest.mark.parametrize("path", ["/told/prioritize", "/scheduler/priorities/told"])
def test_prioritize(ask: Ask, path: str) -> None:
    answer = ask("POST", path, names_body("b", "c"))
    assert json.loads(answer.body) == [{"Host": "b", "Score": 0}, {"Host": "c", "Score": 1}]
    unknown = ask("POST", path, names_body("b", "x", "c"))
    assert json.loads(unknown.body) == [
        {"Host": "b", "Score": 0},
        {"Host": "x", "Score": 1},
        {"Host": "c", "Score": 1},
    ]


def test_no_nodes_are_no_nodes(ask: Ask) -> None:
    assert json.loads(ask("POST", "/told/filter", names_body()).body)["NodeNames"] == []
    assert json.loads(ask("POST", "/told/prioritize", names_body()).body) == []


def test_preempt_keeps_what_the_filters_accept(ask: Ask) -> None:
    victims = {"Pods": [{"UID": "v"}], "NumPDBViolations": 0}
    body = {"Pod": POD, "NodeNameToMetaVictims": {"a": victims, "b": victims}}
    answer = ask("POST", "/told/preempt", json.dumps(body).encode())
    assert json.loads(answer.body) == {"NodeNameToMetaVictims": {"b": victims}}


def test_requests_that_make_no_sense_are_answered_all_the_same(ask: Ask, served: Routes) -> None:
    answer = ask("POST", "/told/filter", b"{")
    assert answer.status == 200
    assert json.loads(answer.body)["Error"].startswith("the body is not JSON")
    for verb in ("prioritize", "preempt"):
        answer = ask("POST", f"/told/{verb}", b"{")
        assert answer.status == 400
        assert "not JSON" in json.loads(answer.body)["Error"]
    assert json.loads(ask("POST", "/told/bind", b"{").body)["Error"]
    assert sum(calls.errors for calls in calls_of(served.verbs)) == 4


def test_where_failures_count_they_are_answered(context: Context, cluster: Cluster) -> None:
    broken = agent_of(Told(cluster, error=ValueError("oops")), failure_policy="Fail")
    routes = routes_of(context, broken)
    answer = whole(routes(Request(b"POST", b"/agent/filter", b"", names_body("a"))))
    assert "policy p0 failed" in json.loads(answer.body)["Error"]
    answer = whole(routes(Request(b"POST", b"/agent/prioritize", b"", names_body("a"))))
    assert answer.status == 400


async def test_bind_waits_for_the_api(context: Context, cluster: Cluster) -> None:
    bound: list[str] = []

    async def bind(binding: Binding) -> None:
        await asyncio.sleep(0)
        if binding.name == "bad":
            raise OSError("no API today")
        bound.append(f"{binding.namespace}/{binding.name}/{binding.uid}@{binding.node}")

    routes = routes_of(context, agent_of(Told(cluster)), bind=bind)

    async def asked(name: str) -> Any:
        body = {"PodName": name, "PodNamespace": "n", "PodUID": "u", "Node": "a"}
        answer = routes(Request(b"POST", b"/agent/bind", b"", json.dumps(body).encode()))
        assert not isinstance(answer, bytes | Response)
        return json.loads(whole(await answer).body)

    assert await asked("p") == {"Error": ""}
    assert bound == ["n/p/u@a"]
    assert await asked("bad") == {"Error": "no API today"}


def test_verbs_are_asked_with_post_and_the_rest_with_get(ask: Ask) -> None:
    assert ask("GET", "/told/filter").status == 405
    for path in ("/version", "/healthz", "/readyz", "/metrics", "/explain"):
        assert ask("POST", path).status == 405


def test_how_it_is_going(ask: Ask) -> None:
    assert json.loads(ask("GET", "/version").body) == {"version": "1"}
    assert ask("GET", "/healthz").body == b"[+]ping ok\nok\n"
    assert ask("GET", "/livez").status == 200
    ready = ask("GET", "/readyz")
    assert (ready.status, ready.body) == (
        503,
        b"[-]nodes failed: not yet\n[+]pods ok\ncheck failed\n",
    )
    assert ask("GET", "/metrics").body == b"metric 1\n"


def test_unknown_paths_say_what_is_served(ask: Ask) -> None:
    answer = ask("POST", "/tolt/filter")
    assert answer.status == 404
    assert b"/told/filter" in answer.body


def test_clients_without_a_certificate_may_ask_only_how_it_is_going(
    served: Routes, ask: Ask
) -> None:
    served.certificates = True
    for method, path in (("POST", "/told/filter"), ("GET", "/explain")):
        assert ask(method, path, names_body("a")).status == 403
        assert ask(method, path, names_body("a"), verified=True).status == 200
    assert ask("GET", "/healthz").status == 200


def test_the_port_for_everybody_tells_only_how_it_is_going(served: Routes) -> None:
    def status(method: bytes, path: bytes) -> int:
        return whole(served.health(Request(method, path, b"", names_body("a")))).status

    assert [status(b"GET", path) for path in (b"/version", b"/healthz", b"/metrics")] == [200] * 3
    for path in (b"/told/filter", b"/told/bind", b"/explain", b"/"):
        assert status(b"POST", path) == 404
        assert status(b"GET", path) == 404


def test_what_was_decided_is_remembered(ask: Ask) -> None:
    ask("POST", "/told/filter", names_body("a", "b", "c"))
    ask("POST", "/told/prioritize", names_body("b", "x", "c"))
    told = json.loads(ask("GET", "/explain?pod=shop%2Fweb").body)
    assert (told["pod"], told["uid"]) == ("shop/web", "u-1")
    (agent,) = told["agents"]
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
    ask("POST", "/told/filter", names_body("a", "b", "x"))
    ask("POST", "/scheduler/predicates/told", names_body("a", "b"))
    (calls,) = [c for c in calls_of(served.verbs) if (c.agent, c.verb) == ("told", "filter")]
    assert (calls.nodes, calls.unknown, calls.rejected, calls.errors) == (5, 1, 2, 0)
    assert sum(calls.counts) == 2
    assert calls.seconds > 0


def test_who_is_told_when_no_node_is_left(context: Context, cluster: Cluster) -> None:
    told: list[tuple[str, dict[int, str]]] = []
    context.rejected = lambda agent, args, found: told.append((agent, found.reasons))
    routes = routes_of(context, agent_of(Told(cluster, reasons={0: "hot"})))
    for names in (("a", "b"), ("a",)):
        routes(Request(b"POST", b"/agent/filter", b"", names_body(*names)))
    assert told == [("agent", {0: "p0: hot"})]


def test_levels_of_the_log(ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    ask("POST", "/told/filter", names_body("a"))
    assert not caplog.records
    with caplog.at_level(logging.DEBUG):
        ask("POST", "/mild/filter", names_body("a", "b"))
    assert [record.getMessage() for record in caplog.records] == ["Answered"]
    caplog.clear()
    with caplog.at_level(klog.TRACE):
        ask("POST", "/told/prioritize", names_body("a", "b"))
    lines = [klog.TextFormatter().format(record).partition("] ")[2] for record in caplog.records]
    assert lines == [
        '"Answered" agent="told" verb="prioritize" pod="shop/web" nodes=2',
        '"Calculated" policy="p0" verb="prioritize" pod="shop/web" node="a"',
        '"Calculated" policy="p0" verb="prioritize" pod="shop/web" node="b"',
        '"Scored" agent="told" nodes="a=0 b=1"',
    ]
