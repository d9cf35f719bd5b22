"""What programs that ran on a node have read from its disk.

Labels, annotations and names of Pods are hints. A revision number counts when a program on the node
has read it from the disk: in the termination message of its guard or of an installer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from ...node.protocol.disk_report import DiskReport
from .operand_pods import OperandPod


@dataclass(frozen=True, slots=True)
class NodeDisk(DiskReport):
    """The report of a guard, or what an installer's result shows of it."""

    taken: int = 0  # the revision that the node has with other content than the API; 0: none
    by_guard: bool = False  # whether the node's guard read it; otherwise an installer did
    reported: bool = False  # whether the guard ended to report it
    begun: datetime | None = None  # creation of the Pod that read it; None if unknown

    def is_current(self, pod: OperandPod) -> bool:
        """Whether it was read after the kubelet had the manifest of the scheduler `pod`.

        Creation times are the API server's; the start of a container is by the node's clock.
        """
        return self.begun is not None and pod.created is not None and self.begun >= pod.created


Disks = Mapping[str, NodeDisk]
"""Node -> the newest knowledge of its disk."""
