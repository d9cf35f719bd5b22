"""Parameters that several pages have."""

from __future__ import annotations

from typing import Final

from .page import Parameter

SCHEDULER: Final = Parameter(
    "scheduler",
    "the name of a SecondaryScheduler; without it, the control plane's scheduler or the one in its "
    "place",
    pattern=r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?",
)
