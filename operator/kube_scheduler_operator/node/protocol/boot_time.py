"""When a program on a node read its disk, by the kernel's clock, which cannot be set.

A node's wall clock may jump, so it cannot order the reports of its programs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_LONGEST: Final = 64


@dataclass(frozen=True, slots=True)
class BootTime:
    # the kernel's identifier of the boot, which the Node has in `nodeInfo.bootID`; empty if unknown
    boot: str = ""
    seconds: float = 0.0  # seconds since that boot

    def fields(self) -> dict[str, Any]:
        return {"boot": self.boot, "uptime": round(self.seconds, 3)}

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> BootTime:
        """Read the fields of a report; unknown in that of an older program, or if invalid."""
        boot, seconds = document.get("boot"), document.get("uptime")
        if not isinstance(boot, str) or not 0 < len(boot) <= _LONGEST:
            return cls()
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            return cls()
        return cls(boot, float(seconds)) if 0 <= seconds < math.inf else cls()


UNKNOWN: Final = BootTime()
