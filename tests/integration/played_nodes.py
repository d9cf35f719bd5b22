"""Nodes without a kubelet, for tests with a real kube-scheduler."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from .conftest import ApiServer, RefusedError

SECONDS = 30
NEW = "node.kubernetes.io/not-ready"
"""The taint with which the API server admits every node."""


def make_node(
    api: ApiServer,
    name: str,
    spec: Mapping[str, Any],
    labels: Mapping[str, str] | None = None,
    cpu: str = "4",
    memory: str = "8Gi",
) -> None:
    """A node that is Ready, has what a pod may ask for and has the taints of `spec` alone.

    That it is new is for the node lifecycle controller to take back: who does it sooner can have it
    put there again by a controller that has not seen the node Ready yet.
    """
    labels = {"kubernetes.io/hostname": name, **(labels or {})}
    amounts = {"cpu": cpu, "memory": memory, "pods": "110"}
    made = {"metadata": {"name": name, "labels": labels}, "spec": spec}
    api.request("POST", "/api/v1/nodes", made)
    ready = {"type": "Ready", "status": "True", "reason": "x", "message": "x"}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [ready]}
    change(api, f"/api/v1/nodes/{name}", "/status", lambda node: node.update(status=status))
    until(lambda: NEW not in _taints(api, name), f"node {name} has still the taint {NEW}")


def until(done: Callable[[], object], what: str) -> None:
    """Wait for something that happens within SECONDS; `what` is the error otherwise."""
    end = time.monotonic() + SECONDS
    while not done():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def until_known(api: ApiServer, node: str, pods: str, scheduler_name: str) -> None:
    """Wait until a scheduler has seen everything that has happened to nodes so far.

    It watches nodes and pods separately, so a pod can reach it before an earlier change of a node.
    A new label of the node is the last change: where it is demanded, the change has been seen.

    Args:
        api: with the nodes.
        node: one with room for a small pod.
        pods: the path of a namespace's pods, for a pod that is gone afterwards.
        scheduler_name: of the scheduler.
    """
    mark = f"known-{time.monotonic_ns()}"
    labels = {"known": mark}
    change(api, f"/api/v1/nodes/{node}", "", lambda obj: obj["metadata"]["labels"].update(labels))
    requests = {"cpu": "1m", "memory": "1Mi"}
    spec = {
        "schedulerName": scheduler_name,
        "automountServiceAccountToken": False,
        "nodeSelector": labels,
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "c", "image": "none", "resources": {"requests": requests}}],
    }
    api.request("POST", pods, {"metadata": {"name": mark}, "spec": spec})
    path = f"{pods}/{mark}"
    until(
        lambda: api.request("GET", path)["spec"].get("nodeName"),
        f"{scheduler_name} does not know node {node} as it is",
    )
    api.request("DELETE", path, {"gracePeriodSeconds": 0})


def is_taken_up(node: Mapping[str, Any]) -> bool:
    """Whether controllers have done what they do with a node that is new or cordoned."""
    keys = {taint["key"] for taint in node["spec"].get("taints") or ()}
    cordoned = "node.kubernetes.io/unschedulable" in keys
    return NEW not in keys and cordoned == bool(node["spec"].get("unschedulable"))


def _taints(api: ApiServer, name: str) -> set[str]:
    node = api.request("GET", f"/api/v1/nodes/{name}")
    return {taint["key"] for taint in node["spec"].get("taints", [])}


def change(api: ApiServer, path: str, part: str, edit: Callable[[Any], None]) -> None:
    """Read and write until there is no conflict: controllers write nodes as well."""
    while True:
        node = api.request("GET", path)
        edit(node)
        try:
            api.request("PUT", path + part, node)
        except RefusedError as error:
            if "the object has been modified" not in str(error):
                raise
        else:
            return
