"""Caching of validation results: by content, or by object identity.

A cluster can have hundreds of profiles, and an edit changes one of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, Final, Generic, TypeVar

from ....base.findings import Path, Problem
from ..plugins.target_scheduler import Target

Argument = TypeVar("Argument")
Result = TypeVar("Result")

CACHE_SIZE: Final = 1024
"""Cached results per function; the least recently used one is evicted."""


@dataclass(frozen=True, slots=True)
class Keyed(Generic[Argument]):
    """The argument of a function with `lru_cache`: equal to another one if their keys are."""

    key: Hashable
    value: Argument = field(compare=False)  # must not be modified


@dataclass(frozen=True, slots=True)
class CacheKey:
    """A part of a configuration and the scheduler that reads it; equal if their content is."""

    content: str  # the value as JSON, in the order of its keys
    reader: tuple[object, ...]  # identity of the target
    value: Any = field(compare=False)  # must not be modified
    target: Target = field(compare=False)

    @classmethod
    def of(cls, value: Any, target: Target) -> CacheKey | None:
        """Create the key of a JSON value; None for other values that a YAML file may contain."""
        try:
            content = json.dumps(value)
        except (TypeError, ValueError, RecursionError):
            return None
        return cls(content, target.identity, value, target)


def prefixed(problems: Iterable[Problem], path: Path) -> Iterator[Problem]:
    """Prepend the path of a part of a document to its problems."""
    return (replace(problem, path=(*path, *problem.path)) for problem in problems)


def cached_by_identity(
    most: int,
) -> Callable[[Callable[[Argument], Result]], Callable[[Argument], Result]]:
    """Cache up to `most` results of a function by the identity of its argument.

    For immutable objects, such as those of the store, for which comparing content costs more than
    it saves. The cache keeps a reference to each object, so an identity cannot be reused. The
    oldest result is evicted first.
    """

    def decorate(function: Callable[[Argument], Result]) -> Callable[[Argument], Result]:
        cached: dict[int, tuple[Argument, Result]] = {}

        @wraps(function)
        def wrapper(argument: Argument) -> Result:
            entry = cached.get(id(argument))
            if entry is not None:
                return entry[1]
            result = function(argument)
            while len(cached) >= most:
                cached.pop(next(iter(cached)), None)
            cached[id(argument)] = argument, result
            return result

        wrapper.cache_clear = cached.clear  # type: ignore[attr-defined]  # like lru_cache
        return wrapper

    return decorate
