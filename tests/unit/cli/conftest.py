"""A cluster as `kubectl scheduler` meets it: revisions as the operator cuts them, a small API."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import WSMsgType, web

from kube_scheduler_operator.__main__ import kubectl_plugin, main
from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.config.effective.control_plane.compose import compose
from kube_scheduler_operator.config.effective.control_plane.recorded_inputs import record
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.kube.resource import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    KUBE_SCHEDULERS,
    LEASES,
    PODS,
    SCHEDULERS,
    SECONDARY_SCHEDULERS,
)
from kube_scheduler_operator.operator.controlplane.revision.content import RevisionContent
from kube_scheduler_operator.operator.controlplane.target_config_maps import target_data
from kube_scheduler_operator.simulate.kinds import REPLICA_SETS

from ...control_plane_inputs import inputs_of
from ..kube.conftest import FakeApi
from ..kube.conftest import api as api

IMAGE = "registry.k8s.io/kube-scheduler:v1.35.4"
NAMESPACE = KUBEADM.target_namespace
INSTALLED = names.OUTCOME_INSTALLED
PORTFORWARD = "/portforward"
WHOLE_TEST = 3600.0
"""Seconds; a machine may be busy."""


async def relay(request: web.Request, port: int) -> web.StreamResponse:
    """A port-forward as the kubelet serves it (WebSocket, v4.channel.k8s.io), to a local port."""
    asked = int(request.query["ports"])
    transport = request.transport  # the request forgets it when the server shuts down
    assert transport is not None
    socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
    await socket.prepare(request)
    for channel in (0, 1):
        await socket.send_bytes(bytes([channel]) + struct.pack("<H", asked))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def back() -> None:
        while data := await reader.read(16384):
            await socket.send_bytes(b"\x00" + data)
        await socket.close()

    task = asyncio.create_task(back())
    try:
        async for message in socket:
            if message.type is WSMsgType.BINARY and message.data[0] == 0:
                writer.write(message.data[1:])
        writer.close()
        with suppress(ConnectionError):
            await task
    finally:  # also if the test ends before the command has closed the connection
        writer.close()
        task.cancel()
        transport.abort()  # a client that has gone never reads what is not sent yet
    return socket


def content(
    profile: str | None = None,
    image: str = IMAGE,
    profiles: Sequence[Mapping[str, Any]] = (),
    **spec: Any,
) -> RevisionContent:
    """What the operator makes of these inputs; `profiles` are SchedulerProfiles."""
    scheduler = {"spec": {"profile": profile} if profile is not None else {}}
    version = Version.parse(image.rpartition(":")[2])
    further = tuple(profiles)
    inputs = inputs_of(KUBEADM, version, scheduler, {"spec": spec}, profiles=further)
    composition = compose(inputs)
    assert not composition.blocking, composition.findings
    reason = spec.get("forceRedeploymentReason", "")
    data = target_data(KUBEADM, composition, image, reason)
    return RevisionContent(data, record(scheduler, {"spec": spec}))


def objects(
    number: int,
    made: RevisionContent,
    outcome: str = INSTALLED,
    message: str = "",
    reason: str = "required configmap/config has changed",
) -> dict[str, Any]:
    """The ConfigMaps of a revision, by name."""
    annotations = {names.REVISION_READY_ANNOTATION: "true"}
    if outcome:
        annotations[names.OUTCOME_ANNOTATION] = outcome
        annotations[names.OUTCOME_TIME_ANNOTATION] = f"2026-01-0{number}T00:01:00Z"
    if message:
        annotations[names.OUTCOME_MESSAGE_ANNOTATION] = message
    data = {"revision": str(number), "reason": reason, "hash": made.hash}
    if made.inputs:
        data[names.INPUTS_KEY] = made.inputs
    found: dict[str, Any] = {f"revision-status-{number}": data}
    found |= {f"{name}-{number}": dict(part) for name, part in made.parts.items()}
    labels = dict(names.OWN_LABELS)
    return {
        name: {
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "labels": labels,
                "creationTimestamp": f"2026-01-0{number}T00:00:00Z",
                "annotations": annotations if name.startswith(names.REVISION_STATUS) else {},
            },
            "data": data,
        }
        for name, data in found.items()
    }


def scheduler_pod(node: str, revision: int, **status: Any) -> dict[str, Any]:
    """The mirror pod of a scheduler."""
    container = {
        "name": names.OPERAND,
        "image": IMAGE,
        "command": ["kube-scheduler"],
        "args": ["--config=/x", "-v=2"],
    }
    return {
        "metadata": {
            "name": KUBEADM.mirror_pod_name(node),
            "namespace": KUBEADM.operand_namespace,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {**dict(KUBEADM.static_pod_labels), names.REVISION_LABEL: str(revision)},
            "annotations": {
                names.CONTENT_HASH_ANNOTATION: "cafe",
                names.KUBECONFIG_ANNOTATION: "f00",
            },
        },
        "spec": {"nodeName": node, "containers": [container]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], **status},
    }


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


@dataclass
class Cluster:
    """The API that the commands talk to."""

    api: FakeApi
    kubeconfig: Path
    capsys: pytest.CaptureFixture[str]

    def put(self, resource: Any, obj: dict[str, Any]) -> None:
        self.api.put(
            resource,
            obj["metadata"]["name"],
            obj["metadata"].get("namespace"),
            metadata={"uid": "u", **obj["metadata"]},
            **{key: value for key, value in obj.items() if key != "metadata"},
        )

    def revision(self, number: int, made: RevisionContent, **how: Any) -> None:
        for obj in objects(number, made, **how).values():
            self.put(CONFIG_MAPS, obj)

    def kubescheduler(self, nodes: dict[str, int], **fields: Any) -> None:
        """KubeScheduler "cluster" whose nodes run these revisions."""
        statuses = [{"nodeName": node, "currentRevision": n} for node, n in nodes.items()]
        latest = max(nodes.values(), default=0)
        status = {"latestAvailableRevision": latest, "nodeStatuses": statuses, "conditions": []}
        status |= fields.pop("status", {})
        obj = {
            "metadata": {"name": names.CLUSTER, "generation": 1},
            "spec": fields,
            "status": status,
        }
        self.put(KUBE_SCHEDULERS, obj)

    def lease(self, namespace: str, name: str, holder: str = "a_1", age: float = 0.0) -> None:
        """A Lease that its holder renewed `age` seconds ago; 0: renewed during the whole test."""
        renewed = (datetime.now(UTC) - timedelta(seconds=age or -WHOLE_TEST)).isoformat()
        spec = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}
        self.api.served.add(LEASES)
        self.put(LEASES, {"metadata": {"name": name, "namespace": namespace}, "spec": spec})

    def operator_runs(self, leader: str = "a") -> None:
        """The operator leads, and so does the scheduler of a node."""
        space, own = KUBEADM.operator_namespace, KUBEADM.operator
        metadata = {"name": own.deployment, "namespace": space}
        self.api.served.add(DEPLOYMENTS)
        self.put(
            DEPLOYMENTS,
            {"metadata": metadata, "spec": {"replicas": 2}, "status": {"readyReplicas": 2}},
        )
        self.lease(space, own.lease)
        self.lease(KUBEADM.operand_lease_namespace, KUBEADM.operand_lease_name, f"{leader}_x")

    def secondary_runs(self, obj: dict[str, Any], **status: Any) -> None:
        """A SecondaryScheduler, whose Pods are Ready; `status` is that of the Pods instead."""
        self.api.served |= {DEPLOYMENTS, PODS, REPLICA_SETS, SECONDARY_SCHEDULERS}
        name, spec = obj["metadata"]["name"], {"namespace": NAMESPACE, "replicas": 1, **obj["spec"]}
        metadata = {"uid": f"scheduler-{name}", **obj["metadata"]}
        self.put(SECONDARY_SCHEDULERS, {**obj, "metadata": metadata, "spec": spec})
        owner = SECONDARY_SCHEDULERS.owner(name, metadata["uid"])
        own = {"namespace": spec["namespace"], "labels": {names.SECONDARY_LABEL: name}}
        for kind in (DEPLOYMENTS, REPLICA_SETS):
            uid = f"{kind.kind}-{name}"
            made = {"name": name, "uid": uid, "ownerReferences": [owner], **own}
            self.put(kind, {"metadata": made, "spec": {"replicas": spec["replicas"]}})
            owner = kind.owner(name, uid)
        for at in range(spec["replicas"]):
            made = {
                "name": f"{name}-{at}",
                "uid": f"{name}-{at}",
                "ownerReferences": [owner],
                **own,
            }
            ready = {"conditions": [{"type": "Ready", "status": "True"}]}
            self.put(PODS, {"metadata": made, "spec": {"nodeName": "a"}, "status": status or ready})
        self.lease(spec["namespace"], name, f"{name}-0_x")

    async def run(self, *arguments: str) -> Done:
        """`kubectl scheduler ARGUMENTS`."""
        argv = [*arguments, "--kubeconfig", str(self.kubeconfig)]
        code = await asyncio.to_thread(kubectl_plugin, argv)
        printed = self.capsys.readouterr()
        return Done(code, printed.out, printed.err)


OnFile = Callable[..., tuple[int, Any, str]]


@pytest.fixture
def on_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> OnFile:
    """Runs a command that needs no cluster on a file of these documents.

    It returns the exit code, the JSON that was printed (None: nothing was) and standard error.
    """

    def run(name: str, *documents: Any) -> tuple[int, Any, str]:
        file = tmp_path / "in.yaml"
        file.write_text(yaml.safe_dump_all(documents))
        code = main([name, "-f", str(file), "-o", "json"])
        output = capsys.readouterr()
        return code, json.loads(output.out) if output.out else None, output.err

    return run


@pytest.fixture
def composed(on_file: OnFile) -> OnFile:
    """`compose` on a file of these documents; it returns what `on_file` does."""
    return partial(on_file, "compose")


@pytest.fixture
def cluster(api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cluster:
    """An API without objects of the operator."""
    api.served |= {KUBE_SCHEDULERS, CLUSTER_OPERATORS, SCHEDULERS, PODS}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        f"clusters: [{{name: c, cluster: {{server: '{api.url}'}}}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
        "users: [{name: u, user: {token: good}}]\n"
    )
    return Cluster(api, kubeconfig, capsys)
