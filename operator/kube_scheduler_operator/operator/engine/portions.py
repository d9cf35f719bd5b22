"""Long lists that are polled in portions, each of which begins where the one before ended.

A tenant may fill one poll with objects of a namespace that sorts first. That hides nothing: the
next poll continues behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

KEPT: Final = 1000
"""The number of values that are kept; the oldest ones are dropped first."""


class Portions(Generic[Key, Value]):
    """The values in the portions of a list; each remains until the list was read without it."""

    def __init__(self) -> None:
        self.token = ""  # where the next portion begins; empty: at the beginning
        self.unread = False  # whether a part was not read since the list was last read to its end
        self._round = 0
        self._seen: dict[Key, tuple[int, Value]] = {}
        self._selector: str | None = None
        self._whole = False  # read to its end, and no token was lost since

    @property
    def values(self) -> tuple[Value, ...]:
        return tuple(value for _, value in self._seen.values())

    @property
    def keys(self) -> frozenset[Key]:
        return frozenset(self._seen)

    def select(self, selector: str) -> None:
        """Begin again if the selector has changed: a token belongs to its list."""
        if self._selector not in (None, selector) and self.token:
            self._begin()
        self._selector = selector

    def take(self, portion: Mapping[Key, Value], more: str) -> None:
        """Take a portion; `more` is the token of the rest."""
        for key, value in portion.items():
            self._seen.pop(key, None)
            self._seen[key] = self._round, value
        self._forget(list(self._seen)[: max(len(self._seen) - KEPT, 0)])
        self.token = more
        if not more:
            self._forget([key for key, (last, _) in self._seen.items() if last < self._round])
            self._round += 1
        self._whole = self._whole or not more
        self.unread = not self._whole

    def lost(self) -> None:
        """Begin the list again, because the token is too old for the API server."""
        self._whole, self.unread = False, True
        self._begin()

    def _begin(self) -> None:
        self.token = ""
        self._forget([key for key, (last, _) in self._seen.items() if last < self._round])
        self._round += 1

    def _forget(self, keys: Iterable[Key]) -> None:
        for key in keys:
            del self._seen[key]
