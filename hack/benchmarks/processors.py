"""How much of the processors a process has used, and how much memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Used:
    """Seconds of a processor: in the program itself, and in the kernel for it."""

    user: float
    system: float

    @property
    def total(self) -> float:
        """Both."""
        return self.user + self.system

    def __sub__(self, earlier: Used) -> Used:
        return Used(self.user - earlier.user, self.system - earlier.system)


def used(pid: int) -> Used:
    """What a living process and its threads have used so far.

    Raises:
        OSError: There is no such process.
    """
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return Used(int(fields[11]) / _TICKS, int(fields[12]) / _TICKS)


def machine() -> float:
    """Seconds that all processors have worked, for whomever (proc(5), /proc/stat)."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = _all_processors()
    return user + nice + system + irq + softirq + steal


def stolen() -> tuple[float, float]:
    """Seconds that the host took away from all processors, and all that have passed."""
    seconds = _all_processors()
    return seconds[-1], sum(seconds)


def _all_processors() -> list[float]:
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    return [int(one) / _TICKS for one in fields]


def memory(pid: int, field: str = "VmRSS") -> float:
    """The memory of a living process, MiB: resident, or `VmHWM` for the most that it ever was."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    values = dict(line.split(":", 1) for line in lines)
    return int(values[field].split()[0]) / 1024
