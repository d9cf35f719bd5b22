"""Observes the node that this process runs on: clocks, processes, logs and ports."""

from __future__ import annotations

import errno
import os
import re
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...base import termination_message
from ...base.names import OPERAND
from ..protocol.message import UNKNOWN, BootTime
from . import processes
from .manifest import Probe
from .processes import SchedulerProcess

if TYPE_CHECKING:
    from .program import NodeProgramOptions

PROC: Final = Path("/proc")
BOOT_ID: Final = PROC / "sys/kernel/random/boot_id"

# A coarse file-system clock may lag behind the precise one by a tick.
_TICK = 0.02
_POD: Final = re.compile(
    r"(?:^|-)pod([0-9a-f]{32}|[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})(?:\.slice)?$"
)
_LEAVES: Final = (".service", ".scope", ".socket", ".mount")
_DEPTH: Final = 6

_PROBE_TIMEOUT: Final = 2.0
"""Seconds for one probe; a healthy scheduler answers in milliseconds."""


def seconds_since_boot() -> float:
    """Return the seconds since boot, including suspend; all programs on a node share this clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot_time(boot_id: Path = BOOT_ID) -> BootTime:
    """Return the time since boot; UNKNOWN without a boot id."""
    try:
        return BootTime(boot_id.read_text().strip(), seconds_since_boot())
    except OSError:
        return UNKNOWN


@dataclass(frozen=True, slots=True)
class Activity:
    """What the kubelet did with the static pod."""

    started: bool  # whether it began to start the pod
    # log files of the containers that it started. It keeps at most two: those of the running and of
    # the last exited container.
    runs: frozenset[str] = frozenset()


class NodeHost:
    """The real node; needs hostPID, hostNetwork and the kubelet's log directory.

    `log_prefix` is the prefix of the static pod's log directories up to its UID. An unknown
    `api_server` (None) counts as available.
    """

    def __init__(
        self,
        options: NodeProgramOptions,
        log_prefix: str,
        container: str = OPERAND,
        api_server: Probe | None = None,
    ) -> None:
        self._pod_logs = options.pod_log_dir
        self._kubelet_pods = options.kubelet_pod_dir
        self._cgroups = options.cgroup_dir
        self._log_prefix = log_prefix
        self._container = container
        self._api_server = api_server

    def now(self) -> float:
        return seconds_since_boot()

    def wall(self) -> float:
        """Return the seconds since 1970, comparable to file times."""
        return time.time() - _TICK

    def boot_id(self) -> str:
        return BOOT_ID.read_text().strip()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def operands(self) -> tuple[SchedulerProcess, ...]:
        """Return the running schedulers of the static pod."""
        return processes.operands(PROC, self._uids(), OPERAND)

    def kept_pods(self) -> frozenset[str]:
        """Return the static pod's UIDs, past and present, whose directory the kubelet keeps."""
        return frozenset(uid for uid in self._uids() if (self._kubelet_pods / uid).exists())

    def has_worker(self) -> bool | None:
        """Return whether the kubelet has a worker for a present or past pod; None: unknown."""
        known = pods_with_cgroups(self._cgroups)
        return not known.isdisjoint(self._uids()) if known else None

    def _uids(self) -> set[str]:
        return {
            path.name.removeprefix(self._log_prefix)
            for path in termination_message.directories(self._pod_logs, self._log_prefix)
        }

    def is_ready(self, probe: Probe) -> bool:
        return is_ready(probe)

    def has_api_server(self) -> bool:
        return self._api_server is None or answers(self._api_server)

    def is_port_free(self, probe: Probe) -> bool:
        return is_port_free(probe)

    def activity(self, since: float) -> Activity:
        """Observe the kubelet's acts after `since` (a `wall` time).

        It first creates the log directory.
        """
        runs = frozenset(f"{log.path}" for log in self._logs() if log.modified >= since)
        if runs:
            return Activity(True, runs)
        for path in termination_message.directories(self._pod_logs, self._log_prefix):
            try:
                if path.stat().st_mtime >= since:
                    return Activity(True)
            except FileNotFoundError:
                continue
        return Activity(False)

    def last_error(self, since: float) -> str:
        """Return the last error that a run after `since` (a `wall` time) logged, else a last line.

        The newest run may still be starting: its log does not have the error of an earlier one.
        """
        runs = [log for log in self._logs() if log.modified >= since]
        tails = [termination_message.read_tail(log.path) for log in reversed(runs)]
        errors = map(termination_message.last_error, tails)
        others = map(termination_message.last_line, tails)
        return next(filter(None, (*errors, *others)), "")

    def _logs(self) -> list[termination_message.Log]:
        return termination_message.logs(self._pod_logs, self._log_prefix, self._container)


def pods_with_cgroups(root: Path) -> frozenset[str]:
    """Find the UIDs of pods with a cgroup; `root` is the host's /sys/fs/cgroup, version 1 or 2.

    Their kubelet worker runs: SyncTerminatedPod removes the cgroup after the volumes; then the
    worker ends and another static pod of the same name may start (pod_workers.go,
    completeTerminated). Empty only if cgroups are not visible: the caller's own pod has one.
    """
    # One hierarchy of version 1 is sufficient: runc leaves some of the others behind.
    memory = root / "memory"
    return frozenset(_find(memory if memory.is_dir() else root, _DEPTH))


def _find(directory: Path | str, depth: int) -> Iterator[str]:
    try:
        with os.scandir(directory) as entries:
            below = [e for e in entries if e.is_dir(follow_symlinks=False)]
    except OSError:
        return  # removed in the meantime, or not readable
    for entry in below:
        pod = _POD.search(entry.name)
        if pod:
            yield pod[1].replace("_", "-")
        elif depth and not entry.name.endswith(_LEAVES):
            yield from _find(entry.path, depth - 1)


# --- HTTPS probes of servers on the node; like the kubelet's, they accept any certificate ---------


def is_ready(probe: Probe) -> bool:
    """Return whether the probe is answered with status 200."""
    return _status(probe) == "200"


def answers(probe: Probe) -> bool:
    """Return whether the probe is answered with any status except a server error."""
    status = _status(probe)
    return bool(status) and not status.startswith("5")


def _status(probe: Probe) -> str:
    """Return the HTTP status of the response; empty without one."""
    import ssl  # deferred: printing help does not need it

    # The certificate may be self-signed: the probe checks readiness, not identity.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    host = f"[{probe.host}]" if ":" in probe.host else probe.host
    request = (
        f"GET {probe.path} HTTP/1.0\r\nHost: {host}\r\n"
        "User-Agent: kube-scheduler-operator\r\nAccept: */*\r\n\r\n"
    )
    try:
        with (
            socket.create_connection((probe.host, probe.port), _PROBE_TIMEOUT) as plain,
            context.wrap_socket(plain) as connection,
        ):
            connection.sendall(request.encode())
            with connection.makefile("rb") as answer:
                status = answer.readline(256).split()
    except (OSError, ValueError):
        return ""
    return status[1].decode(errors="replace") if len(status) > 1 else ""


def is_port_free(probe: Probe) -> bool:
    """Return whether a scheduler could listen at the probe's address.

    Tested by binding, as the scheduler does: a connection attempt could not distinguish a free port
    from an address of another node, for which there is nothing to wait.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            probe.host, probe.port, type=socket.SOCK_STREAM
        )[0]
        with socket.socket(family, kind, protocol) as bound:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
    except OSError as error:
        return error.errno != errno.EADDRINUSE
    return True
