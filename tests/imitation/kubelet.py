"""What a kubelet reports: the states of containers, the status of a Pod, and mirror Pods.

The statuses have all fields that a real API server requires.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kube_scheduler_operator.base import names

from ..builders import Object, condition, terminated


def container_status(
    name: str,
    state: Mapping[str, Any],
    *,
    is_ready: bool = False,
    restarts: int = 0,
    last_state: Mapping[str, Any] | None = None,
) -> Object:
    return {
        "name": name,
        "ready": is_ready,
        "restartCount": restarts,
        "image": "x",
        "imageID": "",
        "state": dict(state),
        **({"lastState": dict(last_state)} if last_state else {}),
    }


def ready_status(pod: Mapping[str, Any], at: str) -> Object:
    """The status of a Pod that is Ready since `at`."""
    running = {"running": {"startedAt": at}}
    return {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": at}],
        "containerStatuses": [
            container_status(container["name"], running, is_ready=True)
            for container in pod["spec"]["containers"]
        ],
    }


def refused_status(message: str, at: str) -> Object:
    """The status of a Pod whose kube-scheduler rejected its configuration in the preflight."""
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 10s"}
    preflight = container_status(
        names.PREFLIGHT,
        {"waiting": waiting},
        restarts=1,
        last_state=terminated(1, message, at, startedAt=at),
    )
    return {"phase": "Pending", "initContainerStatuses": [preflight]}


def node_status(at: str, **ready: str) -> Object:
    """The status of a Node that is Ready; `ready` are other fields of that condition."""
    times = {"lastHeartbeatTime": at, "lastTransitionTime": at}
    return {"conditions": [condition("Ready", "True", "KubeletReady", **{**times, **ready})]}


def mirror_pod(
    node: str,
    namespace: str,
    container: Mapping[str, Any],
    *,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    owners: Sequence[Mapping[str, Any]] = (),
) -> Object:
    """The mirror Pod of a node's kube-scheduler."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{names.OPERAND}-{node}",
            "namespace": namespace,
            "labels": dict(labels),
            "annotations": dict(annotations),
            **({"ownerReferences": [dict(owner) for owner in owners]} if owners else {}),
        },
        "spec": {"nodeName": node, "containers": [dict(container)]},
    }
