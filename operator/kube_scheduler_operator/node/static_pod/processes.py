"""Finds the schedulers on this node through /proc, without API, container runtime or capability.

A container mounts a file of its pod's directory (`/dev/termination-log`), so `mountinfo` has the
pod's UID; revisions mount their own directory, so it also has the revision. The kubelet's log
directories show which UIDs belong to the static pod on this node. That excludes all other
schedulers: secondary ones in pods, and those of other nodes where several nodes share a machine.
mountinfo is readable without CAP_SYS_PTRACE, unlike /proc/PID/ns.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_POD: Final = re.compile(r"/pods/([0-9a-f-]{32,36})/(?:containers/|etc-hosts)")
_REVISION: Final = re.compile(r"/kube-scheduler-pod-([1-9][0-9]*)(?://deleted)?$")
_SIDECAR: Final = b"cluster-kube-scheduler-operator"
"""The program of the other containers in the static Pod of OpenShift's operator."""

_RESOURCES: Final = "/etc/kubernetes/static-pod-resources"
_ROOT_FIELD: Final = 3
_MOUNT_POINT_FIELD: Final = 4
_START_TIME_FIELD: Final = 19  # field 22 of proc(5), counted after the command's closing bracket


@dataclass(frozen=True, slots=True)
class SchedulerProcess:
    pid: int
    started: int  # its start time in clock ticks since boot; unique together with the pid
    pod_uid: str  # UID of its static pod
    revision: int | None  # the revision whose directory it mounts; None for the stock manifest


def operands(proc: Path, pod_uids: Collection[str], operand: str) -> tuple[SchedulerProcess, ...]:
    """Find processes of the pods `pod_uids` that have `operand` in their command line.

    The text is searched first; reading the mounts of every process would be slow.
    """
    needle = operand.encode()
    schedulers = []
    for process in proc.iterdir():
        if not process.name.isdigit():
            continue
        try:
            command = (process / "cmdline").read_bytes()
            if needle not in command or _SIDECAR in command:
                continue
            pod_uid, revision = parse_mounts((process / "mountinfo").read_text(errors="replace"))
            if pod_uid not in pod_uids:
                continue
            started = parse_start_time((process / "stat").read_text(errors="replace"))
        except (OSError, ValueError):
            continue  # the process has ended or is not readable
        schedulers.append(SchedulerProcess(int(process.name), started, pod_uid, revision))
    return tuple(schedulers)


def parse_mounts(mountinfo: str) -> tuple[str, int | None]:
    """Read the pod UID ("" outside of pods) and the revision (or None) from a mountinfo."""
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
    """Return the start time in /proc/PID/stat; its command may contain spaces and parentheses."""
    return int(stat.rpartition(")")[2].split()[_START_TIME_FIELD])
