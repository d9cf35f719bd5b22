"""Which schedulers run on this node, from /proc: no API, no container runtime, no capability.

A container of a pod has a mount of the kubelet's directory of that pod (`/dev/termination-log`), so
`mountinfo` tells the pod's UID, and our revisions mount their own directory, so it tells the
revision. The kubelet's log directories tell which UIDs are the static pod's on this node. That
excludes every other scheduler: secondary ones in pods, and those of other nodes where several
nodes share a machine. mountinfo is readable without CAP_SYS_PTRACE, unlike /proc/PID/ns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

_POD: Final = re.compile(r"/pods/([0-9a-f-]{32,36})/(?:containers/|etc-hosts)")
_REVISION: Final = re.compile(r"/kube-scheduler-pod-([1-9][0-9]*)(?://deleted)?$")
_RESOURCES: Final = "/etc/kubernetes/static-pod-resources"
_ROOT_FIELD: Final = 3
_MOUNT_POINT_FIELD: Final = 4
_START_TIME_FIELD: Final = 19  # field 22 of proc(5), counted after the command's closing bracket


@dataclass(frozen=True, slots=True)
class Operand:
    """A running scheduler.

    Attributes:
        pid: its process.
        started: its start time in clock ticks since boot; with the pid it names a process for ever.
        pod_uid: the static pod that it belongs to.
        revision: the revision whose directory it has; None for the stock manifest's.
    """

    pid: int
    started: int
    pod_uid: str
    revision: int | None


def operands(proc: Path, pod_uids: Collection[str], operand: str) -> tuple[Operand, ...]:
    """The processes of the pods `pod_uids` that have `operand` on their command line.

    Args:
        proc: /proc of the node.
        pod_uids: UIDs of the static pod, past and present.
        operand: what to look for; reading every process's mounts would be slow.
    """
    needle = operand.encode()
    found = []
    for process in proc.iterdir():
        if not process.name.isdigit():
            continue
        try:
            if needle not in (process / "cmdline").read_bytes():
                continue
            pod_uid, revision = parse_mounts((process / "mountinfo").read_text(errors="replace"))
            if pod_uid not in pod_uids:
                continue
            started = parse_start_time((process / "stat").read_text(errors="replace"))
        except (OSError, ValueError):
            continue  # it ended while being looked at, or is none that we may look at
        found.append(Operand(int(process.name), started, pod_uid, revision))
    return tuple(found)


def parse_mounts(mountinfo: str) -> tuple[str, int | None]:
    """The pod's UID ("" if it is no pod's) and our revision (or None) in a process's mountinfo."""
    pod_uid, revision = "", None
    for line in mountinfo.splitlines():
        fields = line.split(" ", _MOUNT_POINT_FIELD + 1)
        if len(fields) <= _MOUNT_POINT_FIELD:
            continue
        root, mount_point = fields[_ROOT_FIELD], fields[_MOUNT_POINT_FIELD]
        if mount_point in ("/dev/termination-log", "/etc/hosts"):
            match = _POD.search(root)
            pod_uid = match[1] if match else pod_uid
        elif mount_point == _RESOURCES:
            match = _REVISION.search(root)
            revision = int(match[1]) if match else revision
    return pod_uid, revision


def parse_start_time(stat: str) -> int:
    """The start time in /proc/PID/stat; the command in it may contain blanks and brackets."""
    return int(stat.rpartition(")")[2].split()[_START_TIME_FIELD])
