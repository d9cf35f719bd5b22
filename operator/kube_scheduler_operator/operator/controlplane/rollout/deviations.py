"""How a node differs from its revision: by its mirror pod's label, or by the files on its disk."""

from __future__ import annotations

from ...model.node_disks import NodeDisk
from ...model.operand_pods import OperandPod
from ...model.snapshot import Snapshot
from .node_statuses import NodeStatus


def has_drifted(status: NodeStatus | None, pod: OperandPod, disk: NodeDisk | None = None) -> bool:
    """Whether a node seems to run something else, and its disk has not disproved it since.

    The mirror pod of a failed attempt may lag behind.
    """
    if status is None or not _is_labelled_otherwise(status, pod):
        return False
    return not _disproves(disk, status, pod)


def has_edited_label(
    status: NodeStatus | None, pod: OperandPod, disk: NodeDisk | None = None
) -> bool:
    """Whether the label of a mirror pod was edited in the API: the node's disk contradicts it."""
    if status is None or not _is_labelled_otherwise(status, pod):
        return False
    return _disproves(disk, status, pod)


def hand_edits(status: NodeStatus | None, disk: NodeDisk | None) -> tuple[str, ...]:
    if status is None or not status.current or disk is None:
        return ()
    return disk.edits


def keeps_hand_edits(snapshot: Snapshot, status: NodeStatus, disk: NodeDisk) -> bool:
    """Whether hand edits of a node stay until the next revision."""
    numbers = {status.current, disk.revision, disk.labelled}
    return snapshot.platform.keeps_hand_edits and len(numbers) == 1


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
