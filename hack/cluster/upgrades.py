"""Upgrades of nodes by kubeadm, and what runs on them afterwards."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cluster import kubeadm
from cluster.api import ApiError, condition
from cluster.observe import KUBESCHEDULER

if TYPE_CHECKING:
    from cluster.api import Api
    from cluster.model import Node, Sandbox


def runs(sandbox: Sandbox, api: Api, node: Node, version: str) -> bool:
    """Whether a node's scheduler is Ready, has a version, and is the operator's."""
    namespace, name = sandbox.scheduler_pod(node)
    pod = api.request("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")
    container = pod["spec"]["containers"][0]
    words = [*container["command"], *container.get("args", ())]
    ours = any(str(word).startswith("--config=") for word in words)
    image = f"registry.k8s.io/kube-scheduler:{version}"
    return ours and container["image"] == image and condition(pod, "Ready") == "True"


def upgrade(sandbox: Sandbox, node: Node, version: str) -> float:
    """Run `kubeadm upgrade` on a node that has the images; the seconds that it took.

    Raises:
        SandboxError: kubeadm fails.
    """
    begin = time.monotonic()
    kubeadm.upgrade(sandbox, node, version, first=node == sandbox.nodes[0])
    return time.monotonic() - begin


def state(api: Api) -> str:
    """The conditions of KubeScheduler and the revisions of nodes."""
    try:
        status = api.request("GET", KUBESCHEDULER).get("status", {})
    except ApiError as error:
        return str(error)
    lines = [
        f"{one['type']}={one['status']} {one.get('message', '')}"
        for one in status.get("conditions", ())
    ]
    return "\n".join([str(status.get("nodeStatuses")), *lines])
