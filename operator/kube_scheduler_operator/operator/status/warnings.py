"""Warnings about accepted settings, as a condition for information only.

The message is sorted, so that an order that changes does not cause a write in every reconcile.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...base.findings import Finding
from .conditions import AS_EXPECTED, Condition

MOST_LINES: Final = 10
MOST_CHARACTERS: Final = 600
"""Of a line. The longest message has some 450, but messages contain names of any length."""


def warnings_condition(type_: str, findings: Iterable[Finding], owner: str = "") -> Condition:
    """The condition that lists `findings`: True if there are any.

    `owner` is the prefix to omit from every line, because the condition is in that object.
    """
    messages = sorted({(f.text.removeprefix(owner), f.reason) for f in findings})
    if not messages:
        return Condition(type_, "False", AS_EXPECTED)
    lines = [_shortened(text) for text, _ in messages[:MOST_LINES]]
    more = len(messages) - len(lines)
    if more:
        lines.append(f"and {more} more: `kube-scheduler-operator validate -f FILE` lists all")
    return Condition(type_, "True", messages[0][1], "\n".join(lines))


def _shortened(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
