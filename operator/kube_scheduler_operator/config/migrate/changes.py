"""The changes that a conversion reports, and the error for invalid input."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ...base.findings import Path, Problem, format_path

UNREADABLE: Final = "Unreadable"


class Severity(Enum):
    """The effect of a change on scheduling; the value is displayed."""

    SAME = "same behaviour"
    DIFFERS = "behaviour differs"
    LOST = "cannot be kept"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between the old document and the result."""

    path: Path  # of the field in the old document
    what: str  # without the path
    why: str  # the reason, and what to do instead if the behaviour differs or is lost
    severity: Severity

    @property
    def text(self) -> str:
        """One line: `profiles[0].plugins.score: … (…)`."""
        where = format_path(self.path)
        return f"{where}: {self.what}; {self.why}" if where else f"{self.what}; {self.why}"


class ConversionError(ValueError):
    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(problem_text(problem) for problem in self.problems))


def unreadable(path: Path, message: str) -> ConversionError:
    return ConversionError([Problem(UNREADABLE, path, message)])


def refuse(problems: Iterable[Problem]) -> None:
    """Stop the conversion if there are problems.

    Raises:
        ConversionError: there are some.
    """
    if remaining := list(problems):
        raise ConversionError(remaining)


class ConversionLog:
    """The changes of one conversion, in order and without duplicates."""

    def __init__(self) -> None:
        self._changes: dict[Change, None] = {}

    def same(self, path: Path, what: str, why: str) -> None:
        self._changes.setdefault(Change(path, what, why, Severity.SAME))

    def differs(self, path: Path, what: str, why: str) -> None:
        self._changes.setdefault(Change(path, what, why, Severity.DIFFERS))

    def lost(self, path: Path, what: str, why: str) -> None:
        self._changes.setdefault(Change(path, what, why, Severity.LOST))

    def changes(self) -> tuple[Change, ...]:
        return tuple(self._changes)


def problem_text(problem: Problem) -> str:
    """Put the path of the field before a problem's message."""
    where = format_path(problem.path)
    return f"{where}: {problem.message}" if where else problem.message
