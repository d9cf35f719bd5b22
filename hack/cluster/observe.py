"""Watching a rollout from outside, as a user would: for the demo, the benchmarks and the tests."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cluster import nodes, processes
from cluster.api import Api, ApiError, Object
from cluster.console import SandboxError

if TYPE_CHECKING:
    from cluster.model import Node, Sandbox

SCHEDULER = "/apis/config.openshift.io/v1/schedulers/cluster"
KUBESCHEDULER = "/apis/operator.openshift.io/v1/kubeschedulers/cluster"
CLUSTEROPERATOR = "/apis/config.openshift.io/v1/clusteroperators/kube-scheduler"
OPERATOR_NAMESPACE = "kube-scheduler-operator"
_POLL = 0.1


@dataclass
class Timeline:
    """When an edit had which effect."""

    revision: int = 0  # the revision that the edit led to; 0 if none
    # stage -> seconds since the edit, in the order in which the stages were seen
    seconds: dict[str, float] = field(default_factory=dict)
    # duration of the installer's steps, in seconds
    steps: dict[str, float] = field(default_factory=dict)
    outcome: str = ""  # "installed", "refused", "failed", or "rejected" when no revision was made
    message: str = ""  # what the user reads if it was not installed


def edit(api: Api, path: str, patch: Object, timeout: float = 180.0) -> Timeline:
    """Patch an object and follow the rollout to its end.

    Raises:
        SandboxError: nothing came of it in time.
    """
    before = _state(api)
    api.request("PATCH", path, patch)
    return follow(api, before, time.monotonic(), timeout)


def follow(api: Api, before: Object, start: float, timeout: float = 180.0) -> Timeline:
    """Follow what happens after an edit made at `start`, from the state `before` it."""
    line = Timeline()
    old = before.get("status", {}).get("latestAvailableRevision", 0)
    known = _bad_conditions(before)
    while (now := time.monotonic() - start) < timeout:
        state = _state(api)
        status = state.get("status", {})
        latest = status.get("latestAvailableRevision", 0)
        if latest > old and not line.revision:
            line.revision = latest
            line.seconds["revision"] = now
        entries = status.get("nodeStatuses", [])
        if line.revision:
            _stages(api, line, now)
            if entries and all(e.get("currentRevision") == line.revision for e in entries):
                line.seconds["healthy"] = now
                line.outcome = "installed"
                return line
        bad = _bad_conditions(state)
        for kind, message in bad.items():
            if known.get(kind) != message and kind in _RESULTS:
                line.seconds["result"] = now
                line.outcome, line.message = _RESULTS[kind], f"{kind}: {message}"
                return line
        if known and not bad and not line.revision and now > 1.0:
            line.seconds["settled"] = now
            line.outcome = "taken back"
            return line
        time.sleep(_POLL)
    raise SandboxError(f"the edit had no result within {timeout:.0f} s: {json.dumps(status)}")


# Conditions that end the story of an edit.
_RESULTS = {
    "UnsupportedConfigOverridesDegraded": "rejected",
    "TargetConfigControllerDegraded": "rejected",
    "ConfigObservationDegraded": "rejected",
    "PreflightDegraded": "refused",
    "NodeInstallerDegraded": "failed",
}


def _state(api: Api) -> Object:
    return api.request("GET", KUBESCHEDULER)


def _bad_conditions(state: Object) -> dict[str, str]:
    return {
        condition["type"]: condition.get("message", "")
        for condition in state.get("status", {}).get("conditions", [])
        if condition["type"] in _RESULTS and condition["status"] == "True"
    }


def _stages(api: Api, line: Timeline, now: float) -> None:
    """Take in how far the installer pods of the revision are."""
    path = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods?labelSelector=app%3Dinstaller"
    prefix = f"installer-{line.revision}-"
    for pod in api.request("GET", path)["items"]:
        if not pod["metadata"]["name"].startswith(prefix):
            continue
        line.seconds.setdefault("installer pod", now)
        status = pod.get("status", {})
        for container in status.get("containerStatuses", []):
            ended = container["state"].get("terminated")
            if not ended or ended.get("exitCode") != 0:
                continue
            if container["name"] == "preflight":
                line.seconds.setdefault("preflight passed", now)
            else:
                line.seconds.setdefault("installer done", now)
                line.steps = json.loads(ended.get("message") or "{}").get("steps", {})


def cluster_operator(api: Api) -> dict[str, tuple[str, str]]:
    """Condition type -> (status, message) of ClusterOperator kube-scheduler."""
    found = api.request("GET", CLUSTEROPERATOR)
    return {
        condition["type"]: (condition["status"], condition.get("message", ""))
        for condition in found.get("status", {}).get("conditions", [])
    }


def scheduler_processes(sandbox: Sandbox, node: Node) -> dict[int, list[str]]:
    """The kube-scheduler processes of a node, by pid, with their real command lines."""
    init = processes.find(sandbox, nodes.daemons(node)[0])
    if init is None:
        return {}
    network = _network(init.pid)
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
            name = Path(words[0]).name if words else ""
            if name == "kube-scheduler" and _network(int(folder.name)) == network:
                found[int(folder.name)] = words
        except (OSError, IndexError):
            continue
    return found


def _network(pid: int) -> str:
    return str(Path(f"/proc/{pid}/ns/net").readlink())


def schedule_pod(
    api: Api,
    *,
    name: str = "",
    cpu: str = "",
    selector: dict[str, str] | None = None,
    wait: bool = True,
    timeout: float = 60.0,
) -> tuple[str, str, float]:
    """Create a pod and wait until the scheduler has chosen a node.

    Returns:
        The pod's name, the node (empty if not waited for) and the seconds that it took.

    Raises:
        SandboxError: no node was chosen in time.
    """
    name = name or f"pod-{uuid.uuid4().hex[:6]}"
    container: dict[str, Any] = {"name": "pause", "image": "registry.k8s.io/pause:3.10"}
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu, "memory": "16Mi"}}
    spec: dict[str, Any] = {
        "containers": [container],
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
    }
    if selector:
        spec["nodeSelector"] = selector
    pods = "/api/v1/namespaces/default/pods"
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    start = time.monotonic()
    api.request("POST", pods, pod)
    if not wait:
        return name, "", 0.0
    node = ""

    def chosen() -> bool:
        nonlocal node
        node = api.request("GET", f"{pods}/{name}")["spec"].get("nodeName", "")
        return bool(node)

    until(chosen, timeout, f"pod {name} was not scheduled")
    return name, node, time.monotonic() - start


def delete_pod(api: Api, name: str, namespace: str = "default") -> None:
    """Delete a pod without waiting for it."""
    try:
        api.request(
            "DELETE",
            f"/api/v1/namespaces/{namespace}/pods/{name}",
            {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0},
        )
    except ApiError as error:
        if error.code != 404:
            raise


def until(ready: Callable[[], object], timeout: float, failed: str | Callable[[], str]) -> None:
    """Wait until something is so; errors of the API on the way do not count.

    `failed` describes the wait; if it is a function, it is called at the timeout.
    """
    deadline = time.monotonic() + timeout
    trouble = ""
    while time.monotonic() < deadline:
        try:
            if ready():
                return
        except ApiError as error:
            trouble = f" (last error: {error})"
        time.sleep(_POLL)
    description = failed if isinstance(failed, str) else failed()
    raise SandboxError(f"{description} within {timeout:.0f} s{trouble}")
