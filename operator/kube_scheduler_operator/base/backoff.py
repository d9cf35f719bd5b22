"""Delays between attempts that grow with every failure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

_STEPS_LIMIT = 64


@dataclass(frozen=True, slots=True)
class Backoff:
    """The delays before the first, second, … retry, seconds."""

    delays: tuple[float, ...]  # further retries have the last one, unless the caller gives up
    factor: float = 2.0  # growth from one delay to the next, for `after`

    @classmethod
    def exponential(cls, first: float, longest: float, factor: float = 2.0) -> Self:
        """Return delays from `first` to `longest`, each `factor` times the previous one."""
        delays = [min(first, longest)]
        while delays[-1] < longest and len(delays) < _STEPS_LIMIT:
            delays.append(min(first * factor ** len(delays), longest))
        return cls(tuple(delays), factor)

    def delay(self, failures: int) -> float:
        """Return the delay after `failures` earlier failures; 0 for the first retry."""
        return self.delays[min(failures, len(self.delays) - 1)]

    def after(self, delay: float) -> float:
        """Return the delay that follows `delay`, which is 0 before the first retry."""
        return min(max(delay * self.factor, self.delays[0]), self.delays[-1])


NO_RETRIES = Backoff(())
