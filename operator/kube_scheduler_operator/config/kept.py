"""Parts of configurations as something that results can be kept by: their content.

A cluster may have hundreds of profiles, and an edit changes one of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from .findings import Path, Problem
from .target import Target

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
