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
        revision: the revision that was installed last and stayed healthy; 0: none.
        content: the content hash of that revision; empty if unknown.
        newest: the highest number of a verified revision on the node; 0: none.
        taken: the revision that the node has with other content than the API; 0: none.
        edits: the files that were changed by hand.
        edit: fingerprint of these changes; empty without any.
        labelled: the revision in the label of the manifest in place; 0: none.
        image: the image in the manifest in place, if kubeadm wrote it; empty otherwise.
        api_server: the image of the node's API server; empty if unknown.
        work: the directory of a running `kubeadm upgrade`; empty without one.
        kubeconfig: fingerprint of the scheduler's kubeconfig; empty if unknown.
        by_guard: whether the node's guard read it; otherwise an installer did.
        reported: whether the guard ended to report it.
        begun: creation of the Pod that read it; None if unknown.
    """

    revision: int = 0
    content: str = ""
    newest: int = 0
    taken: int = 0
    edits: tuple[str, ...] = ()
    edit: str = ""
    labelled: int = 0
    image: str = ""
    api_server: str = ""
    work: str = ""
    kubeconfig: str = ""
    by_guard: bool = False
    reported: bool = False
    begun: datetime | None = None

    def is_current(self, pod: OperandPod) -> bool:
        """Whether it was read after the kubelet had the manifest of the scheduler `pod`.

        Creation times are the API server's; the start of a container is by the node's clock.
        """
        return self.begun is not None and pod.created is not None and self.begun >= pod.created


Disks = Mapping[str, NodeDisk]
"""Node -> the newest knowledge of its disk."""
