"""What programs that ran on a node have read from its disk.

Labels, annotations and names of Pods are hints. A revision number counts when a program on the node
has read it from the disk: in the termination message of its guard or of an installer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from .operand_pods import OperandPod


@dataclass(frozen=True, slots=True)
class NodeDisk:
    revision: int = 0  # the revision that was installed last and stayed healthy; 0: none
    content: str = ""  # the content hash of that revision; empty if unknown
    newest: int = 0  # the highest number of a verified revision on the node; 0: none
    taken: int = 0  # the revision that the node has with other content than the API; 0: none
    edits: tuple[str, ...] = ()  # the files that were changed by hand
    edit: str = ""  # fingerprint of these changes; empty without any
    labelled: int = 0  # the revision in the label of the manifest in place; 0: none
    image: str = ""  # the image in the manifest in place, if kubeadm wrote it; empty otherwise
    api_server: str = ""  # the image of the node's API server; empty if unknown
    work: str = ""  # the directory of a running `kubeadm upgrade`; empty without one
    kubeconfig: str = ""  # fingerprint of the scheduler's kubeconfig; empty if unknown
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
