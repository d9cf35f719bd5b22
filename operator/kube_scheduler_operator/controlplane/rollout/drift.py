"""Nodes whose revision must be installed again although they have already reached it.

Their manifest was changed, for example by `kubeadm upgrade`: the revision is put back, and the
installer keeps what it finds, so that it can be restored when the operator is removed. Or their
kubeconfig changed, which a scheduler reads only when it starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from ...base import names
from ...base.times import timestamp
from ...model.operand_pods import OperandPod
from ...model.snapshot import Snapshot
from .guards import changed_kubeconfig
from .node_statuses import NodeStatus
from .observe import Observation
from .result import RolloutResult


def has_drifted(status: NodeStatus | None, pod: OperandPod) -> bool:
    """Whether a node runs something else; the mirror pod of a failed attempt may lag behind."""
    if status is None or not status.current:
        return False
    return pod.revision not in (status.current, status.failed_revision or status.current)


def find_drift(
    snapshot: Snapshot, observation: Observation, result: RolloutResult
) -> tuple[RolloutResult, Mapping[str, str]]:
    """Node -> why its revision is installed again; drift is tolerated for a moment.

    Mirror pods lag behind what a node runs.
    """
    drifted = {}
    for status in result.node_statuses:
        pod = observation.operands.get(status.node)
        if status.node in observation.not_ready or status.target or not status.current:
            continue
        if pod is None:
            since = _missing_since(snapshot)
        elif has_drifted(status, pod):
            since = pod.created
        else:
            if changed_kubeconfig(snapshot, pod):
                path = snapshot.platform.scheduler_kubeconfig
                drifted[status.node] = f"{path} changed: restarting the scheduler"
            continue
        if since is None:
            continue
        left = snapshot.settings.rollout.drift_tolerance - (snapshot.now - since).total_seconds()
        if left > 0:
            result = result.with_requeue(left)
        else:
            drifted[status.node] = f"does not run revision {status.current}: putting it back"
    return result, drifted


def _missing_since(snapshot: Snapshot) -> datetime | None:
    """Since when a scheduler pod is known to be missing; the API itself has no time for that."""
    for condition in snapshot.status.get("conditions") or ():
        if condition["type"] == names.STATIC_PODS_DEGRADED and condition["status"] == "True":
            return timestamp(condition.get("lastTransitionTime"))
    return None
