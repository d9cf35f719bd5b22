"""The guard: ends when the scheduler's kubeconfig on this node has changed, and says so.

`kubeadm certs renew` writes a new one, and a scheduler that keeps running with the old one loses
its access when that expires. The guard has no API access: its termination message is the new
fingerprint, which the operator reads in the pod's status. It starts the schedulers again, one
after the other, and makes a guard that knows the new file.
"""

from __future__ import annotations

import logging
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .exit_codes import EXIT_CHANGED
from .kubeconfig import fingerprint

if TYPE_CHECKING:
    from types import FrameType

log = logging.getLogger(__name__)


INTERVAL: Final = 5.0
"""Seconds between looks; a file that is being written does not look the same twice."""


@dataclass(frozen=True, slots=True)
class Options:
    """The flags of `kube-scheduler-operator guard`, under their names."""

    kubeconfig: Path | None = None
    known: str = ""
    interval: float = INTERVAL
    termination_log: Path = Path("/dev/termination-log")


def main(options: Options) -> int:
    """Watch until there is something to say, or until SIGTERM; the exit code."""
    signal.signal(signal.SIGTERM, _end)
    if options.kubeconfig is None:
        log.info("Nothing to watch on this platform; being here is enough")
        while True:
            signal.pause()
    log.info("Now watching %s", options.kubeconfig)
    found = wait_for_change(options.kubeconfig, options.known, options.interval)
    log.info("%s has changed: %s", options.kubeconfig, found)
    options.termination_log.write_text(found)
    return EXIT_CHANGED


def wait_for_change(path: Path, known: str, interval: float) -> str:
    """Wait until the file is another one than `known`, or than now if that is empty; which one."""
    known = known or fingerprint(path)
    before = known
    while True:
        found = fingerprint(path)
        if found and found == before != known:
            return found
        before = found
        known = known or found
        time.sleep(interval)


def _end(_signal: int, _frame: FrameType | None) -> None:
    sys.exit(0)
