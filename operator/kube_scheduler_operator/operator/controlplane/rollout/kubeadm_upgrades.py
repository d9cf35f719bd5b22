"""Upgrades by kubeadm: another version in kubeadm's manifest is a request, not drift.

`kubeadm upgrade` replaces the scheduler's manifest on one node after the other, each time after its
API server. It waits until the new manifest runs, so nothing is replaced while it works on a node.
Then the operator creates a revision with kubeadm's image and installs it on the nodes that kubeadm
has upgraded; other nodes keep their revision. If the configuration is not valid for the new
version, kubeadm's manifest stays: a stock scheduler of the right version is better than an older
one.

Programs on the node read what kubeadm wrote; mirror Pods do not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ....node.protocol.upgrade_request import is_upgrade, tag_of, version_of, why_not_followed
from ...model.operand_pods import Disks, NodeDisk
from ...model.snapshot import Snapshot
from ..revision.history import Revision
from .node_statuses import NodeStatus

LOOK_AGAIN: Final = 15.0
"""Seconds after which an installer looks again whether an upgrade still runs: on cordoned nodes,
where no guard reports its end."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Why a node does not get the desired revision; its current one is repaired (repairs.py)."""

    reason: str  # of a condition
    why: str  # its message
    work: bool = False  # whether `kubeadm upgrade` may be running on the node
    requested: str = ""  # the image that kubeadm wrote, if it stays
    unread: bool = False  # whether no program has read the node's disk

    @property
    def keeps_files(self) -> bool:
        """Whether what kubeadm wrote on the node must stay."""
        return self.work or bool(self.requested)


@dataclass(frozen=True, slots=True)
class Request:
    """A request to upgrade or downgrade one node."""

    image: str  # the image that kubeadm wrote
    before: str  # the image of the node's revision


Holds = Mapping[str, Hold]
"""Node -> why it does not get the desired revision."""

UNREAD: Final = NodeDisk()
"""A disk that no program has read."""

ImagedDisks = Mapping[str, tuple[NodeDisk, str]]
"""Node -> (its disk, or UNREAD; the image of its current revision)."""


def requested_image(snapshot: Snapshot, disks: Disks, own: str) -> str:
    """The image to upgrade or downgrade to, as kubeadm wrote it; empty without a request.

    `own` is the image of the newest installed revision.
    """
    if snapshot.settings.operand_image:
        return ""
    images = (
        disk.image
        for node, disk in disks.items()
        if node in snapshot.nodes and not disk.work and is_upgrade(disk.image, own, disk.api_server)
    )
    return max(images, key=lambda image: version_of(image) or (0, 0, 0), default="")


def with_images(
    disks: Disks, statuses: Sequence[NodeStatus], history: Sequence[Revision]
) -> ImagedDisks:
    current = {status.current for status in statuses}
    images = {
        revision.number: revision.content.image
        for revision in history
        if revision.number in current
    }
    return {
        status.node: (disks.get(status.node, UNREAD), images.get(status.current, ""))
        for status in statuses
    }


def holds(snapshot: Snapshot, disks: ImagedDisks, desired: str) -> dict[str, Hold]:
    """The nodes that do not get the desired revision, because of kubeadm.

    `desired` is the image of the desired revision.
    """
    return {
        node: hold
        for node, (disk, current) in disks.items()
        if (hold := _hold(snapshot, disk, current, desired)) is not None
    }


def _hold(snapshot: Snapshot, disk: NodeDisk, current: str, desired: str) -> Hold | None:
    if disk.work:
        return Hold(
            "DirectoryOfUpgrade",
            f"`kubeadm upgrade` uses /etc/kubernetes/tmp/{disk.work} or has left it; if kubeadm "
            "does not run, remove the directory",
            work=True,
        )
    if snapshot.settings.operand_image or not desired:
        return None
    version, own = version_of(desired), current or desired
    if is_upgrade(disk.image, own, disk.api_server) and version_of(disk.image) != version:
        return Hold(
            "Requested",
            f"kubeadm wrote {disk.image}, which stays until a revision for it can be installed",
            requested=disk.image,
        )
    server = version_of(disk.api_server)
    if disk is UNREAD and current and version not in (None, version_of(current)):
        return Hold(
            "VersionNotKnown",
            "the version of its API server is not known until a guard or an installer reads it",
            unread=True,
        )
    if None in (server, version) or not current or version in (server, version_of(current)):
        return None
    return Hold(
        "NodesNotUpgraded",
        f"run `kubeadm upgrade node` there: its API server is {tag_of(disk.api_server)}, and the "
        f"desired revision is for {tag_of(desired)}",
    )


def requests(snapshot: Snapshot, disks: ImagedDisks) -> dict[str, Request]:
    """Node -> the request in kubeadm's manifest there, if it has another version."""
    if snapshot.settings.operand_image:
        return {}
    return {
        node: Request(disk.image, current)
        for node, (disk, current) in disks.items()
        if is_upgrade(disk.image, current, disk.api_server)
    }


def refusals(snapshot: Snapshot, disks: ImagedDisks) -> dict[str, str]:
    """Node -> why another image in kubeadm's manifest there is replaced."""
    return {
        node: why
        for node, (disk, current) in disks.items()
        if (why := not_followed(snapshot, disk, current))
    }


def not_followed(snapshot: Snapshot, disk: NodeDisk, current: str) -> str:
    """Why another image in kubeadm's manifest is replaced; empty otherwise.

    `current` is the image of the node's revision.
    """
    if not disk.image or not current or disk.image == current:
        return ""
    if snapshot.settings.operand_image:
        return (
            f"kubeadm wrote {disk.image}, and OPERAND_IMAGE of the operator's Deployment sets "
            f"{snapshot.settings.operand_image}: unset it to follow upgrades by kubeadm"
        )
    why = why_not_followed(disk.image, current, disk.api_server)
    return f"kubeadm wrote {disk.image}, which is not followed: {why}" if why else ""
