"""Long lists that are polled in portions, each where the one before ended.

A tenant may fill what one poll reads with objects of a namespace that sorts first. Nothing is
hidden by that: the next poll continues behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

KEPT: Final = 1000
"""The number of values that are kept; the oldest ones are forgotten first."""


class Portions(Generic[Key, Value]):
    """What the portions of a list have.

    A value remains until the list has been read again without it.

    Attributes:
        token: where the next portion begins; empty: at the begin.
        unread: whether a part of the list was not read since it was last read to its end.
    """

    def __init__(self) -> None:
        self.token = ""
        self.unread = False
        self._round = 0
        self._seen: dict[Key, tuple[int, Value]] = {}
        self._selector: str | None = None
        self._whole = False  # read to its end, and no token was lost since

    @property
    def values(self) -> tuple[Value, ...]:
        """What the list has, as far as it is known."""
        return tuple(value for _, value in self._seen.values())

    @property
    def keys(self) -> frozenset[Key]:
        """The keys of the values."""
        return frozenset(self._seen)

    def select(self, selector: str) -> None:
        """Begin again if the selector is another one: a token belongs to its list."""
        if self._selector not in (None, selector) and self.token:
            self._begin()
        self._selector = selector

    def take(self, found: Mapping[Key, Value], more: str) -> None:
        """Take a portion; `more` is the token of the rest."""
        for key, value in found.items():
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
        """The token is too old for the API server: the list begins again."""
        self._whole, self.unread = False, True
        self._begin()

    def _begin(self) -> None:
        self.token = ""
        self._forget([key for key, (last, _) in self._seen.items() if last < self._round])
        self._round += 1

    def _forget(self, keys: Iterable[Key]) -> None:
        for key in keys:
            del self._seen[key]
