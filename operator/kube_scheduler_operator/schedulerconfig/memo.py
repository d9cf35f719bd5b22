"""What results are kept by: the content of what they are about, or its being the very same object.

A cluster may have hundreds of profiles, and an edit changes one of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, Final, TypeVar

from ..base.findings import Path, Problem
from .target import Target

Given = TypeVar("Given")
Made = TypeVar("Made")

REMEMBERED: Final = 1024
"""Results of one kind that are kept at most; the one that was not asked for longest goes."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a configuration and the scheduler that will read it, the same if their content is.

    Attributes:
        content: the part as text, in the order of its keys.
        reader: what can be told apart about the scheduler.
        value: the part; nobody may change it.
        target: the scheduler.
    """

    content: str
    reader: tuple[object, ...]
    value: Any = field(compare=False)
    target: Target = field(compare=False)

    @classmethod
    def of(cls, value: Any, target: Target) -> Part | None:
        """Of something that JSON can say; None of anything else, that files may have."""
        try:
            content = json.dumps(value)
        except (TypeError, ValueError, RecursionError):
            return None
        return cls(content, target.identity, value, target)


def within(problems: Iterable[Problem], path: Path) -> Iterator[Problem]:
    """Problems of a part as problems of the whole: `path` is where the part is in it."""
    return (replace(problem, path=(*path, *problem.path)) for problem in problems)


def by_identity(most: int) -> Callable[[Callable[[Given], Made]], Callable[[Given], Made]]:
    """Have a function of one argument work once for each object that it is given.

    For objects that nobody changes, such as those of the store, whose content would cost more to
    look at than it saves. They are kept with the results, so no other object can be taken for one.

    Args:
        most: how many are kept at most; the one that came first goes first.
    """

    def keep(function: Callable[[Given], Made]) -> Callable[[Given], Made]:
        known: dict[int, tuple[Given, Made]] = {}

        @wraps(function)
        def wrapper(given: Given) -> Made:
            found = known.get(id(given))
            if found is not None:
                return found[1]
            made = function(given)
            while len(known) >= most:
                known.pop(next(iter(known)), None)
            known[id(given)] = given, made
            return made

        wrapper.cache_clear = known.clear  # type: ignore[attr-defined]  # as lru_cache has it
        return wrapper

    return keep
