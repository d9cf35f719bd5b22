"""The metrics and labels that an expression of Prometheus names.

It reads what the dashboards and alerts here use. A test compares it with the syntax tree of
Prometheus itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_GROUPING: Final = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_SELECTOR: Final = re.compile(r"\b([a-zA-Z_:][\w:]*)\b(?!\s*\()(?:\{([^}]*)\})?")
_MATCHER: Final = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"')
_RANGE: Final = re.compile(r"\[[^\]]*\]")
_WORDS: Final = frozenset({"and", "or", "unless", "bool", "offset", "by", "without", "on"})


@dataclass(frozen=True)
class Named:
    """What an expression names."""

    selectors: tuple[tuple[str, frozenset[str]], ...]  # metric, and the labels of its matchers
    grouping: frozenset[str]  # labels of by, without, on, ignoring, group_left and group_right

    @property
    def metrics(self) -> frozenset[str]:
        return frozenset(metric for metric, _ in self.selectors)


def named(expression: str) -> Named:
    """Return the metrics and labels of an expression."""
    grouping = {
        label.strip()
        for match in _GROUPING.finditer(expression)
        for label in match[1].split(",")
        if label.strip()
    }
    rest = _RANGE.sub("", _GROUPING.sub(" ", expression))
    selectors = tuple(
        (match[1], frozenset(_MATCHER.findall(match[2] or "")))
        for match in _SELECTOR.finditer(rest)
        if match[1] not in _WORDS and not match[1][0].isdigit()
    )
    return Named(selectors, frozenset(grouping))
