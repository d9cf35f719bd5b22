"""Caches whose memory is bounded, although users write their keys.

For texts of Pods, a limit on the number of entries is not enough: the labels or resources of one
Pod have up to a megabyte, and every change of the Pod adds an entry. Results for objects of the
operator are bounded by their number alone: `limit_problems` bounds each object.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from typing import Any, Final, Generic, ParamSpec, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")
Arguments = ParamSpec("Arguments")

_JSON: Final = (dict, list, tuple, str, int, float, type(None), Mapping)


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


@dataclass(frozen=True, slots=True)
class _Call:
    content: tuple[Hashable, ...]
    arguments: tuple[Any, ...] = field(compare=False)
    options: dict[str, Any] = field(compare=False)


def cached_by_content(
    most: int,
) -> Callable[[Callable[Arguments, Value]], Callable[Arguments, Value]]:
    """Cache up to `most` results of a function by the content of its arguments, like lru_cache.

    An argument is hashable or JSON data, in which the order of keys counts, and 1 and true differ.
    For other data, which a YAML file may contain, the function is called each time. Neither
    arguments nor results may be modified.
    """

    def decorate(function: Callable[Arguments, Value]) -> Callable[Arguments, Value]:
        original: Callable[..., Value] = function

        @lru_cache(maxsize=most)
        def cached(call: _Call) -> Value:
            return original(*call.arguments, **call.options)

        @wraps(function)
        def wrapper(*arguments: Arguments.args, **options: Arguments.kwargs) -> Value:
            try:
                content = (
                    *map(_content, arguments),
                    *options.keys(),
                    *map(_content, options.values()),
                )
            except (TypeError, ValueError, RecursionError):
                return function(*arguments, **options)
            return cached(_Call(content, arguments, options))

        for method in ("cache_clear", "cache_parameters"):
            setattr(wrapper, method, getattr(cached, method))
        return wrapper

    return decorate


def _content(argument: Any) -> Hashable:
    if isinstance(argument, bool) or not isinstance(argument, _JSON):
        return argument
    return json.dumps(argument)


def cached_by_identity(most: int) -> Callable[[Callable[[Key], Value]], Callable[[Key], Value]]:
    """Cache up to `most` results of a function by the identity of its argument.

    For immutable objects, such as those of the store, for which comparing content costs more than
    it saves. The cache keeps a reference to each object, so an identity cannot be reused. The
    oldest result is evicted first.
    """

    def decorate(function: Callable[[Key], Value]) -> Callable[[Key], Value]:
        cached: dict[int, tuple[Key, Value]] = {}

        @wraps(function)
        def wrapper(argument: Key) -> Value:
            entry = cached.get(id(argument))
            if entry is not None:
                return entry[1]
            value = function(argument)
            while len(cached) >= most:
                cached.pop(next(iter(cached)), None)
            cached[id(argument)] = argument, value
            return value

        wrapper.cache_clear = cached.clear  # type: ignore[attr-defined]  # like lru_cache
        return wrapper

    return decorate
