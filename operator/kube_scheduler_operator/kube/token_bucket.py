"""A token bucket: a limit on what may be spent at once, and in the long run."""

from __future__ import annotations

from collections.abc import Callable


class TokenBucket:
    """Full at first.

    Args:
        size: the most tokens that there are.
        refill: seconds until there is one more.
        clock: monotonic seconds.
    """

    __slots__ = ("_clock", "_refill", "_since", "_size", "_tokens")

    def __init__(self, size: float, refill: float, clock: Callable[[], float]) -> None:
        self._size, self._refill, self._clock = size, refill, clock
        self._tokens, self._since = float(size), clock()

    def left(self) -> float:
        """The tokens that are there now; below 0 where more were spent than there were."""
        now = self._clock()
        self._tokens = min(float(self._size), self._tokens + (now - self._since) / self._refill)
        self._since = now
        return self._tokens

    def spend(self, tokens: float = 1.0) -> None:
        """Take tokens, also those that are not there."""
        self._tokens -= tokens
