"""Whether reconciles succeed: for the probes, and for the conditions of the next reconcile."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

STALE_SECONDS: Final = 600.0
"""Without a reconcile for this long, /healthz fails."""
FAILING_SECONDS: Final = 120.0
"""Without a successful reconcile for this long, /readyz fails; a rollout of an API server takes
less."""


class ReconcileHealth:
    """What the reconciles of a process came to since it leads; `now` is a monotonic clock."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self.error = ""  # that ended the last reconcile; empty: its plan was executed
        self._failing = ""  # what failed in the last reconcile
        self._executed_at: float | None = None
        self._succeeded_at: float | None = None

    def failed(self, error: str) -> None:
        """Note a reconcile that ended before its plan was executed."""
        self.error = self._failing = error

    def executed(self, failures: Sequence[str]) -> bool:
        """Note an executed plan and what failed in it; return whether it is the first."""
        first, self._executed_at = self._executed_at is None, self._now()
        self.error, self._failing = "", "; ".join(failures)
        if not failures:
            self._succeeded_at = self._executed_at
        return first

    def staleness(self) -> str | None:
        """Explain that this process, which leads, is stuck; None if it is not."""
        age = 0.0 if self._executed_at is None else self._now() - self._executed_at
        if age <= STALE_SECONDS:
            return None
        return f"this process leads but has not reconciled for {age:.0f} s"

    def problem(self) -> str | None:
        """Explain why this process does not work; None if it does, or has failed only briefly."""
        if self._executed_at is None:
            return "no reconcile has succeeded yet"
        age = self._now() - (self._succeeded_at or self._executed_at)
        if not self._failing or age < FAILING_SECONDS:
            return None
        return f"no reconcile has succeeded for {age:.0f} s: {self._failing}"
