"""What agents remember is part of `kubectl scheduler why`: found, queried and shown.

The port-forward is a WebSocket as the kubelet serves it, to servers with answers of an extender.
"""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.cli.lib import extender_decisions
from kube_scheduler_operator.kube.resource import PODS, SCHEDULER_EXTENDERS

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
    app: str = names.EXTENDER,
) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": KUBEADM.target_namespace,
            "labels": {"app": names.EXTENDER},
        },
        "spec": {"nodeName": node, "containers": [{"name": each} for each in containers]},
        "status": {"phase": phase},
    }


def test_agents_are_found_by_their_containers() -> None:
    extenders = [
        extender("calm"),
        extender("other", 5402),
        extender("theirs", url="http://x"),
        {"metadata": {"name": "new"}, "spec": {"agent": {}}},
    ]
    pods = [
        agent_pod("agent-1", "cp1", ["extender-calm"]),
        agent_pod("agent-2", "cp2", ["extender-calm"], phase="Pending"),
        agent_pod("mine-x", "n1", ["kube-scheduler", "extender-calm", "extender-other"]),
        agent_pod("strange", "n2", ["extender-unused", "extender-new", "my-extender-calm"]),
    ]
    assert [
        (p.extender, p.pod, p.node, p.port) for p in extender_decisions.agents_in(extenders, pods)
    ] == [
        ("calm", "agent-1", "cp1", 5401),
        ("calm", "mine-x", "n1", 5401),
        ("other", "mine-x", "n1", 5402),
    ]


class World:
    """A cluster with agents, by pod, and what each answers."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.answers: dict[str, tuple[int, Any]] = {}
        self.asked: list[str] = []
        self.ports: dict[str, int] = {}
        self.runners: list[web.AppRunner] = []

    async def agent(self, pod: str, status: int, answer: Any) -> None:
        async def reported(request: web.Request) -> web.Response:
            self.asked.append(f"{pod} {request.path_qs}")
            assert "Authorization" not in request.headers
            return web.json_response(answer, status=status)

        app = web.Application()
        app.router.add_get("/explain", reported)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.runners.append(runner)
        self.ports[pod] = runner.addresses[0][1]
        self.cluster.put(PODS, agent_pod(pod, "cp1", ["extender-calm"]))

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
    cluster.api.served |= {SCHEDULER_EXTENDERS}
    cluster.api.routes |= {PORTFORWARD: made.forward}
    cluster.put(SCHEDULER_EXTENDERS, extender("calm"))
    cluster.put(PODS, {"metadata": {"name": "web", "namespace": "shop"}, "spec": {}})
    yield made
    for runner in made.runners:
        await runner.cleanup()


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
    cluster.api.served |= {SCHEDULER_EXTENDERS}
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
