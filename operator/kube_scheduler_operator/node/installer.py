"""The installer: one revision onto this node, once, whatever happens in between.

Exit 0 means a definitive result, whose JSON is the container's termination message. Anything else
makes the kubelet start the program again, and it goes on where the disk says that it stopped.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..names import CONFIG_KEY, OPERAND, POD_KEY
from . import files, manifest, preflight
from .files import Disk
from .host import NodeHost
from .layout import Layout
from .manifest import ManifestError
from .swap import Request, Swap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from .result import Result
    from .watch import Host

log = logging.getLogger(__name__)

PROC: Final = Path("/proc")

EXIT_DEFINITIVE: Final = 0
EXIT_RETRY: Final = 1
EXIT_TERMINATED: Final = 128 + signal.SIGTERM


class Terminated(BaseException):
    """SIGTERM came: whoever sent it has other plans for this node."""


@dataclass(frozen=True, slots=True)
class Options:
    """The flags of `kube-scheduler-operator installer`, under their names."""

    revision: int
    node: str
    static_pod_name: str
    config_dir: Path
    pod_dir: Path
    resource_dir: Path
    manifest_path: Path
    pod_log_dir: Path
    kubelet_pod_dir: Path
    cgroup_dir: Path
    retry: int = 0
    effective_config: Path | None = None
    content_hash: str = ""
    health_timeout: float = 60.0
    settling_time: float = 2.0
    rollback: bool = False
    keep: frozenset[int] | None = None
    termination_log: Path = Path("/dev/termination-log")


def main(options: Options) -> int:
    """Run the installer to its end; its exit code."""
    with _terminable():
        try:
            result = install(options)
        except Terminated:
            log.warning("Terminated; the manifest that is in its place stays")
            return EXIT_TERMINATED
        except (OSError, ManifestError) as error:
            log.error("Cannot install revision %d: %s", options.revision, error)
            return EXIT_RETRY
    text = result.serialise()
    log.info("Result: %s", text)
    try:
        options.termination_log.write_text(text)
    except OSError as error:
        # The result is in outcome.json: the next start reports it again and does nothing else.
        log.error("Cannot write the termination message: %s", error)
        return EXIT_RETRY
    return EXIT_DEFINITIVE


def install(
    options: Options,
    disk: Disk | None = None,
    make_host: Callable[[dict[str, Any]], Host] | None = None,
) -> Result:
    """Wait for the check, then install under the lock; on every way out a manifest is in its place.

    Args:
        options: what and where.
        disk: what writes; the real one if None.
        make_host: what sees the node, for a pod; the real one if None.

    Raises:
        OSError: the disk or a mount does not do what it must.
        ManifestError: the revision's pod is not one that can be installed.
    """
    disk = disk or Disk()
    pod = _read_pod(options.pod_dir / POD_KEY)
    host = make_host(pod) if make_host else _node_host(options, pod)
    # Before the lock: a check that never passes must not keep other installers from working.
    checked = preflight.wait(options.effective_config, PROC) if options.effective_config else b""
    options.resource_dir.mkdir(mode=files.DIRECTORY_MODE, parents=True, exist_ok=True)
    layout = Layout(options.resource_dir, options.manifest_path, options.static_pod_name, disk)
    with _locked(layout.lock):
        swap = Swap(_request(options, pod, checked), layout, host)
        try:
            return swap.run()
        except BaseException:
            _ignore_termination()
            swap.leave_running()
            raise


def _request(options: Options, pod: dict[str, Any], effective: bytes) -> Request:
    final = manifest.static_pod_for_revision(pod, options.revision, options.content_hash)
    data = manifest.serialise(final)
    return Request(
        revision=options.revision,
        retry=options.retry,
        node=options.node,
        target=manifest.parse(data, options.static_pod_name),
        config=(options.config_dir / CONFIG_KEY).read_bytes(),
        effective=effective,
        health_timeout=options.health_timeout,
        settling_time=options.settling_time,
        rollback=options.rollback,
        keep=options.keep,
    )


def _node_host(options: Options, pod: dict[str, Any]) -> NodeHost:
    return NodeHost(
        pod_log_dir=options.pod_log_dir,
        log_prefix=manifest.log_directory_prefix(pod, options.node),
        container=str(pod["spec"]["containers"][0]["name"]),
        operand=OPERAND,
        kubelet_pod_dir=options.kubelet_pod_dir,
        cgroup_dir=options.cgroup_dir,
    )


def _read_pod(path: Path) -> dict[str, Any]:
    try:
        pod = json.loads(path.read_bytes())
    except ValueError as error:
        raise ManifestError(f"{path} is not JSON: {error}") from error
    if not isinstance(pod, dict) or pod.get("kind") != "Pod":
        raise ManifestError(f"{path} must be a Pod")
    return pod


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
