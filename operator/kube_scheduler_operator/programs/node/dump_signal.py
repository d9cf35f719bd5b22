"""Sends SIGUSR2 to the scheduler on this node, which then writes its cache and queue into its log.

It must reach that process and no other: it is found by the UID of its static pod in its mounts and
by its command, and left alone unless it has a handler for the signal, which would else kill it.
The scheduler runs as root like this program, so no capability is needed to signal it.

Source: k8s.io/kubernetes/pkg/scheduler/backend/cache/debugger/debugger.go
"""

from __future__ import annotations

import logging
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .processes import operands

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)

SIGNAL: Final = signal.SIGUSR2
_OPERAND: Final = b"kube-scheduler"


@dataclass(frozen=True, slots=True)
class Options:
    """The flags of `kube-scheduler-operator signal`, under their names."""

    pod_uid: str
    termination_log: Path = Path("/dev/termination-log")


def main(options: Options) -> int:
    """Signal; 0 if exactly one process got it, 1 with a sentence in the termination log if not."""
    problem = send(options.pod_uid, Path("/proc"), os.kill)
    if not problem:
        return 0
    log.error("%s", problem)
    options.termination_log.write_text(problem)
    return 1


def send(pod_uid: str, proc: Path, kill: Callable[[int, int], None]) -> str:
    """Signal the scheduler of a static pod; what is in the way, "" if nothing is.

    Args:
        pod_uid: the kubelet's UID of the static pod, not that of its mirror in the API.
        proc: /proc of the node.
        kill: sends a signal to a process.
    """
    found = operands(proc, {pod_uid}, _OPERAND.decode())
    pids = [each.pid for each in found if _is_scheduler(proc / str(each.pid))]
    if len(pids) != 1:
        what = "no process" if not pids else f"more than one process ({sorted(pids)})"
        return f"{what} of static pod {pod_uid} is a scheduler that has a handler for SIGUSR2"
    try:
        kill(pids[0], SIGNAL)
    except OSError as error:
        return f"process {pids[0]} cannot be signalled: {error.strerror}"
    log.info("Process %d has SIGUSR2", pids[0])
    return ""


def _is_scheduler(process: Path) -> bool:
    """Whether it is kube-scheduler itself, not a helper beside it or its shell, and is prepared."""
    try:
        command = (process / "cmdline").read_bytes().split(b"\0")
        status = (process / "status").read_text()
    except OSError:
        return False  # it ended while being looked at
    program = command[0].rpartition(b"/")[2]
    return (program == _OPERAND or command[1:2] == [_OPERAND]) and _catches(status, SIGNAL)


def _catches(status: str, number: int) -> bool:
    """Whether /proc/PID/status says that a handler is installed (proc(5), SigCgt)."""
    for line in status.splitlines():
        name, _, mask = line.partition(":")
        if name == "SigCgt":
            return bool(int(mask, 16) >> (number - 1) & 1)
    return False
