"""What a kubelet reports: the states of containers, the status of a Pod, nodes and mirror Pods.

The statuses have all fields that a real API server requires; times are texts in RFC 3339.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kube_scheduler_operator.base import names

from ..builders import Object, condition, ready_condition

MESSAGE_LIMIT = 2048
"""The length to which a kubelet cuts a termination message from a log."""


def terminated(code: int, message: str, at: str) -> Object:
    """The state of a container that ended."""
    reason = "Completed" if code == 0 else "Error"
    ended = {"exitCode": code, "reason": reason, "message": message[-MESSAGE_LIMIT:]}
    return {"terminated": {**ended, "finishedAt": at}}


def waiting(reason: str, message: str) -> Object:
    """The state of a container that does not run."""
    return {"waiting": {"reason": reason, "message": message}}


def running(at: str) -> Object:
    """The state of a container that runs since `at`."""
    return {"running": {"startedAt": at}}


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
    return {
        "phase": "Running",
        "conditions": [ready_condition(lastTransitionTime=at)],
        "containerStatuses": [
            container_status(container["name"], running(at), is_ready=True)
            for container in pod["spec"]["containers"]
        ],
    }


def ended_status(container: str, code: int, message: str, at: str) -> Object:
    """The status of a Pod whose container ended for good."""
    state = terminated(code, message, at)
    return {
        "phase": "Failed" if code else "Succeeded",
        "containerStatuses": [container_status(container, state)],
    }


def refused_status(message: str, at: str) -> Object:
    """The status of a Pod whose kube-scheduler rejected its configuration in the preflight."""
    preflight = container_status(
        names.PREFLIGHT,
        waiting("CrashLoopBackOff", "back-off 10s"),
        restarts=1,
        last_state=terminated(1, message, at),
    )
    return {"phase": "Pending", "initContainerStatuses": [preflight]}


def node_status(at: str, since: str = "", *, is_ready: bool = True) -> Object:
    """The status of a Node that is Ready, or does not respond, since a time: `at` by default."""
    times = {"lastHeartbeatTime": at, "lastTransitionTime": since or at}
    ready = ("True", "KubeletReady", "kubelet is posting ready status")
    unknown = ("Unknown", "NodeStatusUnknown", "stopped posting")
    return {"conditions": [condition("Ready", *(ready if is_ready else unknown), **times)]}


def lease_spec(holder: str, at: str, seconds: int = 15) -> Object:
    """The spec of a Lease that a scheduler on a node, or in a Pod, renewed at `at`."""
    renewed = at.replace("Z", ".000000Z")
    return {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": renewed}


def mirror_pod(
    node: str,
    namespace: str,
    container: Mapping[str, Any],
    *,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    node_uid: str = "",
) -> Object:
    """The mirror Pod of a node's kube-scheduler."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node_uid}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{names.OPERAND}-{node}",
            "namespace": namespace,
            "labels": dict(labels),
            "annotations": dict(annotations),
            **({"ownerReferences": [owner]} if node_uid else {}),
        },
        "spec": {"nodeName": node, "containers": [{"name": names.OPERAND, **container}]},
    }
