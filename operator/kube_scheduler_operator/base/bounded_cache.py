"""A cache whose memory is bounded, although its keys are written by others.

A number of entries alone does not bound it: the labels or resources of one Pod have up to a
megabyte, and every change of it is another entry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """Values by key, bounded by their number and size; emptied when full.

    Args:
        entries: the largest number of values.
        size: the largest sum of their sizes.
        largest: the size of the largest value that is kept; one that is larger is not kept, and
            the others stay.

    Attributes:
        get: the value of a key; None if it is not cached.
        used: the sum of the sizes.
    """

    __slots__ = ("_entries", "_known", "_largest", "_size", "get", "used")

    get: Callable[[Key], Value | None]

    def __init__(self, entries: int, size: int, largest: int | None = None) -> None:
        self._entries, self._size = entries, size
        self._largest = size if largest is None else largest
        self._known: dict[Key, Value] = {}
        self.get = self._known.get  # without a call of Python's: this runs for every object
        self.used = 0

    def __len__(self) -> int:
        return len(self._known)

    def keep(self, key: Key, value: Value, size: int) -> None:
        """Keep the value of a key that is not cached; `size` is that of both."""
        if size > self._largest:
            return
        if len(self._known) >= self._entries or self.used + size > self._size:
            self._known.clear()
            self.used = 0
        self._known[key] = value
        self.used += size
