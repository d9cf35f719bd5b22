"""Results of validation: a problem at a path, and the finding that users see."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from .foreign_text import foreign
from .limits import MESSAGE_LENGTH

Path = tuple[str | int, ...]
"""A position in a JSON document: keys and list indices."""

Severity = Literal["error", "warning"]
ERROR: Final = "error"
"""kube-scheduler does not start with it."""
WARNING: Final = "warning"
"""kube-scheduler starts, but may not behave as intended."""

NOT_ALLOWED: Final = "NotAllowed"
"""The reason of what an object may not set: it would give its author more than a scheduler."""

_SIMPLE_KEY: Final = re.compile(r"[A-Za-z0-9_*-]+")


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of validation, as users see it."""

    condition: str  # the condition type that reports it (names.py)
    reason: str  # a CamelCase identifier, for programs
    path: str  # the full path of the field: `spec.unsupportedConfigOverrides.parallelism`
    message: str  # one sentence: what is wrong and how to fix it
    blocking: bool  # True if it prevents a new revision

    def __post_init__(self) -> None:
        """The path and the message quote what others wrote."""
        object.__setattr__(self, "path", foreign(self.path, MESSAGE_LENGTH))
        object.__setattr__(self, "message", foreign(self.message, MESSAGE_LENGTH))

    @property
    def text(self) -> str:
        """The message, prefixed with the path of the field."""
        return f"{self.path}: {self.message}" if self.path else self.message


@dataclass(frozen=True, slots=True)
class Problem:
    """One result of validation, relative to the validated document."""

    reason: str  # a CamelCase identifier, for programs
    path: Path  # the field in the document
    message: str  # what is wrong, without the path; includes the fix if `fix` is empty
    fix: str = ""  # how to fix it
    severity: Severity = ERROR  # an error keeps kube-scheduler from starting

    def __post_init__(self) -> None:
        """The message and the fix quote what others wrote; the path keeps the keys as they are."""
        object.__setattr__(self, "message", foreign(self.message, MESSAGE_LENGTH))
        object.__setattr__(self, "fix", foreign(self.fix, MESSAGE_LENGTH))

    @property
    def sentence(self) -> str:
        """What is wrong and how to fix it."""
        return f"{self.message}; {self.fix}" if self.fix else self.message

    @property
    def parts(self) -> tuple[str, str]:
        """(what is wrong, how to fix it); in a message with both, the last `;` separates them.

        The second is empty if there is no fix.
        """
        if self.fix:
            return self.message, self.fix
        wrong, semicolon, remedy = self.message.rpartition("; ")
        return (wrong, remedy) if semicolon else (self.message, "")


def format_path(path: Path) -> str:
    """The path in Kubernetes' notation: `profiles[0].plugins.score`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif isinstance(part, str) and _SIMPLE_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{part!r}]"
    return text


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean "X"?` if a known name is similar, else the empty string."""
    by_lower = {candidate.lower(): candidate for candidate in sorted(known, reverse=True)}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.75)
    return f'; did you mean "{by_lower[close[0]]}"?' if close else ""


def listing(names: Iterable[str]) -> str:
    """Names as an enumeration: `a, b or c`."""
    items = list(names)
    return f"{', '.join(items[:-1])} or {items[-1]}" if len(items) > 1 else "".join(items)
