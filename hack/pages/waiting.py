"""A small cluster in a file, with a pod that waits and one that runs."""

from __future__ import annotations

import json
from typing import Any

from cluster.releases import DEFAULT

ZONE = "topology.kubernetes.io/zone"
FILE = "cluster.json"
WORKLOAD = "api.yaml"
_CREATED = "2026-01-02T08:00:00Z"


def write_cluster() -> str:
    """The file, as `kubectl get nodes,pods --all-namespaces -o json` prints it."""
    nodes = [
        _node("worker-1", "a", "4"),
        _node("worker-2", "b", "4"),
        _node("worker-3", "b", "8", taints=[{"key": "gpu", "effect": "NoSchedule"}]),
        _node("worker-4", "c", "4", unschedulable=True),
    ]
    pods = [
        _pod("db-0", "2", nodeName="worker-1"),
        _pod("db-1", "2500m", nodeName="worker-2"),
        _pod("web-0", "500m", nodeName="worker-2"),
        _pod("web-1", "3", nodeSelector={"disk": "ssd"}),
        _pod("web-2", "3", nodeSelector={"disk": "ssd"}),
        _pod("report", "1", schedulingGates=[{"name": "example.com/quota"}]),
    ]
    items = {"apiVersion": "v1", "kind": "List", "items": [*nodes, *pods]}
    return json.dumps(items, indent=4)


def write_workload() -> str:
    """A Deployment that does not exist yet."""
    return """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: api
  namespace: shop
spec:
  replicas: 3
  selector:
    matchLabels: {app: api}
  template:
    metadata:
      labels: {app: api}
    spec:
      containers:
      - name: main
        image: example
        resources:
          requests: {cpu: 500m, memory: 1Gi}
"""


def _node(name: str, zone: str, cpu: str, **spec: Any) -> dict[str, Any]:
    labels = {"kubernetes.io/hostname": name, ZONE: zone, "disk": "ssd"}
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "nodeInfo": {"kubeletVersion": DEFAULT},
        },
    }


def _pod(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": "1Gi"}
    container = {"name": "main", "image": "example", "resources": {"requests": requests}}
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name.partition("-")[0]}
    metadata = {
        "name": name,
        "namespace": "shop",
        "creationTimestamp": _CREATED,
        "ownerReferences": [{**owner, "uid": name, "controller": True}] if "-" in name else [],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"schedulerName": "default-scheduler", "containers": [container], **spec},
        "status": {"phase": "Running" if "nodeName" in spec else "Pending"},
    }
