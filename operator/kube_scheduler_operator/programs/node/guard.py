"""The guard: exits when the scheduler's kubeconfig on this node changes.

`kubeadm certs renew` writes a new kubeconfig, and a scheduler that keeps running with the old one
loses access when its certificate expires. The guard has no API access: its termination message is
the new fingerprint, which the operator reads from the Pod's status. The operator then restarts the
schedulers one at a time and creates a guard for the new file.
"""

from __future__ import annotations

import logging
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final

from .exit_codes import EXIT_CHANGED
from .kubeconfig import fingerprint

log = logging.getLogger(__name__)


INTERVAL: Final = 5.0
"""Seconds between reads; two equal reads exclude a file that is being written."""


@dataclass(frozen=True, slots=True)
class GuardOptions:
    """The flags of `kube-scheduler-operator guard`, under their names."""

    kubeconfig: Path | None = None
    known: str = ""
    interval: float = INTERVAL
    termination_log: Path = Path("/dev/termination-log")


def main(options: GuardOptions) -> int:
    """Watch until the kubeconfig changes or SIGTERM; returns the exit code."""
    signal.signal(signal.SIGTERM, _end)
    if options.kubeconfig is None:
        log.info("No kubeconfig to watch on this platform; waiting for SIGTERM")
        while True:
            signal.pause()
    log.info("Watching %s", options.kubeconfig)
    found = wait_for_change(options.kubeconfig, options.known, options.interval)
    log.info("%s changed; new fingerprint: %s", options.kubeconfig, found)
    options.termination_log.write_text(found)
    return EXIT_CHANGED


def wait_for_change(path: Path, known: str, interval: float) -> str:
    """Wait until the fingerprint differs from `known` (or, if empty, the current one)."""
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
