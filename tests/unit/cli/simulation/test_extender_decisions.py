"""What agents remember is part of `kubectl scheduler why`: found, queried and shown.

The port-forward is a WebSocket as the kubelet serves it, to servers with answers of an extender.
"""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.cli.simulation import agent_endpoints, extender_decisions
from kube_scheduler_operator.kube.resource import DAEMON_SETS, PODS, SCHEDULER_EXTENDERS

from ..conftest import PORTFORWARD, Cluster, relay

EXPLAINED = {
    "pod": "shop/web",
    "uid": "u-1",
    "agents": [
        {
            "agent": "calm",
            "filter": {
                "at": "2026-01-01T00:00:00.000Z",
                "nodes": 4,
                "rejected": [
                    {
                        "node": "a",
                        "reason": "safe-overload: the CPU is too busy",
                        "unresolvable": False,
                    },
                    {"node": "b", "reason": "safe-overload: no memory", "unresolvable": True},
                ],
            },
            "prioritize": {
                "at": "2026-01-01T00:00:00.001Z",
                "weights": {"safe-overload": 1, "safe-balance": 10},
                "nodes": [
                    {"node": "c", "score": 7, "policies": {"safe-overload": 9, "safe-balance": 7}},
                    {"node": "new", "score": 5, "unknown": True},
                ],
            },
        }
    ],
}
DETAILS = {"calm": {"safe-overload": [{"node": "c", "cpuRisk": 0.123456789, "memoryRisk": None}]}}

TEXT = """\
Pod shop/web

Extender calm (calm in pod kube-scheduler-operator/agent-1 on cp1)
  filter at 2026-01-01T00:00:00.000Z: 2 of 4 nodes rejected
    NODE  POLICY AND REASON
    a     safe-overload: the CPU is too busy
    b     safe-overload: no memory; preemption does not help
  prioritize at 2026-01-01T00:00:00.001Z: 2 nodes, best first
    NODE  SCORE  safe-overload (weight 1)  safe-balance (weight 10)
    c     7      9                         7
    new   5      unknown, median
"""


def extender(name: str, port: int = 5401, **spec: Any) -> dict[str, Any]:
    agent = spec or {"agent": {"policies": [{"name": "foo"}]}}
    status = {"agent": {"port": port}} if "agent" in agent else {}
    return {"metadata": {"name": name}, "spec": agent, "status": status}


def agent_pod(
    name: str,
    node: str,
    containers: Sequence[str],
    phase: str = "Running",
    owner: str = "uid-of-calm",
    namespace: str = KUBEADM.target_namespace,
) -> dict[str, Any]:
    controller = {"kind": "DaemonSet", "name": "x", "uid": owner, "controller": True}
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app": names.EXTENDER},
            "ownerReferences": [controller] if owner else [],
        },
        "spec": {"nodeName": node, "containers": [{"name": each} for each in containers]},
        "status": {"phase": phase},
    }


def daemon_set(name: str, uid: str) -> dict[str, Any]:
    namespace = KUBEADM.target_namespace
    labels = {"app": names.EXTENDER}
    return {
        "metadata": {"name": name, "uid": uid, "namespace": namespace, "labels": labels},
        "spec": {},
    }


def test_an_agent_is_in_a_pod_of_its_own_daemon_set() -> None:
    ports = {"calm": 5401, "other": 5402}
    daemon_sets = [daemon_set("extender-calm", "uid-of-calm"), daemon_set("mine", "uid-of-mine")]
    pods = [
        agent_pod("agent-1", "cp1", ["extender-calm"]),
        agent_pod("agent-2", "cp2", ["extender-calm"], phase="Pending"),
        agent_pod("labelled", "n1", ["extender-calm"], owner=""),
        agent_pod("of-another-one", "n1", ["extender-calm"], owner="uid-of-mine"),
        agent_pod("two", "n2", ["extender-other", "my-extender-calm"]),
        agent_pod("strange", "n3", ["extender-unused"]),
    ]
    found = agent_endpoints.agents_of_daemon_sets(ports, daemon_sets, pods)
    assert [(p.extender, p.pod, p.node, p.port) for p in found] == [
        ("calm", "agent-1", "cp1", 5401)
    ]


