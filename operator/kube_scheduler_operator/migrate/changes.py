"""The changes that a conversion reports, and the error for invalid input."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from ..base.findings import Path, Problem, format_path


class Severity(Enum):
    """The effect of a change on scheduling; the value is displayed."""

    SAME = "same behaviour"
    DIFFERS = "behaviour differs"
    LOST = "cannot be kept"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between the old document and the result."""

    path: Path  # of the field in the old document
    what: str  # the change, without the path
    why: str  # the reason, and what to do instead if the behaviour differs or is lost
    severity: Severity  # effect on scheduling

    @property
    def text(self) -> str:
        """One line: `profiles[0].plugins.score: … (…)`."""
        where = format_path(self.path)
        return f"{where}: {self.what}; {self.why}" if where else f"{self.what}; {self.why}"


class ConversionError(ValueError):
    """The document cannot be converted; `problems` contain fields and fixes."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(problem_text(problem) for problem in self.problems))


def refuse(problems: Iterable[Problem]) -> None:
    """Stop the conversion if there are problems.

    Raises:
        ConversionError: there are some.
    """
    refused = list(problems)
    if refused:
        raise ConversionError(refused)


class ConversionLog:
    """Collects the changes of one conversion, in order and without duplicates."""

    def __init__(self) -> None:
        self._changes: dict[Change, None] = {}

    def same(self, path: Path, what: str, why: str) -> None:
        """Add a change without effect on scheduling."""
        self._add(Change(path, what, why, Severity.SAME))

    def differs(self, path: Path, what: str, why: str) -> None:
        """Add a change after which the behaviour is similar."""
        self._add(Change(path, what, why, Severity.DIFFERS))

    def lost(self, path: Path, what: str, why: str) -> None:
        """Add a change after which the behaviour is lost."""
        self._add(Change(path, what, why, Severity.LOST))

    def changes(self) -> tuple[Change, ...]:
        """All changes."""
        return tuple(self._changes)

    def _add(self, change: Change) -> None:
        self._changes.setdefault(change)


def problem_text(problem: Problem) -> str:
    """A problem's message with the field in front."""
    where = format_path(problem.path)
    return f"{where}: {problem.message}" if where else problem.message
