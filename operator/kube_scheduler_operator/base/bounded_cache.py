"""Caches whose memory is bounded, although users write their keys.

For texts, a limit on the number of entries is not enough: the labels or resources of one Pod have
up to a megabyte, and every change of the Pod adds an entry.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Recent(OrderedDict[Key, Value]):
    """The newest values by key, `most` of them."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def keep(self, key: Key, value: Value) -> None:
        """Remember a value as the newest one."""
        self[key] = value
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)


class BoundedCache(Generic[Key, Value]):
    """Values by key, bounded by their number and size; emptied when full.

    Args:
        entries: the most values.
        size: the largest sum of their sizes.
        largest: the size of the largest value that is kept; larger ones are ignored.
    """

    __slots__ = ("_entries", "_known", "_largest", "_size", "get", "used")

    get: Callable[[Key], Value | None]

    def __init__(self, entries: int, size: int, largest: int | None = None) -> None:
        self._entries, self._size = entries, size
        self._largest = size if largest is None else largest
        self._known: dict[Key, Value] = {}
        self.get = self._known.get  # not a method of its own: this runs for every object
        self.used = 0  # the sum of the sizes

    def __len__(self) -> int:
        return len(self._known)

    def keep(self, key: Key, value: Value, size: int) -> None:
        """Keep the value of a key that is not cached; `size` is the size of both."""
        if size > self._largest:
            return
        if len(self._known) >= self._entries or self.used + size > self._size:
            self._known.clear()
            self.used = 0
        self._known[key] = value
        self.used += size
