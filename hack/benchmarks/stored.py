"""Nodes and Pods by the ten thousand, written to etcd as the API server stores them.

Through the API server, 100,000 running Pods are 200,000 requests, because a created Pod has no
status. etcd takes them in transactions of a hundred, through its HTTP gateway. The API server reads
JSON as well as its own protobuf, applies defaults, and sends the changes to all watches.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Final

from benchmarks.load import address
from cluster import hollow

if TYPE_CHECKING:
    from cluster.api import Object
    from cluster.model import Sandbox

CONTROL_PLANES: Final = 3
"""The first nodes of every cluster are its control plane."""

NAMESPACES: Final = 50
"""Number of the namespaces of the Pods."""

_OPERATIONS: Final = 100
"""Of a transaction; etcd allows 128 (--max-txn-ops)."""

_CONNECTIONS: Final = 4


class Storage:
    """The etcd of a sandbox without nodes."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._port = sandbox.etcd_ports[0]

    def put(self, objects: Iterable[tuple[str, Object]]) -> int:
        """Write objects by their keys; the number of bytes."""
        with ThreadPoolExecutor(_CONNECTIONS) as pool:
            return sum(pool.map(self._put, _batches(objects)))

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects by their keys."""
        for batch in _batches((key, {}) for key in keys):
            self._commit([{"requestDeleteRange": {"key": _text(key)}} for key, _ in batch])

    def _put(self, batch: list[tuple[str, Object]]) -> int:
        texts = [(key, json.dumps(obj, separators=(",", ":"))) for key, obj in batch]
        self._commit(
            [{"requestPut": {"key": _text(key), "value": _text(text)}} for key, text in texts]
        )
        return sum(len(text) for _, text in texts)

    def _commit(self, operations: list[Object]) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            connection.request("POST", "/v3/kv/txn", json.dumps({"success": operations}))
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != 200:
                raise RuntimeError(f"etcd responded with {answer.status}: {text[:500]!r}")
        finally:
            connection.close()


def _batches(objects: Iterable[tuple[str, Object]]) -> Iterator[list[tuple[str, Object]]]:
    iterator = iter(objects)
    while batch := list(islice(iterator, _OPERATIONS)):
        yield batch


def _text(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def namespaces() -> Iterator[str]:
    """The namespaces of the Pods."""
    return (f"team-{number:02}" for number in range(NAMESPACES))


def node(number: int) -> tuple[str, Object]:
    """A node as large as one of a kubelet, and its key."""
    made = hollow.node(number)
    metadata = made["metadata"]
    metadata |= {"uid": _uid(f"node {number}"), "creationTimestamp": _now()}
    metadata["labels"] = {**metadata["labels"], **_role(number)}
    made["status"]["addresses"] = [{"type": "InternalIP", "address": address(number)}]
    made |= {"apiVersion": "v1", "kind": "Node"}
    return f"/registry/minions/{metadata['name']}", made


def _role(number: int) -> dict[str, str]:
    if number < CONTROL_PLANES:
        return {"node-role.kubernetes.io/control-plane": ""}
    return {"node-role.kubernetes.io/worker": ""}


def pod(number: int, nodes: int) -> tuple[str, Object]:
    """A Pod of two containers that runs on one of the nodes, and its key."""
    namespace, name = f"team-{number % NAMESPACES:02}", f"service-{number:06}"
    return f"/registry/pods/{namespace}/{name}", {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": _uid(f"pod {number}"),
            "creationTimestamp": _now(),
            "labels": {"app": f"service-{number % 500}", "pod-template-hash": "5d4f8c7b9"},
            "annotations": {"checksum/config": _digest(f"config {number}")},
        },
        "spec": {
            "nodeName": hollow.name_of(number % nodes),
            "schedulerName": "default-scheduler",
            "serviceAccountName": "default",
            "restartPolicy": "Always",
            "dnsPolicy": "ClusterFirst",
            "terminationGracePeriodSeconds": 30,
            "priority": 0,
            "securityContext": {},
            "tolerations": [
                {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute",
                 "tolerationSeconds": 300}
                for key in ("not-ready", "unreachable")
            ],
            "volumes": [{"name": "token", "emptyDir": {}}, {"name": "cache", "emptyDir": {}}],
            "containers": [_container(name) for name in ("main", "proxy")],
        },
        "status": {
            "phase": "Running",
            "qosClass": "Burstable",
            "startTime": _now(),
            "podIP": "10.0.0.1",
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": _now()}
                for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "containerStatuses": [
                {"name": name, "ready": True, "started": True, "restartCount": 0,
                 "image": f"registry.example.com/{name}:v1", "imageID": _digest(name),
                 "containerID": f"containerd://{_digest(name + str(number))}",
                 "state": {"running": {"startedAt": _now()}}}
                for name in ("main", "proxy")
            ],
        },
    }  # fmt: skip


def event(number: int) -> tuple[str, Object]:
    """An event of a Pod, and its key; every fourth one is of its binding."""
    namespace, name = f"team-{number % NAMESPACES:02}", f"service-{number:06}.{number:x}"
    reason = ("Scheduled", "Pulled", "Created", "Started")[number % 4]
    return f"/registry/events/{namespace}/{name}", {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": _uid(f"event {number}"),
            "creationTimestamp": _now(),
        },
        "involvedObject": {"kind": "Pod", "namespace": namespace, "name": name},
        "reason": reason,
        "message": f"{reason} the Pod {namespace}/{name}",
        "type": "Normal",
        "eventTime": _now(precise=True),
        "reportingComponent": "default-scheduler" if reason == "Scheduled" else "kubelet",
        "reportingInstance": f"default-scheduler-{hollow.name_of(0)}",
        "action": "Binding",
    }


def _container(name: str) -> Object:
    return {
        "name": name,
        "image": f"registry.example.com/{name}:v1",
        "imagePullPolicy": "IfNotPresent",
        "env": [{"name": f"SETTING_{which}", "value": f"value-{which}"} for which in range(8)],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"memory": "256Mi"},
        },
        "readinessProbe": {
            "httpGet": {"path": "/readyz", "port": "http", "scheme": "HTTP"},
            "periodSeconds": 10, "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3,
        },
        "volumeMounts": [{"name": "cache", "mountPath": "/cache"}],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }  # fmt: skip


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _uid(text: str) -> str:
    digest = _digest(text)
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]))


def _now(*, precise: bool = False) -> str:
    return datetime.now(UTC).strftime(f"%Y-%m-%dT%H:%M:%S{'.%f' if precise else ''}Z")
