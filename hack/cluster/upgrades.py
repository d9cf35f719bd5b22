"""Upgrades of a control plane of several nodes by kubeadm, with everything that users have."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cluster import kubeadm
from cluster.api import ApiError, condition
from cluster.observe import CLUSTEROPERATOR, KUBESCHEDULER, SCHEDULER, until

if TYPE_CHECKING:
    from cluster.api import Api
    from cluster.model import Node, Sandbox

PROFILES = "/apis/kube-scheduler-operator.dev/v1alpha1/schedulerprofiles"
EXTENDERS = "/apis/kube-scheduler-operator.dev/v1alpha1/schedulerextenders"
PROFILE, EXTENDER = "batch", "pack-batch"

_AGENT = {
    "policies": [{"name": "pigeon-holing", "arguments": {"objective": "CONSOLIDATE"}}],
    "schedulerNames": [PROFILE],
}
_TIMEOUT = 420.0


def configure(api: Api) -> None:
    """HighNodeUtilization, a SchedulerProfile, and an extender with an agent on each node.

    Raises:
        SandboxError: The cluster does not run them in time.
    """
    kind = {"apiVersion": "kube-scheduler-operator.dev/v1alpha1"}
    api.request("PATCH", SCHEDULER, {"spec": {"profile": "HighNodeUtilization"}})
    profile = {"kind": "SchedulerProfile", "metadata": {"name": PROFILE}, "spec": {}}
    api.request("POST", PROFILES, {**kind, **profile})
    extender = {"kind": "SchedulerExtender", "metadata": {"name": EXTENDER}}
    api.request("POST", EXTENDERS, {**kind, **extender, "spec": {"agent": _AGENT}})
    until(lambda: is_configured(api), _TIMEOUT, lambda: f"not configured: {state(api)}")


def is_configured(api: Api) -> bool:
    """Whether profile, extender and all nodes are as `configure` makes them."""
    profile = api.request("GET", f"{PROFILES}/{PROFILE}")
    extender = api.request("GET", f"{EXTENDERS}/{EXTENDER}")
    accepted = condition(profile, "Accepted") == condition(extender, "Accepted") == "True"
    return accepted and condition(extender, "Available") == "True" and is_settled(api)


def is_settled(api: Api) -> bool:
    """Whether every node has the latest revision and nothing is Degraded."""
    status = api.request("GET", KUBESCHEDULER).get("status", {})
    latest = status.get("latestAvailableRevision")
    entries = status.get("nodeStatuses") or [{}]
    operator = api.request("GET", CLUSTEROPERATOR)
    return all(
        entry.get("currentRevision") == latest and not entry.get("targetRevision")
        for entry in entries
    ) and (condition(operator, "Degraded"), condition(operator, "Progressing")) == (
        "False",
        "False",
    )


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
