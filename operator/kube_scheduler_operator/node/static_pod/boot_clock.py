"""The kernel's clock since boot, which all programs on a node share."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from ..protocol.boot_time import UNKNOWN, BootTime

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


def seconds() -> float:
    """Return the seconds since boot, including suspend."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def now(boot_id: Path = BOOT_ID) -> BootTime:
    """Return the moment; unknown if the boot is."""
    try:
        return BootTime(boot_id.read_text().strip(), seconds())
    except OSError:
        return UNKNOWN
