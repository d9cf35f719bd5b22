"""`--in-cluster`: what a simulating command creates, sends and leaves in the cluster."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.cli.simulation import place
from kube_scheduler_operator.kube.resource import (
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    KUBE_SCHEDULERS,
    NETWORK_POLICIES,
    NODES,
    PODS,
)
from kube_scheduler_operator.simulate import find_program, job_run, questions
from kube_scheduler_operator.simulate.diagnosis import Diagnosis
from kube_scheduler_operator.simulate.process import SimulationError
from kube_scheduler_operator.simulate.questions import to_json
from kube_scheduler_operator.simulate.service import Service, ServiceOptions

from ..conftest import IMAGE, NAMESPACE, PORTFORWARD, Cluster, Done, content, relay

OPERATOR_IMAGE = "registry.example/operator:1"
WHY = ("why", "shop/web", "--platform", "kubeadm")
RUNNING: dict[str, Any] = {"state": {"running": {}}}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"state": {"waiting": {"reason": reason, "message": message}}}


class World:
    """A cluster with the operator, whose kubelet starts the program of the Pod.

    Attributes:
        status: of the Pod, once it was created.
        delay: seconds until the program listens after its container runs.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.status: dict[str, Any] = {
            "phase": "Running",
            "initContainerStatuses": [{"name": "operand", **RUNNING}],
            "containerStatuses": [{"name": "simulation", **RUNNING}],
        }
        self.delay = 0.0
        self.service: asyncio.Task[int] | None = None
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            self._port = int(listening.getsockname()[1])
        cluster.api.served |= {DEPLOYMENTS, EVENTS, JOBS, NETWORK_POLICIES, NODES}
        cluster.api.routes |= {"/version": self._version, PORTFORWARD: self.forward}
        variables = [{"name": "OPERATOR_IMAGE", "value": OPERATOR_IMAGE}]
        pod = {"containers": [{"image": "x", "env": variables}]}
        self.put(DEPLOYMENTS, "kube-scheduler-operator", {"template": {"spec": pod}})
        self.put(NETWORK_POLICIES, "default-deny-all", {"policyTypes": ["Ingress", "Egress"]})
        node = {
            "metadata": {"name": "cp"},
            "status": {
                "allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        cluster.put(NODES, node)
        web = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"containers": []}}
        cluster.put(PODS, web)
        made = content()
        cluster.revision(1, made)
        cluster.kubescheduler({"cp": 1})

    def put(self, resource: Any, name: str, spec: Mapping[str, Any]) -> None:
        metadata = {"name": name, "namespace": NAMESPACE}
        self.cluster.put(resource, {"metadata": metadata, "spec": spec})

    async def _version(self, _: web.Request) -> web.Response:
        return web.json_response({"gitVersion": "v1.35.4"})

    async def forward(self, request: web.Request) -> web.StreamResponse:
        """The kubelet's port-forward: without a listener, an error in its own channel."""
        with socket.socket() as asked:
            if asked.connect_ex(("127.0.0.1", self._port)):
                return await refused(request)
        return await relay(request, self._port)

    @property
    def job(self) -> dict[str, Any]:
        """The Job as it was created."""
        (seen,) = self.cluster.api.requests("POST", "/jobs")
        return dict(seen.body)

    async def kubelet(self) -> None:
        """Create the Pod of a Job and run its program."""
        jobs = self.cluster.api.objects.setdefault(JOBS, {})
        for _ in range(1000):
            if jobs:
                break
            await asyncio.sleep(0.01)
        ((_, name),) = jobs
        (obj,) = jobs.values()
        template = obj["spec"]["template"]
        labels = {**template["metadata"]["labels"], "batch.kubernetes.io/job-name": name}
        metadata = {"name": f"{name}-x", "namespace": NAMESPACE, "labels": labels}
        # Another Job may give its Pods this label, but not this owner.
        other = {**metadata, "name": "a-forged-one", "ownerReferences": [JOBS.owner("x", "other")]}
        failed = {"phase": "Failed", "message": "the Pod of another Job"}
        self.cluster.put(PODS, {"metadata": other, "spec": template["spec"], "status": failed})
        metadata["ownerReferences"] = [JOBS.owner(name, obj["metadata"]["uid"])]
        pod = {"metadata": metadata, "spec": template["spec"], "status": self.status}
        self.cluster.put(PODS, pod)
        await asyncio.sleep(self.delay)
        digest = template["spec"]["containers"][0]["args"][0].removeprefix("--key-sha256=")
        options = ServiceOptions("127.0.0.1", digest, 30, self._port, Path(sys.executable))
        self.service = asyncio.create_task(Service(options).run())

    async def run(self, *arguments: str) -> Done:
        """A command, beside the kubelet."""
        kubelet = asyncio.create_task(self.kubelet())
        try:
            return await self.cluster.run(*arguments)
        finally:
            kubelet.cancel()
            with suppress(asyncio.CancelledError):
                await kubelet

    def deleted(self) -> list[str]:
        return [seen.path.rpartition("/")[2] for seen in self.cluster.api.requests("DELETE")]


