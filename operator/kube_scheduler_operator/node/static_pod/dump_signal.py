"""Sends SIGUSR2 to the scheduler on this node, which then dumps its cache and queue to its log.

The process is identified by its static pod's UID in its mounts and by its command, and signalled
only if it has a handler for SIGUSR2, because the default action would kill it. The scheduler runs
as root like this program, so no capability is needed.

Source: k8s.io/kubernetes/pkg/scheduler/backend/cache/debugger/debugger.go
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .processes import operands

log = logging.getLogger(__name__)

SIGNAL: Final = signal.SIGUSR2
_OPERAND: Final = b"kube-scheduler"


@dataclass(frozen=True, slots=True)
class DumpSignalOptions:
    """The flags of `kube-scheduler-operator signal`, under their names."""

    pod_uid: str
    termination_log: Path = Path("/dev/termination-log")


def main(options: DumpSignalOptions) -> int:
    """Send the signal; 0 if exactly one process received it, else 1 and a termination message."""
    problem = send(options.pod_uid, Path("/proc"), os.kill)
    if not problem:
        return 0
    log.error("%s", problem)
    options.termination_log.write_text(problem)
    return 1


def send(pod_uid: str, proc: Path, kill: Callable[[int, int], None]) -> str:
    """Signal the scheduler of a static pod; return the error, or "".

    `pod_uid` is the kubelet's UID of the static pod, not that of its mirror pod.
    """
    schedulers = operands(proc, {pod_uid}, _OPERAND.decode())
    pids = [process.pid for process in schedulers if _is_scheduler(proc / str(process.pid))]
    if len(pids) != 1:
        found_pids = f"{len(pids)} processes {sorted(pids)}" if pids else "no process"
        return (
            f"found {found_pids} of static pod {pod_uid} instead of one kube-scheduler with a "
            "handler for SIGUSR2"
        )
    try:
        kill(pids[0], SIGNAL)
    except OSError as error:
        return f"sending SIGUSR2 to process {pids[0]} failed: {error.strerror}"
    log.info("Sent SIGUSR2 to process %d", pids[0])
    return ""


def _is_scheduler(process: Path) -> bool:
    """Return whether the process is kube-scheduler itself, not a shell, and handles SIGUSR2."""
    try:
        command = (process / "cmdline").read_bytes().split(b"\0")
        status = (process / "status").read_text()
    except OSError:
        return False  # the process has ended
    program = command[0].rpartition(b"/")[2]
    return (program == _OPERAND or command[1:2] == [_OPERAND]) and _catches(status, SIGNAL)


def _catches(status: str, number: int) -> bool:
    """Return whether /proc/PID/status lists a handler for the signal (proc(5), SigCgt)."""
    for line in status.splitlines():
        name, _, mask = line.partition(":")
        if name == "SigCgt":
            return bool(int(mask, 16) >> (number - 1) & 1)
    return False
