"""What the programs on a node have in common: exit codes, the lock, SIGTERM, a message at the end.

Exit 0 means a definitive result, whose JSON is the container's termination message. Anything else
makes the kubelet start the program again, and it goes on where the disk says that it stopped. With
exit code 1 the message is a sentence about what is in the way.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...base import files
from ...base.names import OPERAND
from .certificates import PairError
from .exit_codes import EXIT_DEFINITIVE, EXIT_RETRY, EXIT_TERMINATED
from .host import NodeHost
from .layout import Layout
from .manifest import ManifestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from ...base.files import Disk
    from .manifest import Probe
    from .result import Result

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The flags that all of them have which change what runs on a node, under their names."""

    node: str
    static_pod_name: str
    resource_dir: Path
    manifest_path: Path
    pod_log_dir: Path
    kubelet_pod_dir: Path
    cgroup_dir: Path
    retry: int = 0
    health_timeout: float = 60.0
    settling_time: float = 2.0
    termination_log: Path = Path("/dev/termination-log")

    def layout(self, disk: Disk) -> Layout:
        """The files of this node."""
        return Layout(self.resource_dir, self.manifest_path, self.static_pod_name, disk)

    def host(
        self, log_prefix: str, container: str = OPERAND, api_server: Probe | None = None
    ) -> NodeHost:
        """This node as it is; `log_prefix` begins the names of the static pod's log directories."""
        return NodeHost(
            pod_log_dir=self.pod_log_dir,
            log_prefix=log_prefix,
            container=container,
            operand=OPERAND,
            kubelet_pod_dir=self.kubelet_pod_dir,
            cgroup_dir=self.cgroup_dir,
            api_server=api_server,
        )


class Terminated(BaseException):
    """SIGTERM came: whoever sent it has other plans for this node."""


def run(work: Callable[[], Result], termination_log: Path) -> int:
    """Do the work and leave its result behind; the exit code."""
    with _terminable():
        try:
            result = work()
        except Terminated:
            log.warning("Terminated; the manifest that is in its place stays")
            return EXIT_TERMINATED
        except (OSError, ManifestError, PairError) as error:
            log.error("Not done, to be tried again: %s", error)
            with contextlib.suppress(OSError):
                termination_log.write_text(str(error))
            return EXIT_RETRY
    text = result.serialise()
    log.info("Result: %s", text)
    try:
        termination_log.write_text(text)
    except OSError as error:
        # The next start finds everything done and reports it again.
        log.error("Cannot write the termination message: %s", error)
        return EXIT_RETRY
    return EXIT_DEFINITIVE


@contextlib.contextmanager
def alone(layout: Layout) -> Iterator[None]:
    """Work on the node under its lock; on every way out a manifest is in its place."""
    layout.resource_dir.mkdir(mode=files.DIRECTORY_MODE, parents=True, exist_ok=True)
    with _locked(layout.lock):
        try:
            yield
        except BaseException:
            _ignore_termination()
            layout.leave_running()
            raise


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Wait until no other installer works on this node; a killed one holds no lock."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, files.PRIVATE)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.info("Another installer works on this node: waiting")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM raise Terminated, once."""

    def terminate(_signal: int, _frame: FrameType | None) -> None:
        _ignore_termination()
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _ignore_termination() -> None:
    """The last steps take milliseconds and must not be torn apart by a second SIGTERM."""
    if signal.getsignal(signal.SIGTERM) not in (signal.SIG_DFL, None):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def configure_logging(verbosity: int) -> None:
    """Log as klog does, to stderr, without importing more than that takes."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        logging.Formatter(
            "%(klog_severity)s%(asctime)s.%(msecs)03d000 %(process)7d %(filename)s:%(lineno)d] "
            '"%(message)s"',
            "%m%d %H:%M:%S",
        )
    )
    handler.addFilter(_add_severity)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if verbosity >= 4 else logging.INFO)


def _add_severity(record: logging.LogRecord) -> bool:
    record.klog_severity = record.levelname[0]
    return True
