"""The guard: exits when the files that its node's scheduler was started from change.

`kubeadm certs renew` writes a new kubeconfig, and a scheduler that keeps running with the old one
loses access when its certificate expires. A person can also edit the manifest, or a file of the
revision, without any trace in the API. The guard has no API access: its termination message is a
report (node/protocol/disk_report.py), which the operator reads from the Pod's status.

The guard mounts what it reads and nothing beside it. When a file under a mount is replaced, it ends
for a new mount (mounts.py).

With `--look`, in an init container, it reports once and exits with code 0. So every new guard pod
begins with what is on the disk, and the operator can request another look with another Pod. A hand
edit that stays is known from an annotation of the Pod, which the kubelet projects into a file.
"""

from __future__ import annotations

import logging
import signal
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ...base import files
from ..protocol.disk_report import DiskReport
from ..protocol.message import EXIT_CHANGED, EXIT_DEFINITIVE, EXIT_RETRY
from . import kubeadm, mounts
from .disk_state import WatchedFiles, look
from .host import answers, boot_time
from .kubeconfig import api_server

log = logging.getLogger(__name__)


INTERVAL: Final = 2.0
"""Seconds between reads; two equal reads exclude a file that is being written."""


KNOWN_SOON: Final = 4
"""Reads after the start within which the operator marks an edit that it has seen as known."""


REPLACED_SECONDS: Final = 60.0
"""Seconds after which the guard ends because a file was replaced. Not at once: if the file were
missing when the container starts again, the container runtime would create a directory there."""


class ReplacedError(OSError):
    """A mount of this container no longer shows what is on the node."""


@dataclass(frozen=True, slots=True)
class GuardOptions(WatchedFiles):
    """The flags of `kube-scheduler-operator guard`, under their names."""

    known: str = ""
    known_edit: Path | None = None
    look: bool = False
    interval: float = INTERVAL
    termination_log: Path = Path("/dev/termination-log")


def main(options: GuardOptions) -> int:
    """Watch until a file changes or SIGTERM; return the exit code."""
    if options.look:
        _report(options, _look(options))
        return EXIT_DEFINITIVE
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    watched = (options.kubeconfig, options.manifest_path, options.resource_dir)
    log.info("Watching %s", ", ".join(str(path) for path in watched if path is not None))
    try:
        report = wait_for_change(options)
    except ReplacedError as error:
        log.info("%s", error)
        return EXIT_RETRY
    _report(options, report)
    log.info(
        "Ending with exit code %d, so that the operator reads this report: %s",
        EXIT_CHANGED,
        describe(report, options),
    )
    return EXIT_CHANGED


def describe(report: DiskReport, options: GuardOptions) -> str:
    """What a report has, in sentences, for a person who reads the log of a guard that restarts."""
    since = f"since revision {report.revision} was installed"
    found = [f"{report.changes} {since}"] if report.edits else []
    if report.kubeconfig not in ("", options.known):
        found.append(f"{options.kubeconfig} changed since the scheduler started")
    if report.work:
        found.append(f"`kubeadm upgrade` uses {report.work} or has left it")
    if report.image:
        found.append(f"kubeadm wrote a manifest with {report.image}")
    return "; ".join(found) or f"nothing is changed {since}"


def _look(watched: WatchedFiles) -> DiskReport:
    """Return a report with the time at which the look began, so that it never counts as newer."""
    read = boot_time()
    return replace(look(watched, time.time()), read=read)


def _report(options: GuardOptions, report: DiskReport) -> None:
    text = report.serialise()
    log.info("Found: %s", text)
    options.termination_log.write_text(text)


def wait_for_change(options: GuardOptions) -> DiskReport:
    """Wait for a state that the operator does not know; an empty kubeconfig is not a change.

    Nor is a new one while kubeadm, which renews it, writes the manifest: then nothing is restarted.
    The state at the start was probably reported before, so the operator gets time to mark it as
    known: every exit doubles the time after which the kubelet starts this program again.

    Raises:
        ReplacedError: only a new container can read the disk.
    """
    stale = _StaleMounts(options)
    known = options.known
    before: DiskReport | None = None
    looks, first = 0, ""
    while True:
        report = _look(options)
        data = files.read(options.known_edit) if options.known_edit is not None else None
        known_edit = (data or b"").decode(errors="replace").strip()
        known = known or report.kubeconfig
        renewed = report.kubeconfig not in ("", known) and not (report.work or report.image)
        looks, first = looks + 1, first if looks else report.edit
        is_old = report.edit == first and looks <= KNOWN_SOON
        edited = report.edit != known_edit and not is_old
        if report == before and (renewed or (edited and _has_api_server(options))):
            return report
        before = report
        stale.check()
        time.sleep(options.interval)


class _StaleMounts:
    """Counts the reads since which a mount has been stale."""

    def __init__(self, options: GuardOptions) -> None:
        paths = [options.kubeconfig, options.resource_dir]
        if manifest := options.manifest_path:
            paths += manifest.parent, kubeadm.upgrade_dir(manifest)
        self._paths = [path for path in paths if path is not None]
        self._interval = options.interval
        self._sources = mounts.sources(self._paths)
        self._reads = 0

    def check(self) -> None:
        """Raise ReplacedError if that was for REPLACED_SECONDS."""
        current = mounts.sources(self._paths)
        stale = [path for path, source in self._sources.items() if current.get(path) != source]
        self._reads = self._reads + 1 if stale else 0
        if self._reads * self._interval >= REPLACED_SECONDS:
            raise ReplacedError(f"{stale[0]} was replaced: starting again to read it")


def _has_api_server(options: GuardOptions) -> bool:
    """Return whether a report would arrive, as far as the scheduler's kubeconfig shows.

    A new kubeconfig is reported in any case: it may be the invalid one.
    """
    probe = api_server(options.kubeconfig) if options.kubeconfig is not None else None
    return probe is None or answers(probe)