class World:
    """A cluster with agents, by pod, and what each answers."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.answers: dict[str, tuple[int, Any]] = {}
        self.asked: list[str] = []
        self.ports: dict[str, int] = {}
        self.runners: list[web.AppRunner] = []

    async def agent(self, pod: str, status: int, answer: Any, **how: Any) -> None:
        async def reported(request: web.Request) -> web.Response:
            assert "Authorization" not in request.headers
            if isinstance(answer, bytes):
                return web.Response(body=answer, status=status)
            return web.json_response(answer, status=status)

        await self.serve(pod, reported, **how)

    async def serve(
        self,
        pod: str,
        answer: Callable[[web.Request], Awaitable[web.StreamResponse]],
        **how: Any,
    ) -> None:
        """An agent in a pod that `how` describes."""

        async def handle(request: web.Request) -> web.StreamResponse:
            self.asked.append(f"{pod} {request.path_qs}")
            return await answer(request)

        app = web.Application()
        app.router.add_get("/explain", handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.runners.append(runner)
        self.ports[pod] = runner.addresses[0][1]
        self.cluster.put(PODS, agent_pod(pod, "cp1", ["extender-calm"], **how))

    async def forward(self, request: web.Request) -> web.StreamResponse:
        assert request.query["ports"] == "5401"
        pod = request.path.split("/")[-2]
        if pod not in self.ports:
            return web.json_response({"message": "no such pod"}, status=404)
        return await relay(request, self.ports[pod])


@pytest.fixture(autouse=True)
def no_kube_scheduler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """None is found on this machine, so that only agents answer."""
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("KUBE_SCHEDULER_OPERATOR_CACHE", str(tmp_path))


@pytest.fixture
async def world(cluster: Cluster) -> AsyncIterator[World]:
    made = World(cluster)
    cluster.api.served |= {DAEMON_SETS, SCHEDULER_EXTENDERS}
    cluster.api.routes |= {PORTFORWARD: made.forward}
    cluster.put(SCHEDULER_EXTENDERS, extender("calm"))
    cluster.put(DAEMON_SETS, daemon_set("extender-calm", "uid-of-calm"))
    cluster.put(PODS, {"metadata": {"name": "web", "namespace": "shop"}, "spec": {}})
    yield made
    for runner in made.runners:
        await runner.cleanup()
    await asyncio.sleep(0.1)  # aborted connections close their sockets in the next turns


async def explained(world: World, *args: str) -> Any:
    return await world.cluster.run("explain", *args, "--platform", "kubeadm")


async def test_what_an_agent_decided_is_shown(world: World) -> None:
    await world.agent("agent-1", 200, EXPLAINED)
    await world.agent("agent-2", 404, {"error": "nothing is remembered"})
    done = await explained(world, "web", "-n", "shop")
    assert done.code == 0
    assert "note: kube-scheduler's own reasons are missing: " in done.err
    assert done.out == TEXT.replace("kube-scheduler-operator/", f"{KUBEADM.target_namespace}/")
    assert sorted(world.asked) == [
        "agent-1 /explain?pod=shop%2Fweb",
        "agent-2 /explain?pod=shop%2Fweb",
    ]


async def test_for_programs(world: World) -> None:
    await world.agent("agent-1", 200, EXPLAINED)
    done = await explained(world, "shop/web", "-o", "json")
    document = json.loads(done.out)
    assert document["pod"] == "shop/web"
    (answer,) = document["answers"]
    assert answer["agents"] == EXPLAINED["agents"]


async def test_details_are_shown_and_tables_are_truncated(world: World) -> None:
    await world.agent("agent-1", 200, {**EXPLAINED, "now": DETAILS})
    done = await explained(world, "shop/web", "--details", "--nodes", "1")
    assert "… and 1 more (--nodes 0 shows all)" in done.out
    assert "Current input of safe-overload in calm" in done.out
    assert done.out.endswith("    NODE  cpuRisk   memoryRisk\n    c     0.123457  -\n")
    assert world.asked == ["agent-1 /explain?pod=shop%2Fweb&details=1"]


async def test_no_agent_remembers_the_pod(world: World) -> None:
    await world.agent("agent-1", 404, {})
    done = await explained(world, "other/gone")
    assert done.code == 1
    assert "pod other/gone does not exist" in done.err


async def test_unreachable_agent_is_named(world: World) -> None:
    await world.agent("agent-1", 200, EXPLAINED)
    world.cluster.put(PODS, agent_pod("broken", "cp2", ["extender-calm"]))
    done = await explained(world, "shop/web")
    assert done.code == 0
    assert "note: calm in pod" in done.err
    assert "broken" in done.err
    del world.ports["agent-1"]
    done = await explained(world, "shop/web")
    assert done.code == 1
    assert "cannot connect to pod" in done.err


async def test_a_connection_that_the_pod_closes_first_leaves_no_socket(world: World) -> None:
    async def close(request: web.Request) -> web.StreamResponse:
        opened = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await opened.prepare(request)
        await opened.receive()  # the request to the agent
        await opened.close()
        return opened

    world.cluster.api.routes[PORTFORWARD] = close
    await world.agent("agent-1", 200, EXPLAINED)
    done = await explained(world, "shop/web")
    assert (done.code, "the connection to port 5401 of the pod failed" in done.err) == (1, True)
    proxies = [one for one in threading.enumerate() if "port forward" in one.name]
    for proxy in proxies:
        await asyncio.to_thread(proxy.join)
    gc.collect()  # an open socket is a ResourceWarning, and so an error


async def test_missing_agents_are_reported(cluster: Cluster) -> None:
    cluster.put(PODS, {"metadata": {"name": "web", "namespace": "default"}, "spec": {}})
    done = await cluster.run("why", "web", "--platform", "kubeadm")
    assert (done.code, "SchedulerExtender is not installed" in done.err) == (1, True)
    cluster.api.served |= {DAEMON_SETS, SCHEDULER_EXTENDERS}
    cluster.put(SCHEDULER_EXTENDERS, extender("theirs", url="http://x"))
    done = await cluster.run("why", "web", "--platform", "kubeadm")
    assert "no SchedulerExtender has an agent" in done.err
    cluster.put(SCHEDULER_EXTENDERS, extender("calm"))
    done = await cluster.run("explain", "web", "--platform", "kubeadm")
    assert "no agent is running" in done.err


async def test_extender_can_be_queried_without_a_cluster(world: World) -> None:
    await world.agent("agent-1", 200, EXPLAINED)
    url = f"http://127.0.0.1:{world.ports['agent-1']}"
    done = await world.cluster.run("explain", "shop/web", "--url", url)
    assert done.code == 0
    assert done.out.startswith(f"Pod shop/web\n\nExtender calm ({url})\n")
    await world.agent("agent-2", 404, {})
    url = f"http://127.0.0.1:{world.ports['agent-2']}"
    done = await world.cluster.run("explain", "shop/web", "--url", url)
    assert (done.code, "no agent remembers" in done.err) == (1, True)


@pytest.mark.parametrize(
    ("url", "reported"),
    [("localhost:1", "is not a URL"), ("http://127.0.0.1:1", "does not respond")],
)
async def test_url_that_does_not_respond_is_reported(
    cluster: Cluster, url: str, reported: str
) -> None:
    done = await cluster.run("explain", "web", "--url", url)
    assert (done.code, reported in done.err) == (1, True)


# --- pods and answers of others -------------------------------------------------------------------


async def test_a_pod_with_the_labels_alone_is_never_asked(world: World) -> None:
    await world.agent("agent-1", 200, EXPLAINED)
    forged = {"pod": "shop/web", "uid": "u-1", "agents": [{"agent": "FORGED"}]}
    await world.agent("theirs", 200, forged, owner="", namespace="tenant")
    await world.agent("owned", 200, forged, namespace="tenant")  # by the uid of the DaemonSet
    for pod in ("theirs", "owned"):
        obj = agent_pod(pod, "n1", ["extender-calm"], namespace="tenant")
        obj["metadata"]["labels"] = {"app": names.SECONDARY, names.SECONDARY_LABEL: "mine"}
        world.cluster.put(PODS, obj)
    done = await explained(world, "shop/web", "-o", "json")
    assert done.code == 0
    assert [each["agents"] for each in json.loads(done.out)["answers"]] == [EXPLAINED["agents"]]
    assert world.asked == ["agent-1 /explain?pod=shop%2Fweb"]


BAD: dict[str, tuple[Any, str]] = {
    "text": (b"it works", "it is not JSON: "),
    "no-name": ({"agents": [{}]}, "agents[0].agent: this is missing"),
    "no-list": (
        {"agents": [{"agent": "x", "filter": {"at": "t", "nodes": 1, "rejected": {}}}]},
        "agents[0].filter.rejected: this must be a list",
    ),
    "no-key": (
        {"agents": [{"agent": "x", "prioritize": {"at": "t", "weights": {}, "nodes": [{}]}}]},
        "agents[0].prioritize.nodes[0].node: this is missing",
    ),
    "list": ([], "this must be an object with "),
    "deep": (b"[" * 100_000, "this is nested too deep"),
    "many": (b"[" + b"{}," * 300_000 + b"{}]", "the document has more than 250000 values"),
    "number": (
        b'{"agents": [], "now": {"a": {"p": [{"x": 1e999}]}}}',
        "now.a.p[0].x: inf is not a number",
    ),
    "other": ({"pod": "shop/other", "agents": []}, 'pod: this must be "shop/web"'),
}


async def test_bad_agents_are_a_note_each_and_hide_no_other(world: World) -> None:
    for name, (answer, _) in BAD.items():
        await world.agent(f"bad-{name}", 200, answer)
    await world.agent("good", 200, EXPLAINED)
    done = await explained(world, "shop/web")
    assert done.code == 0
    assert done.out == TEXT.replace("agent-1", "good")
    for name, (_, problem) in BAD.items():
        where = f"calm in pod {KUBEADM.target_namespace}/bad-{name} on cp1"
        assert f"note: {where}: its answer is not valid: {problem}" in done.err, name
    assert "Traceback" not in done.err


async def test_only_bad_agents_are_an_error_with_all_their_problems(world: World) -> None:
    for name in ("text", "no-name"):
        await world.agent(name, 200, BAD[name][0])
    done = await explained(world, "shop/web")
    assert (done.code, "Traceback" in done.err) == (1, False)
    assert BAD["no-name"][1] in done.err


class Endless:
    """A body without an end.

    Attributes:
        sent: bytes that were sent.
    """

    def __init__(self, chunk: bytes, pause: float = 0.0) -> None:
        self.chunk, self.pause, self.sent = chunk, pause, 0

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        transport = request.transport
        assert transport is not None
        try:
            while not transport.is_closing():
                await response.write(self.chunk)
                self.sent += len(self.chunk)
                await asyncio.sleep(self.pause)
        except ConnectionError:
            pass
        finally:
            transport.abort()  # what is not sent yet would keep the socket open
        return response


async def test_an_endless_answer_ends_at_the_limit(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extender_decisions, "_SECONDS", 60.0)  # the limit of bytes comes first
    endless = Endless(b" " * 65536)
    await world.serve("endless", endless)
    await world.agent("good", 200, EXPLAINED)
    done = await explained(world, "shop/web")
    assert (done.code, done.out) == (0, TEXT.replace("agent-1", "good"))
    assert "endless on cp1: its response has more than 4194304 bytes" in done.err
    assert endless.sent < 64 * 2**20, "what the connection buffers is more than the limit"


async def test_a_slow_answer_ends_after_the_time_of_all(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extender_decisions, "_SECONDS", 2.0)
    await world.serve("slow", Endless(b" ", pause=0.05))
    await world.serve("silent", Endless(b"", pause=0.05))
    await world.agent("good", 200, EXPLAINED)
    done = await explained(world, "shop/web")
    assert (done.code, done.out) == (0, TEXT.replace("agent-1", "good"))
    for pod in ("slow", "silent"):
        assert f"{pod} on cp1: there was no complete response within" in done.err


@pytest.mark.parametrize("name", BAD)
async def test_an_answer_of_a_url_that_is_not_valid_is_an_error(world: World, name: str) -> None:
    answer, problem = BAD[name]
    await world.agent("x", 200, answer)
    url = f"http://127.0.0.1:{world.ports['x']}"
    done = await world.cluster.run("explain", "shop/web", "--url", url)
    assert (done.code, done.out) == (1, "")
    assert f"error: {url}: its answer is not valid: {problem}" in done.err


async def test_an_answer_of_a_url_is_bounded_in_size_and_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = Endless(b" " * 65536)
    await world.serve("endless", endless)
    url = f"http://127.0.0.1:{world.ports['endless']}"
    done = await world.cluster.run("explain", "shop/web", "--url", url)
    assert (done.code, f"the response of {url} has more than 4194304 bytes" in done.err) == (
        1,
        True,
    )
    assert endless.sent < 64 * 2**20, "what the connection buffers is more than the limit"
    monkeypatch.setattr(extender_decisions, "_SECONDS", 1.0)
    await world.serve("slow", Endless(b" ", pause=0.05))
    url = f"http://127.0.0.1:{world.ports['slow']}"
    done = await world.cluster.run("explain", "shop/web", "--url", url)
    assert (done.code, "does not respond completely within 1 s" in done.err) == (1, True)


async def test_programs_get_the_decoded_answer_and_nothing_else(world: World) -> None:
    await world.agent("agent-1", 200, {**EXPLAINED, "note": "run this", "now": DETAILS})
    done = await explained(world, "shop/web", "--details", "-o", "json")
    (answer,) = json.loads(done.out)["answers"]
    source = answer.pop("from")
    assert source.startswith("calm in pod")
    assert answer == {**EXPLAINED, "now": DETAILS}
