"""Results of validation: a problem at a path, and the finding that users see."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

from .foreign_text import foreign
from .limits import MESSAGE_LENGTH

Path = tuple[str | int, ...]
"""A place in a JSON document: keys and list indices."""

Severity = Literal["error", "warning"]
ERROR: Final = "error"
"""kube-scheduler does not start with it."""
WARNING: Final = "warning"
"""kube-scheduler starts, but may not behave as intended."""

NOT_ALLOWED: Final = "NotAllowed"
"""The reason for rejecting a setting that would give an object's author more than a scheduler."""

_LISTED_PATHS: Final = 5
_LISTED_LENGTH: Final = 64

_SIMPLE_KEY: Final = re.compile(r"[A-Za-z0-9_*-]+")


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of validation, as users see it."""

    condition: str  # the condition type that reports it (names.py)
    reason: str  # in CamelCase, for programs
    path: str  # of the field, in full: `spec.unsupportedConfigOverrides.parallelism`
    message: str  # one sentence: what is wrong and how to fix it
    blocking: bool  # whether it prevents a new revision

    def __post_init__(self) -> None:
        # Both quote text that others wrote.
        object.__setattr__(self, "path", foreign(self.path, MESSAGE_LENGTH))
        object.__setattr__(self, "message", foreign(self.message, MESSAGE_LENGTH))

    @property
    def text(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


@dataclass(frozen=True, slots=True)
class Problem:
    """One result of validation, relative to the validated document."""

    reason: str  # in CamelCase, for programs
    path: Path  # of the field in the document
    message: str  # what is wrong, without the path; includes the fix if `fix` is empty
    fix: str = ""
    severity: Severity = ERROR

    def __post_init__(self) -> None:
        # Both quote text that others wrote; the path keeps the keys as they are.
        object.__setattr__(self, "message", foreign(self.message, MESSAGE_LENGTH))
        object.__setattr__(self, "fix", foreign(self.fix, MESSAGE_LENGTH))

    def below(self, path: Path) -> Problem:
        """Return the problem of the whole document, in which its own document is at `path`."""
        return replace(self, path=(*path, *self.path))

    @property
    def sentence(self) -> str:
        return f"{self.message}; {self.fix}" if self.fix else self.message

    @property
    def parts(self) -> tuple[str, str]:
        """(what is wrong, the fix or an empty string); the last `;` of a message separates them."""
        if self.fix:
            return self.message, self.fix
        wrong, semicolon, fix = self.message.rpartition("; ")
        return (wrong, fix) if semicolon else (self.message, "")


def warning_problem(reason: str, path: Path, message: str, fix: str) -> Problem:
    return Problem(reason, path, message, fix, WARNING)


def format_path(path: Path) -> str:
    """Format a path like Kubernetes: `profiles[0].plugins.score`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif isinstance(part, str) and _SIMPLE_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{part!r}]"
    return text


def listed_paths(paths: Iterable[Path]) -> str:
    """Return the first paths, each of bounded length: `a.b, c[0] and 3 others`."""
    distinct = list(dict.fromkeys(foreign(format_path(path), _LISTED_LENGTH) for path in paths))
    others = len(distinct) - _LISTED_PATHS
    listed = ", ".join(distinct[:_LISTED_PATHS])
    return f"{listed} and {others} others" if others > 0 else listed


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean "X"?` if a known name is similar, else the empty string."""
    by_lower = {candidate.lower(): candidate for candidate in sorted(known, reverse=True)}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.75)
    return f'; did you mean "{by_lower[close[0]]}"?' if close else ""


def listing(names: Iterable[str]) -> str:
    """Enumerate names: `a, b or c`."""
    items = list(names)
    return f"{', '.join(items[:-1])} or {items[-1]}" if len(items) > 1 else "".join(items)
