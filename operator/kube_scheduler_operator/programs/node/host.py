"""The node as it is: clocks, processes, logs and ports."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from ...base import termination_message
from . import cgroups, health_probe, processes
from .health_watch import Activity

if TYPE_CHECKING:
    from .manifest import Probe
    from .processes import Operand

# A coarse file-system clock may lag behind the precise one by a tick.
_TICK = 0.02


class NodeHost:
    """Sees the node that this process runs on (hostPID, hostNetwork, the kubelet's log directory).

    Args:
        pod_log_dir: where the kubelet keeps container logs.
        log_prefix: how the static pod's log directories start, up to its UID.
        container: the scheduler's container.
        operand: what its command line has.
        kubelet_pod_dir: where the kubelet keeps a directory for every pod.
        cgroup_dir: where the node's cgroups are mounted.
        proc: /proc.
        api_server: the scheduler's API server; None: it is not known, and taken to be well.
    """

    def __init__(
        self,
        pod_log_dir: Path,
        log_prefix: str,
        container: str,
        operand: str,
        kubelet_pod_dir: Path,
        cgroup_dir: Path,
        proc: Path = Path("/proc"),
        api_server: Probe | None = None,
    ) -> None:
        self._pod_log_dir = pod_log_dir
        self._log_prefix = log_prefix
        self._container = container
        self._operand = operand
        self._kubelet_pod_dir = kubelet_pod_dir
        self._cgroup_dir = cgroup_dir
        self._proc = proc
        self._api_server = api_server

    def now(self) -> float:
        """Seconds since boot, suspended ones included."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def wall(self) -> float:
        """Seconds since 1970."""
        return time.time() - _TICK

    def boot_id(self) -> str:
        """The kernel's name for the time since boot."""
        return (self._proc / "sys/kernel/random/boot_id").read_text().strip()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def operands(self) -> tuple[Operand, ...]:
        """The static pod's schedulers that run now."""
        return processes.operands(self._proc, self._uids(), self._operand)

    def kept_pods(self) -> frozenset[str]:
        """UIDs of the static pod of which the kubelet still has a directory."""
        return frozenset(uid for uid in self._uids() if (self._kubelet_pod_dir / uid).exists())

    def has_worker(self) -> bool | None:
        """Whether the kubelet still works on one of the static pod's pods."""
        known = cgroups.pods(self._cgroup_dir)
        return not known.isdisjoint(self._uids()) if known else None

    def _uids(self) -> set[str]:
        return {
            path.name.removeprefix(self._log_prefix)
            for path in termination_message.directories(self._pod_log_dir, self._log_prefix)
        }

    def is_ready(self, probe: Probe) -> bool:
        """Whether a scheduler answers that it is ready."""
        return health_probe.is_ready(probe)

    def has_api_server(self) -> bool:
        """Whether the scheduler's API server answers."""
        return self._api_server is None or health_probe.answers(self._api_server)

    def is_port_free(self, probe: Probe) -> bool:
        """Whether nobody listens there."""
        return health_probe.is_port_free(probe)

    def activity(self, since: float) -> Activity:
        """What the kubelet did since `since`: it makes the log directory first of all."""
        runs = frozenset(f"{log.path}" for log in self._logs() if log.modified >= since)
        if runs:
            return Activity(True, runs)
        for path in termination_message.directories(self._pod_log_dir, self._log_prefix):
            try:
                if path.stat().st_mtime >= since:
                    return Activity(True)
            except FileNotFoundError:
                continue
        return Activity(False)

    def last_words(self, since: float) -> str:
        """The last error of the newest run since `since` that said anything."""
        for log in reversed([log for log in self._logs() if log.modified >= since]):
            words = termination_message.last_words(log.path)
            if words:
                return words
        return ""

    def _logs(self) -> list[termination_message.Log]:
        return termination_message.logs(self._pod_log_dir, self._log_prefix, self._container)
