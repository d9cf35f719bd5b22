"""Nodes without a kubelet, for tests with a real kube-scheduler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .conftest import ApiServer, RefusedError


def make_node(
    api: ApiServer,
    name: str,
    spec: Mapping[str, Any],
    labels: Mapping[str, str] | None = None,
    cpu: str = "4",
    memory: str = "8Gi",
) -> None:
    """A node that is Ready and has what a pod may ask for."""
    labels = {"kubernetes.io/hostname": name, **(labels or {})}
    amounts = {"cpu": cpu, "memory": memory, "pods": "110"}
    made = {"metadata": {"name": name, "labels": labels}, "spec": spec}
    api.request("POST", "/api/v1/nodes", made)
    ready = {"type": "Ready", "status": "True", "reason": "x", "message": "x"}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [ready]}
    change(api, f"/api/v1/nodes/{name}", "/status", lambda node: node.update(status=status))
    taints = spec.get("taints", [])  # without the one for new nodes
    change(api, f"/api/v1/nodes/{name}", "", lambda node: node["spec"].update(taints=taints))


def change(api: ApiServer, path: str, part: str, edit: Callable[[Any], None]) -> None:
    """Write what is read until nobody else wrote in between: controllers look at nodes as well."""
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
