"""Colours problems and states in text for people.

Only text that `visible` has made is coloured, so every escape sequence is one of this module. A
colour repeats what a word states; where a text that others wrote matches, it is coloured as well.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, TextIO

_CODES: Final[Mapping[str, str]] = {"bad": "31", "warn": "33", "good": "32", "head": "1"}
"""SGR parameters: red, yellow, green, bold."""

_STATES: Final = re.compile(
    r"\b(?:(?P<bad>Available=False|Degraded=True)"
    r"|(?P<warn>Upgradeable=False|Progressing=True|[A-Z][a-z]+=Unknown)"
    r"|(?P<good>Available=True|Degraded=False))\b"
)
_ENDED: Final = re.compile(r"\b(?P<bad>was refused|failed)\b")
_LINES: Final = tuple(
    (re.compile(rf"(?:  )?{beginning}"), states)
    for beginning, states in (
        (r"(?P<bad>PROBLEM)  ", None),
        (r"(?:\S+: )?(?:(?P<bad>error)|(?P<warn>warning)): ", None),
        (r"(?:(?P<bad>failed)|(?P<warn>warning|not checked)|(?P<good>ok)) {2,}\S", None),
        (r"(?:\d+ +|\w+  )\S+Z  (?:(?P<bad>failed|refused)|(?P<good>installed))\b", None),
        (r"(?P<warn>Warnings|Not known)  ", None),
        (r"(?:(?P<warn>\d+ pods? without a node):|(?P<good>No pod waits for a node)\.)", None),
        (r"It fits on (?:(?P<bad>none)|(?P<good>\d+)) of \d+ nodes?", None),
        (r"(?P<head>Context .+)$", None),
        (r"Scheduler  ", _STATES),
        (r"Revision   ", _ENDED),
    )
)
"""How lines begin, in a context below its name also after two spaces; and what follows."""

_TITLE: Final = re.compile(r"[A-Z]+(?: [A-Z]+)*")
_HEADING: Final = re.compile(rf" *{_TITLE.pattern}(?:  +{_TITLE.pattern})+ *")
_PERCENT: Final = re.compile(r"(?<![\d.])(\d{1,6}) %")
_ALMOST_FULL, _FULL = 90, 100
"""Percent of what is allocatable, or of the capacity."""
_USED: Final = re.compile(r"(\d{1,6}) of (\d{1,6})")
_KEEPS_OFF: Final = re.compile(r":No(?:Schedule|Execute)\b")
_CONDITION: Final = re.compile(
    r"\bnode\.kubernetes\.io/(?:[a-z]+-pressure|not-ready|unreachable|network-unavailable"
    r"|out-of-service)\b"
)
"""A taint that states what is wrong with a node; others divide the nodes."""


def _short(cell: str) -> str:
    """`1/2` is too few."""
    ready, _, wanted = cell.partition("/")
    return "bad" if cell == "no" or (wanted and ready != wanted) else ""


def _state(cell: str) -> str:
    """Return the colour of the state of a SchedulerProfile or SchedulerExtender, or of a node."""
    if cell == "not ready":
        return "bad"
    return "warn" if cell and cell not in ("Accepted", "open") else ""


def _share(cell: str) -> str:
    """Return the colour of `4 of 4 (100 %)`, and of a load such as `cpu 42 %, memory 91 %`."""
    highest = max(map(int, _PERCENT.findall(cell)), default=0)
    return "bad" if highest >= _FULL else "warn" if highest >= _ALMOST_FULL else ""


def _pods(cell: str) -> str:
    used = _USED.fullmatch(cell)
    return "bad" if used and int(used[1]) >= int(used[2]) else ""


def _none_free(cell: str) -> str:
    return "bad" if cell == "0" else ""


def _taints(cell: str) -> str:
    return "bad" if _CONDITION.search(cell) else "warn" if _KEEPS_OFF.search(cell) else ""


_CELLS: Final[Mapping[str, Callable[[str], str]]] = {
    "READY": _short,
    "AGENTS": _short,
    "AVAILABLE": lambda cell: {"False": "bad", "Unknown": "warn"}.get(cell, ""),
    "STATE": _state,
    "CPU": _share,
    "CPU FREE": _none_free,
    "MEMORY": _share,
    "MEMORY FREE": _none_free,
    "PODS": _pods,
    "FITS": _none_free,
    "LOAD": _share,
    "TAINTS": _taints,
}
"""The colour of a cell by the heading of its column; empty: none."""


class _Span(NamedTuple):
    start: int
    end: int
    colour: str


class _Column(NamedTuple):
    start: int
    end: int | None  # None: the last one
    colour_of: Callable[[str], str]


def is_coloured(stream: TextIO) -> bool:
    """Return whether a stream is a terminal whose user wants colour (https://no-color.org)."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


def is_terminal(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that reads escape sequences."""
    try:
        return stream.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")
    except ValueError:  # it is closed
        return False


def coloured(text: str) -> str:
    """Return visible text with colours; without them it is the same text."""
    lines = []
    columns: tuple[_Column, ...] = ()
    for line in text.split("\n"):
        if _HEADING.fullmatch(line):
            columns = tuple(_columns(line))
        elif not line:
            columns = ()
        lines.append(_painted(line, list(_spans(line)) or list(_cells(line, columns))))
    return "\n".join(lines)


def _spans(line: str) -> Iterator[_Span]:
    for beginning, states in _LINES:
        if (match := beginning.match(line)) is None:
            continue
        for found in states.finditer(line) if states else (match,):
            if found.lastgroup is not None:
                yield _Span(*found.span(found.lastgroup), found.lastgroup)
        return


def _columns(heading: str) -> Iterator[_Column]:
    words = list(_TITLE.finditer(heading))
    ends = [word.start() for word in words[1:]]
    for word, end in zip(words, [*ends, None], strict=True):
        if (colour_of := _CELLS.get(word[0])) is not None:
            yield _Column(word.start(), end, colour_of)


def _cells(line: str, columns: tuple[_Column, ...]) -> Iterator[_Span]:
    for column in columns:
        cell = line[column.start : column.end].rstrip()
        if colour := column.colour_of(cell):
            yield _Span(column.start, column.start + len(cell), colour)


def _painted(line: str, spans: list[_Span]) -> str:
    for start, end, colour in reversed(spans):
        line = f"{line[:start]}\x1b[{_CODES[colour]}m{line[start:end]}\x1b[0m{line[end:]}"
    return line
