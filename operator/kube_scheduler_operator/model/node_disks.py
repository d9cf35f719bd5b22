"""What is known of a node's disk, from programs that ran on it.

Labels, annotations and names of Pods are hints. A revision number counts when a program on the node
has read it from the disk: in the termination message of the node's guard or of an installer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from .operand_pods import OperandPod


@dataclass(frozen=True, slots=True)
class NodeDisk:
    """The state of one node's disk.

    Attributes:
        at: when it was read, by the clock of the node's kubelet.
        revision: the revision that was installed last and stayed healthy; 0: none.
        content: the content hash of that revision; empty if unknown.
        newest: the highest number of a verified revision on the node; 0: none.
        taken: the revision that the node has with other content than the API; 0: none.
        edits: the files that were changed by hand.
        edit: fingerprint of these changes; empty without any.
        labelled: the revision in the label of the manifest in place; 0: none.
        reported: whether the node's guard ended to report it.
    """

    at: datetime
    revision: int = 0
    content: str = ""
    newest: int = 0
    taken: int = 0
    edits: tuple[str, ...] = ()
    edit: str = ""
    labelled: int = 0
    reported: bool = False

    def is_current(self, pod: OperandPod) -> bool:
        """Whether it was read after the scheduler `pod` started."""
        return pod.started is not None and self.at >= pod.started


Disks = Mapping[str, NodeDisk]
"""Node -> the newest knowledge of its disk."""
