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

_HEADING: Final = re.compile(r" *[A-Z]+(?:  +[A-Z]+)+ *")


def _short(cell: str) -> str:
    """`1/2` is too few."""
    ready, _, wanted = cell.partition("/")
    return "bad" if cell == "no" or (wanted and ready != wanted) else ""


_CELLS: Final[Mapping[str, Callable[[str], str]]] = {
    "READY": _short,
    "AGENTS": _short,
    "AVAILABLE": lambda cell: {"False": "bad", "Unknown": "warn"}.get(cell, ""),
    "STATE": lambda cell: "warn" if cell and cell != "Accepted" else "",
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
    words = list(re.finditer(r"[A-Z]+", heading))
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
