"""Nodes whose revision must be installed again although they have already reached it.

Their manifest was changed, for example by `kubeadm init phase control-plane scheduler`: the
installer restores the revision, and keeps the manifest that it finds for the removal of the
operator. Or a file of the revision was edited, or their kubeconfig changed, which a scheduler reads
only when it starts. Upgrades by kubeadm are not drift (kubeadm_upgrades.py).

The content on its disk shows what a node runs (observe.py). The label of a mirror pod is only
a reason to look: an installer of the same revision does, and restarts nothing if nothing changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from ....base import names
from ....base.times import seconds_left, timestamp
from ...model.operand_pods import NodeDisk, OperandPod
from ...model.snapshot import Snapshot
from .node_statuses import NodeStatus
from .rollout_step import RolloutStep


def find_drift(step: RolloutStep) -> tuple[RolloutStep, Mapping[str, str]]:
    """Node -> why its revision is installed again; drift is tolerated for a moment.

    Mirror pods lag behind what a node runs.
    """
    snapshot, observation = step.snapshot, step.observation
    drifted = {}
    for status in step.node_statuses:
        pod, disk = observation.operands.get(status.node), observation.disks.get(status.node)
        if not step.is_ready(status.node) or status.target or not status.current:
            continue
        if step.is_kubeadms(status.node):
            continue
        edits = hand_edits(status, disk)
        if edits and disk is not None and not keeps_hand_edits(snapshot, status, disk):
            # The guard has read the files twice.
            drifted[status.node] = f"{described(disk)}: putting revision {status.current} back"
            continue
        if pod is None:
            since = _missing_since(snapshot)
        elif has_drifted(status, pod, disk):
            since = pod.created
        else:
            if changed_kubeconfig(disk, pod):
                path = snapshot.platform.scheduler_kubeconfig
                drifted[status.node] = f"{path} changed: restarting the scheduler"
            continue
        if since is None:
            continue
        left = seconds_left(snapshot.now, since, snapshot.settings.rollout.drift_tolerance)
        if left:
            step = step.with_requeue(left)
        else:
            drifted[status.node] = f"does not run revision {status.current}: putting it back"
    return step, drifted


def _missing_since(snapshot: Snapshot) -> datetime | None:
    """Since when a scheduler pod is known to be missing; the API itself has no time for that."""
    for condition in snapshot.status.get("conditions") or ():
        if condition["type"] == names.STATIC_PODS_DEGRADED and condition["status"] == "True":
            return timestamp(condition.get("lastTransitionTime"))
    return None


# --- how a node differs from its revision ------------------------------------------------------


def has_drifted(status: NodeStatus, pod: OperandPod, disk: NodeDisk | None) -> bool:
    """Whether a node seems to run something else, and its disk has not disproved it since.

    The mirror pod of a failed attempt may lag behind.
    """
    return _is_labelled_otherwise(status, pod) and not _disproves(disk, status, pod)


def has_edited_label(status: NodeStatus, pod: OperandPod, disk: NodeDisk | None) -> bool:
    """Whether the label of a mirror pod was edited in the API: the node's disk contradicts it."""
    return _is_labelled_otherwise(status, pod) and _disproves(disk, status, pod)


def hand_edits(status: NodeStatus, disk: NodeDisk | None) -> tuple[str, ...]:
    return disk.edits if status.current and disk is not None else ()


def described(disk: NodeDisk) -> str:
    """Name the files that were changed, and those that were deleted."""
    changed = [path for path in disk.edits if path not in disk.missing]
    parts = [f"{', '.join(changed)} changed"] if changed else []
    if disk.missing:
        verb = "was" if len(disk.missing) == 1 else "were"
        parts.append(f"{', '.join(disk.missing)} {verb} deleted")
    return " and ".join(parts)


def keeps_hand_edits(snapshot: Snapshot, status: NodeStatus, disk: NodeDisk) -> bool:
    """Whether hand edits of a node stay until the next revision."""
    numbers = {status.current, disk.revision, disk.labelled}
    return snapshot.platform.keeps_hand_edits and len(numbers) == 1


def changed_kubeconfig(disk: NodeDisk | None, pod: OperandPod) -> bool:
    """Whether the node's kubeconfig changed, and no installer has restarted `pod` since."""
    return disk is not None and disk.reported and disk.kubeconfig not in ("", pod.kubeconfig)


def _is_labelled_otherwise(status: NodeStatus, pod: OperandPod) -> bool:
    if not status.current:
        return False
    return pod.revision not in (status.current, status.failed_revision or status.current)


def _disproves(disk: NodeDisk | None, status: NodeStatus, pod: OperandPod) -> bool:
    return (
        disk is not None
        and disk.is_current(pod)
        and disk.revision == status.current
        and not disk.edits
    )
