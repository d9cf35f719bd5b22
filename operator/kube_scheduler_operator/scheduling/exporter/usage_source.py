"""Reads this node's CPU time and memory from /proc, or from one cgroup.

A cgroup represents a node where several nodes share one kernel, as in test clusters: /proc would
show each of them the load of all.

In /proc/stat, `guest` is part of `user` and `guest_nice` of `nice` (proc(5)), so they are not added
again; waiting for a disk counts as idle; time taken by the hypervisor (`steal`) is not available to
the node, so it counts as busy.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

_STAT_COLUMNS: Final = 8
"""user nice system idle iowait irq softirq steal; guest and guest_nice follow."""

_IDLE: Final = (3, 4)


class ReadingError(Exception):
    """Reading the load failed; the text has the file."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The kernel's values at one time."""

    at: float  # time in seconds, on the caller's clock
    busy: float  # used CPU time since an arbitrary start, in CPU seconds
    possible: float  # total CPU time since the same start, in CPU seconds
    memory_used: float  # bytes that are not available for allocation
    memory: float  # total bytes
    cpus: float

    def cpu_since(self, earlier: Reading) -> float | None:
        """Return the fraction of CPU time used since `earlier`; None if no time has passed."""
        possible = self.possible - earlier.possible
        if possible <= 0:  # also if a counter decreased: CPUs were taken offline
            return None
        return min(max((self.busy - earlier.busy) / possible, 0.0), 1.0)

    @property
    def memory_usage(self) -> float:
        """Fraction of the memory in use, 0..1."""
        return min(max(self.memory_used / self.memory, 0.0), 1.0)


class UsageSource(Protocol):
    def read(self, now: float) -> Reading:
        """Return a reading at `now`. Raises ReadingError."""


class HostSource:
    """The whole machine; `proc` is the mount point of its /proc."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._stat, self._meminfo = proc / "stat", proc / "meminfo"

    def read(self, now: float) -> Reading:
        """Return a reading at `now`. Raises ReadingError."""
        busy, possible, cpus = self._cpu()
        memory = self._memory()
        return Reading(now, busy, possible, memory[0] - memory[1], memory[0], cpus)

    def _cpu(self) -> tuple[float, float, int]:
        lines = _read(self._stat).splitlines()
        try:
            times = [int(word) for word in lines[0].split()[1:][:_STAT_COLUMNS]]
            idle = sum(times[column] for column in _IDLE)
        except (ValueError, IndexError):
            raise ReadingError(f"{self._stat} does not start with the CPU times") from None
        cpus = sum(1 for line in lines[1:] if line.startswith("cpu"))
        return sum(times) - idle, sum(times), max(cpus, 1)

    def _memory(self) -> tuple[float, float]:
        """Return total and available bytes."""
        fields: dict[str, float] = {}
        for line in _read(self._meminfo).splitlines():
            name, _, rest = line.partition(":")
            number = rest.split()
            if number and number[0].isdigit():
                fields[name] = int(number[0]) * 1024.0
        total = fields.get("MemTotal", 0.0)
        if total <= 0:
            raise ReadingError(f"{self._meminfo} has no MemTotal")
        available = fields.get("MemAvailable")
        if available is None:  # kernels before 3.14
            available = sum(fields.get(name, 0.0) for name in ("MemFree", "Buffers", "Cached"))
        return total, min(available, total)


class CgroupSource:
    """One cgroup of version 1 or 2 instead of the machine.

    Memory is the working set as the kubelet defines it: without inactive file pages. `path` is
    below the mount point `root`, in version 1 below the directory of each controller there. `cpus`
    and bytes of `memory` are those of the node; None for those of the machine.
    """

    def __init__(
        self, root: Path, path: str, cpus: float | None, memory: float | None, host: UsageSource
    ) -> None:
        self._cpus, self._memory, self._host = cpus, memory, host
        path = path.strip("/")
        self._unified = root / path
        self._cpuacct = next(
            (root / name / path for name in ("cpuacct", "cpu,cpuacct") if (root / name).is_dir()),
            None,
        )
        self._memory_v1 = root / "memory" / path

    def read(self, now: float) -> Reading:
        """Return a reading at `now`. Raises ReadingError."""
        if self._cpuacct:
            busy = int(_number(self._cpuacct / "cpuacct.usage")) / 1e9
            used = _number(self._memory_v1 / "memory.usage_in_bytes")
            used -= _field(self._memory_v1 / "memory.stat", "total_inactive_file")
        else:
            busy = _field(self._unified / "cpu.stat", "usage_usec") / 1e6
            used = _number(self._unified / "memory.current")
            used -= _field(self._unified / "memory.stat", "inactive_file")
        cpus, memory = self._cpus, self._memory
        if cpus is None or memory is None:
            host = self._host.read(now)
            cpus, memory = cpus or host.cpus, memory or host.memory
        return Reading(now, busy, now * cpus, max(used, 0.0), memory, cpus)


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace")
    except OSError as error:
        raise ReadingError(f"{path}: {error.strerror}") from error


def _number(path: Path) -> float:
    text = _read(path).strip()
    if not text.isdigit():
        raise ReadingError(f"{path} is not a number")
    return float(text)


def _field(path: Path, name: str) -> float:
    for line in _read(path).splitlines():
        key, _, value = line.partition(" ")
        if key == name and value.strip().isdigit():
            return float(value)
    raise ReadingError(f"{path} has no {name}")
