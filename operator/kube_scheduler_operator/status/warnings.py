"""What is accepted and may surprise, as a condition: for information, nothing waits for it.

The message has a bounded length and an order of its own, because a status that differs from the
last one only in the order of its sentences would be written in every pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .conditions import AS_EXPECTED, Condition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..base.findings import Finding

MOST_LINES: Final = 10
MOST_CHARACTERS: Final = 600
"""Of a line; the longest of ours has some 450, but names that users chose are in them."""


def warnings_condition(type_: str, findings: Iterable[Finding], owner: str = "") -> Condition:
    """The condition that tells of `findings`: True if there are any.

    Args:
        type_: its type.
        findings: in any order.
        owner: what to leave out at the beginning of every line, because the object says it.
    """
    told = sorted({(f.text.removeprefix(owner), f.reason) for f in findings})
    if not told:
        return Condition(type_, "False", AS_EXPECTED)
    lines = [_shortened(text) for text, _ in told[:MOST_LINES]]
    more = len(told) - len(lines)
    if more:
        lines.append(f"and {more} more: `kube-scheduler-operator validate -f FILE` lists all")
    return Condition(type_, "True", told[0][1], "\n".join(lines))


def _shortened(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
