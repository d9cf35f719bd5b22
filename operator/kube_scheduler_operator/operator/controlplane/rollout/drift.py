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
from .node_statuses import NodeStatus, is_cordoned
from .rollout_step import RolloutStep


def find_drift(step: RolloutStep) -> tuple[RolloutStep, Mapping[str, str]]:
    """Node -> why its revision is installed again; drift is tolerated for a moment.

    Mirror pods lag behind what a node runs.
    """
    drifted = {}
    for status in step.node_statuses:
        if not step.is_ready(status.node) or status.target or not status.current:
            continue
        if _is_left_to_kubeadm(step, status.node):
            continue
        why, since = _certain(step, status), _suspected_since(step, status)
        if why:
            drifted[status.node] = why
        elif since is not None:
            tolerance = step.snapshot.settings.rollout.drift_tolerance
            left = seconds_left(step.snapshot.now, since, tolerance)
            if left:
                step = step.with_requeue(left)
            else:
                drifted[status.node] = f"does not run revision {status.current}: putting it back"
    return step, drifted


def _certain(step: RolloutStep, status: NodeStatus) -> str:
    """Why a revision is installed again at once; empty without a reason."""
    snapshot, hold = step.snapshot, step.holds.get(status.node)
    if hold is not None and hold.unread and is_cordoned(snapshot.nodes[status.node]):
        # It gets no guard. An installer of its own revision reads the disk.
        return "no program has read its disk: an installer reads it"
    pod = step.observation.operands.get(status.node)
    disk = step.observation.disks.get(status.node)
    edits = hand_edits(status, disk)
    if edits and disk is not None and not keeps_hand_edits(snapshot, status, disk):
        # The guard has read the files twice.
        return f"{disk.changes}: putting revision {status.current} back"
    if pod is None or has_drifted(status, pod, disk) or not changed_kubeconfig(disk, pod):
        return ""
    return f"{snapshot.platform.scheduler_kubeconfig} changed: restarting the scheduler"


def _suspected_since(step: RolloutStep, status: NodeStatus) -> datetime | None:
    """Since when the API shows no scheduler of the revision on a node; None if it shows one."""
    pod = step.observation.operands.get(status.node)
    if pod is None:
        return _missing_since(step.snapshot)
    disk = step.observation.disks.get(status.node)
    return pod.created if has_drifted(status, pod, disk) else None


def _is_left_to_kubeadm(step: RolloutStep, node: str) -> bool:
    """Whether kubeadm changes a node. Without a manifest, kubeadm fails until there is one."""
    disk = step.observation.disks.get(node)
    is_missing = node not in step.observation.operands and _lacks_manifest(step.snapshot, disk)
    return step.is_kubeadms(node) and not is_missing


def _lacks_manifest(snapshot: Snapshot, disk: NodeDisk | None) -> bool:
    """Whether a program on the node has found no manifest there."""
    if disk is None or disk.image or disk.labelled:
        return False
    return snapshot.platform.manifest_path in disk.edits


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
    """Whether a disk has the node's revision, and its manifest in place."""
    return (
        disk is not None
        and disk.is_current(pod)
        and disk.revision == disk.labelled == status.current
        and not disk.edits
    )
