"""What the checks say: a problem at a path, and the finding that a person gets to read."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

Path = tuple[str | int, ...]
"""Where in a JSON document: keys and list indices from its top."""

Severity = Literal["error", "warning"]
ERROR: Final = "error"
"""kube-scheduler would not start."""
WARNING: Final = "warning"
"""It would start, and somebody would be surprised."""

_SIMPLE_KEY: Final = re.compile(r"[A-Za-z0-9_*-]+")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that somebody should know or fix.

    Attributes:
        condition: the condition type that reports it (names.py).
        reason: CamelCase, for programs.
        path: the field, from the object's top: `spec.unsupportedConfigOverrides.parallelism`.
        message: one sentence: what is wrong and what to do.
        blocking: True when no new revision may be cut while it stands.
    """

    condition: str
    reason: str
    path: str
    message: str
    blocking: bool

    @property
    def text(self) -> str:
        """The message with the field that it is about in front."""
        return f"{self.path}: {self.message}" if self.path else self.message


@dataclass(frozen=True, slots=True)
class Problem:
    """What a check found, in terms of the document that it was given.

    Attributes:
        reason: CamelCase, for programs.
        path: where in the checked document.
        message: what is wrong, without the path; what to do as well where `fix` is empty.
        fix: what to do.
        severity: whether kube-scheduler would start with it.
    """

    reason: str
    path: Path
    message: str
    fix: str = ""
    severity: Severity = ERROR

    @property
    def sentence(self) -> str:
        """What is wrong and what to do."""
        return f"{self.message}; {self.fix}" if self.fix else self.message

    @property
    def parts(self) -> tuple[str, str]:
        """(what is wrong, what to do); a message that has both has the latter after its last `;`.

        The second is empty where the message is all there is to say.
        """
        if self.fix:
            return self.message, self.fix
        wrong, semicolon, remedy = self.message.rpartition("; ")
        return (wrong, remedy) if semicolon else (self.message, "")


def format_path(path: Path) -> str:
    """The path as Kubernetes writes it: `profiles[0].plugins.score`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _SIMPLE_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{part!r}]"
    return text


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean "X"?` if something that is known looks like it, else nothing."""
    by_lower = {candidate.lower(): candidate for candidate in sorted(known, reverse=True)}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.75)
    return f'; did you mean "{by_lower[close[0]]}"?' if close else ""


def listing(names: Iterable[str]) -> str:
    """Names as a sentence has them: `a, b or c`."""
    items = list(names)
    return f"{', '.join(items[:-1])} or {items[-1]}" if len(items) > 1 else "".join(items)
