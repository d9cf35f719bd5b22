"""A token bucket: limits a burst and the average rate."""

from __future__ import annotations

from collections.abc import Callable


class TokenBucket:
    """Starts full with `size` tokens; adds one every `refill` seconds."""

    __slots__ = ("_clock", "_refill", "_since", "_size", "_tokens")

    def __init__(self, size: float, refill: float, clock: Callable[[], float]) -> None:
        self._size, self._refill, self._clock = size, refill, clock
        self._tokens, self._since = float(size), clock()

    def left(self) -> float:
        """Return the available tokens; negative if more were spent than available."""
        now = self._clock()
        self._tokens = min(float(self._size), self._tokens + (now - self._since) / self._refill)
        self._since = now
        return self._tokens

    def spend(self, tokens: float = 1.0) -> None:
        """Take tokens, also more than are available."""
        self._tokens -= tokens
