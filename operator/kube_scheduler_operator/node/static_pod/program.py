"""Common parts of the programs on a node: options, lock, SIGTERM, exit code, termination message.

Exit code 0 means a definitive result, whose JSON is the container's termination message. With any
other code the kubelet restarts the program, which resumes from the state on disk. With exit code 1
the termination message is the error.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from ...base import files
from ...base.files import Disk
from ...base.klog import TextFormatter
from ..protocol.message import EXIT_DEFINITIVE, EXIT_RETRY, EXIT_TERMINATED
from ..protocol.result import Result
from .certificates import PairError
from .layout import Layout
from .manifest import ManifestError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeProgramOptions:
    """The flags common to installer and restore, under their names."""

    node: str
    static_pod_name: str
    resource_dir: Path
    manifest_path: Path
    pod_log_dir: Path  # the kubelet's directory of container logs
    kubelet_pod_dir: Path  # the kubelet's directory of pods
    cgroup_dir: Path  # mount point of the node's cgroups
    retry: int = 0
    health_timeout: float = 60.0  # seconds within which a new scheduler must become ready
    settling_time: float = 2.0  # seconds for which it must then stay ready without a restart
    termination_log: Path = Path("/dev/termination-log")

    def layout(self, disk: Disk) -> Layout:
        return Layout(self.resource_dir, self.manifest_path, self.static_pod_name, disk)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallerOptions(NodeProgramOptions):
    """The flags of `kube-scheduler-operator installer`, under their names."""

    revision: int
    configmaps_dir: Path
    pod_dir: Path
    effective_config: Path | None = None
    permission: Path | None = None
    staged: Path | None = None
    content_hash: str = ""
    kubeconfig: Path | None = None
    secrets_dir: Path | None = None
    certs_dir: Path | None = None
    rollback: bool = False  # whether it may replace a newer revision
    # whether another version in kubeadm's manifest is a request to upgrade
    follow_kubeadm: bool = False
    keep: frozenset[int] | None = None  # older revisions whose directories stay; None: all of them


class Terminated(BaseException):
    """SIGTERM was received."""


def run(work: Callable[[], Result], termination_log: Path) -> int:
    """Write the result of `work` to the termination log; return the exit code."""
    with _terminable():
        try:
            result = work()
        except Terminated:
            log.warning("Terminated; the current manifest stays in place")
            return EXIT_TERMINATED
        except (OSError, ManifestError, PairError) as error:
            log.error("Failed, will be retried: %s", error)
            with contextlib.suppress(OSError):
                termination_log.write_text(str(error))
            return EXIT_RETRY
    text = result.serialise()
    log.info("Result: %s", text)
    try:
        termination_log.write_text(text)
    except OSError as error:
        # After the restart, the program finds everything done and reports it again.
        log.error("Failed to write the termination message: %s", error)
        return EXIT_RETRY
    return EXIT_DEFINITIVE


@contextlib.contextmanager
def alone(layout: Layout) -> Iterator[None]:
    """Hold the node's lock; every exit leaves a manifest in place."""
    if not layout.resource_dir.is_dir():
        layout.resource_dir.mkdir(mode=files.DIRECTORY_MODE, parents=True, exist_ok=True)
        Disk().sync(layout.resource_dir.parent)
    with _locked(layout.lock):
        try:
            yield
        except BaseException:
            _ignore_termination()
            layout.leave_running()
            raise


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Wait for the lock; the kernel releases that of a killed installer."""
    if path.is_symlink():
        path.unlink()  # opening it would create a file elsewhere
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, files.PRIVATE)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.info("Waiting for another installer on this node")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Make the first SIGTERM raise Terminated."""

    def terminate(_signal: int, _frame: FrameType | None) -> None:
        _ignore_termination()
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _ignore_termination() -> None:
    """Ignore further SIGTERMs: the last steps take milliseconds and must not be interrupted."""
    if signal.getsignal(signal.SIGTERM) not in (signal.SIG_DFL, None):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def configure_logging(verbosity: int) -> None:
    """Log to stderr in klog's format."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if verbosity >= 4 else logging.INFO)
