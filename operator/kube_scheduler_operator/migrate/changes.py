"""What a conversion says: one value for every change, and the error for what it cannot read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from ..base.findings import Path, Problem, format_path


class Severity(Enum):
    """What a change means to whoever ran the old configuration; the value is for people."""

    SAME = "same behaviour"
    DIFFERS = "behaviour differs"
    LOST = "cannot be kept"


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is not in the result as it was in the old document.

    Attributes:
        path: where in the old document.
        what: what became of it, without the path.
        why: the reason, and for what differs or is lost what to do instead.
        severity: whether the scheduler does the same as before.
    """

    path: Path
    what: str
    why: str
    severity: Severity

    @property
    def text(self) -> str:
        """One line: `profiles[0].plugins.score: … (…)`."""
        where = format_path(self.path)
        return f"{where}: {self.what}; {self.why}" if where else f"{self.what}; {self.why}"


class ConversionError(ValueError):
    """The document cannot be converted; `problems` name the fields and the fixes."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(problem_text(problem) for problem in self.problems))


class Report:
    """Collects the changes of one conversion, in the order in which they are found."""

    def __init__(self) -> None:
        self._changes: dict[Change, None] = {}

    def same(self, path: Path, what: str, why: str) -> None:
        """The scheduler does what it did."""
        self._add(Change(path, what, why, Severity.SAME))

    def differs(self, path: Path, what: str, why: str) -> None:
        """The scheduler does something like it."""
        self._add(Change(path, what, why, Severity.DIFFERS))

    def lost(self, path: Path, what: str, why: str) -> None:
        """The scheduler does not do it any more."""
        self._add(Change(path, what, why, Severity.LOST))

    def changes(self) -> tuple[Change, ...]:
        """All of them, each once."""
        return tuple(self._changes)

    def _add(self, change: Change) -> None:
        self._changes.setdefault(change)


def problem_text(problem: Problem) -> str:
    """A problem with the field that it is about in front."""
    where = format_path(problem.path)
    return f"{where}: {problem.message}" if where else problem.message
