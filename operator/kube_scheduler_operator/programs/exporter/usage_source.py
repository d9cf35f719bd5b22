"""How busy this node is: cumulative readings of /proc, or of one cgroup and what is below it.

A cgroup stands for a node where several nodes share one kernel, as in test clusters: /proc would
show each of them the load of all.

Of the columns of /proc/stat `guest` is part of `user` and `guest_nice` of `nice` (proc(5)), so they
are not added again; a CPU that waits for a disk is idle; time that the hypervisor kept (`steal`)
cannot be used by anybody, so it is busy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

_STAT_COLUMNS: Final = 8
"""user nice system idle iowait irq softirq steal; guest and guest_nice follow."""

_IDLE: Final = (3, 4)

_QUANTITY: Final = re.compile(r"(\d+(?:\.\d+)?)(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?")
_SCALE: Final = {
    "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50,
}  # fmt: skip


class ReadingError(Exception):
    """The load cannot be read; the text names the file."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What the kernel says at one moment.

    Attributes:
        at: seconds, clock of the caller.
        busy: CPU time used since some moment, seconds times CPUs.
        possible: CPU time that there was since then, in the same unit.
        memory_used: bytes that cannot be given to somebody else.
        memory: bytes that there are.
        cpus: CPUs that there are.
    """

    at: float
    busy: float
    possible: float
    memory_used: float
    memory: float
    cpus: float

    def cpu_since(self, earlier: Reading) -> float | None:
        """Share of the CPU time that was used since, 0..1; None if no time has passed."""
        possible = self.possible - earlier.possible
        if possible <= 0:  # also after a counter went back: CPUs were taken offline
            return None
        return min(max((self.busy - earlier.busy) / possible, 0.0), 1.0)

    @property
    def memory_usage(self) -> float:
        """Share of the memory that is used, 0..1."""
        return min(max(self.memory_used / self.memory, 0.0), 1.0)


class Source(Protocol):
    """Where readings come from."""

    def read(self, now: float) -> Reading:
        """A reading at `now`. Raises ReadingError."""


class HostSource:
    """The whole machine.

    Args:
        proc: its /proc, wherever that is mounted.
    """

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._stat, self._meminfo = proc / "stat", proc / "meminfo"

    def read(self, now: float) -> Reading:
        """A reading at `now`. Raises ReadingError."""
        busy, possible, cpus = self._cpu()
        memory = self._memory()
        return Reading(now, busy, possible, memory[0] - memory[1], memory[0], cpus)

    def _cpu(self) -> tuple[float, float, int]:
        lines = _read(self._stat).splitlines()
        try:
            times = [int(word) for word in lines[0].split()[1:][:_STAT_COLUMNS]]
            idle = sum(times[column] for column in _IDLE)
        except (ValueError, IndexError):
            raise ReadingError(f"{self._stat} does not begin with the times of all CPUs") from None
        cpus = sum(1 for line in lines[1:] if line.startswith("cpu"))
        return sum(times) - idle, sum(times), max(cpus, 1)

    def _memory(self) -> tuple[float, float]:
        """Bytes in total and available."""
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

    Memory is the working set as the kubelet has it: without file pages that nobody has touched for
    a while.

    Args:
        root: where cgroups are mounted.
        path: of the cgroup below it; with version 1 below each controller's directory.
        cpus: CPUs of the node; None for those of the machine.
        memory: its bytes; None for those of the machine.
        host: the machine.
    """

    def __init__(
        self, root: Path, path: str, cpus: float | None, memory: float | None, host: Source
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
        """A reading at `now`. Raises ReadingError."""
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


def quantity(text: str) -> float:
    """A positive number as Kubernetes writes it: 4, 3500m, 8Gi.

    Raises:
        ValueError: it is none.
    """
    match = _QUANTITY.fullmatch(text)
    number = float(match[1]) * _SCALE.get(match[2] or "", 1.0) if match else 0.0
    if number <= 0:
        raise ValueError(f"{text!r} is not a quantity such as 4, 3500m or 8Gi")
    return number


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace")
    except OSError as error:
        raise ReadingError(f"{path}: {error.strerror}") from error


def _number(path: Path) -> float:
    text = _read(path).strip()
    if not text.isdigit():
        raise ReadingError(f"{path} has no number")
    return float(text)


def _field(path: Path, name: str) -> float:
    for line in _read(path).splitlines():
        key, _, value = line.partition(" ")
        if key == name and value.strip().isdigit():
            return float(value)
    raise ReadingError(f"{path} has no {name}")