async def refused(request: web.Request) -> web.StreamResponse:
    stream = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
    await stream.prepare(request)
    port = int(request.query["ports"]).to_bytes(2, "little")
    await stream.send_bytes(b"\x00" + port)
    await stream.send_bytes(b"\x01" + port)
    await stream.send_bytes(b"\x01dial tcp4 127.0.0.1:8080: connect: connection refused")
    await stream.close()
    return stream


@pytest.fixture
async def world(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[World]:
    """Without a kube-scheduler on this machine; the Pod's answer is that nothing fits."""
    for module in (find_program, place):
        monkeypatch.setattr(module, "candidates", lambda _version: iter(()))

    async def answer(self: questions.Asked, binary: Path) -> bytes:
        assert binary == Path(sys.executable)
        pod = self.arguments["pod"]["metadata"]
        if pod["name"] == "broken":
            raise SimulationError("kube-scheduler ended: no such plugin")
        return to_json(
            Diagnosis(f"{pod['namespace']}/{pod['name']}", "default-scheduler", ["x"], nodes=7)
        )

    monkeypatch.setattr(questions.Asked, "answer", answer)
    made = World(cluster)
    yield made
    if made.service is not None:
        made.service.cancel()
        await asyncio.wait((made.service,))


async def test_without_a_program_here_the_answer_comes_from_a_job_that_is_deleted(
    world: World,
) -> None:
    done = await world.run(*WHY, "-o", "json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["nodes"] == 7
    job = world.job
    name = job["metadata"]["name"]
    assert job["metadata"]["namespace"] == KUBEADM.operator_namespace
    spec = job["spec"]["template"]["spec"]
    assert spec["nodeName"] == "cp"
    assert spec["containers"][0]["image"] == OPERATOR_IMAGE
    assert spec["initContainers"][1]["image"] == IMAGE
    assert spec["initContainers"][1]["command"][-1] == "kube-scheduler"
    assert f"Job {NAMESPACE}/{name} on node cp" in done.err
    assert world.deleted() == [name]
    writes = [seen for seen in world.cluster.api.seen if seen.method not in ("GET", "DELETE")]
    assert [seen.path.rpartition("/")[2] for seen in writes] == ["jobs"]
    assert world.service is not None
    assert await asyncio.wait_for(world.service, 2) == 0


async def test_the_key_of_requests_is_not_in_the_job(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "token_urlsafe", lambda _: "one-time")
    assert (await world.run(*WHY)).code == 0
    text = json.dumps(world.job)
    assert "one-time" not in text
    assert hashlib.sha256(b"one-time").hexdigest() in text


async def test_a_program_that_does_not_listen_yet_is_waited_for(world: World) -> None:
    world.delay = 0.6
    done = await world.run(*WHY)
    assert done.code == 0, done.err


async def test_an_error_of_the_simulation_is_the_errors_message(world: World) -> None:
    metadata = {"name": "broken", "namespace": "shop"}
    world.cluster.put(PODS, {"metadata": metadata, "spec": {"containers": []}})
    done = await world.run("why", "shop/broken", "--platform", "kubeadm")
    assert (done.code, done.err.splitlines()[-1]) == (
        1,
        "error: kube-scheduler ended: no such plugin",
    )
    assert len(world.deleted()) == 1


async def test_where_the_job_runs_can_be_chosen(world: World) -> None:
    metadata = {"name": "isolated", "namespace": "simulations"}
    isolated = {"metadata": metadata, "spec": {"policyTypes": ["Egress"]}}
    world.cluster.put(NETWORK_POLICIES, isolated)
    message = 'jobs.batch is forbidden: User "u" cannot create resource "jobs"'
    world.cluster.api.fail(403, method="POST", path="/jobs", reason="Forbidden", message=message)
    done = await world.run(
        *WHY, "--in-cluster", "--job-namespace", "simulations", "--job-node", "other"
    )
    assert done.code == 1
    assert 'apiGroups: ["batch"], resources: ["jobs"], verbs: ["create"]' in done.err
    assert world.job["metadata"]["namespace"] == "simulations"
    assert world.job["spec"]["template"]["spec"]["nodeName"] == "other"


async def test_without_a_revision_the_image_is_that_of_the_clusters_version(world: World) -> None:
    world.cluster.api.remove(KUBE_SCHEDULERS, "cluster")
    done = await world.run(*WHY, "-o", "json")
    assert done.code == 0, done.err
    assert any("runs with its defaults" in note for note in json.loads(done.out)["notes"])
    _, operand = world.job["spec"]["template"]["spec"]["initContainers"]
    assert operand["image"] == "registry.k8s.io/kube-scheduler:v1.35.4"


def ended_launcher(code: int) -> dict[str, Any]:
    """The container that copies the launcher, with its exit code."""
    ended = {"reason": "Error", "exitCode": code, "message": "No space left on device"}
    return {"name": "launcher", "state": {"terminated": ended}}


# --- what stops it --------------------------------------------------------------------------------


async def test_nothing_is_created_without_isolation(world: World) -> None:
    world.cluster.api.remove(NETWORK_POLICIES, "default-deny-all", NAMESPACE)
    done = await world.run(*WHY, "--in-cluster")
    assert done.code == 1
    assert "no NetworkPolicy there denies its egress" in done.err
    assert world.cluster.api.requests("POST") == []


async def test_without_a_place_to_run_the_message_has_both_reasons(world: World) -> None:
    world.cluster.api.remove(DEPLOYMENTS, "kube-scheduler-operator", NAMESPACE)
    done = await world.run(*WHY)
    assert done.code == 1
    assert "no kube-scheduler was found" in done.err
    assert "it cannot run in the cluster: Deployment" in done.err


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (
            {"containerStatuses": [{"name": "simulation", **waiting("InvalidImageName", "no: x")}]},
            "container simulation: InvalidImageName no: x",
        ),
        (
            {"phase": "Failed", "reason": "OutOfpods", "message": "Node didn't have enough pods"},
            "on node cp: OutOfpods Node didn't have enough pods",
        ),
        (
            {
                "phase": "Failed",
                "containerStatuses": [
                    {
                        "name": "simulation",
                        "state": {
                            "terminated": {"reason": "Error", "exitCode": 2, "message": "a\nusage"}
                        },
                    }
                ],
            },
            "on node cp: Error: usage",
        ),
        (
            {
                "phase": "Pending",
                "initContainerStatuses": [
                    ended_launcher(0),
                    {"name": "operand", **waiting("ErrImageNeverPull", "not here")},
                ],
                "containerStatuses": [{"name": "simulation", **waiting("PodInitializing", "")}],
            },
            "container operand: ErrImageNeverPull not here",
        ),
        (
            {"phase": "Failed", "initContainerStatuses": [ended_launcher(1)]},
            "on node cp: Error: No space left on device",
        ),
    ],
)
async def test_a_pod_that_does_not_start_is_explained_and_deleted(
    world: World, status: dict[str, Any], message: str
) -> None:
    world.status = status
    done = await world.run(*WHY)
    assert done.code == 1
    assert message in done.err
    assert "--job-node" in done.err
    assert len(world.deleted()) == 1


async def test_a_job_without_a_pod_is_explained_by_its_event(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_run, "_NO_POD", 0.3)

    async def no_pod() -> None:
        return

    async def events(request: web.Request) -> web.Response:
        assert request.query["fieldSelector"].startswith("involvedObject.kind=Job,")
        return web.json_response({"metadata": {}, "items": [{"message": "exceeded quota: pods=0"}]})

    world.cluster.api.routes["/events"] = events
    monkeypatch.setattr(world, "kubelet", no_pod)
    done = await world.run(*WHY)
    assert (done.code, len(world.deleted())) == (1, 1)
    assert "exceeded quota: pods=0" in done.err


async def test_a_job_that_cannot_be_deleted_is_left_to_the_cluster(world: World) -> None:
    world.cluster.api.fail(403, method="DELETE", path="/jobs", reason="Forbidden", times=None)
    done = await world.run(*WHY)
    assert done.code == 0
    assert "is deleted by the cluster" in done.err
