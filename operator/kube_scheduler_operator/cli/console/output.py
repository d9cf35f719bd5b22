"""Prints lines, tables and documents.

All that a command prints passes `VisibleStream`, which writes out what is not visible. It cannot
know which line breaks are the command's own, so lines are printed by the functions of this module:
each is one line, whatever it quotes. JSON and YAML have escapes of their own and lose nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Any, Final, TypeVar

from ...base.foreign_text import json_text as escaped_json
from ...base.foreign_text import one_line
from ...base.source.yaml_text import yaml_text
from .visible_stream import write_for_people

T = TypeVar("T")

_NAMED: Final = 3
_ABOUT: Final[ContextVar[str]] = ContextVar("about", default="")


def print_lines(*lines: str) -> None:
    write_for_people(sys.stdout, f"{text_of(lines)}\n")


def print_remark(line: str) -> None:
    """Print a line on standard error: a note, a warning, an error."""
    about = _ABOUT.get()
    write_for_people(sys.stderr, f"{one_line(f'{about}: {line}' if about else line)}\n")
    sys.stderr.flush()


@contextmanager
def remarks_about(what: str) -> Iterator[None]:
    """Begin the remarks of the block, and of tasks that begin in it, with what they are about."""
    token = _ABOUT.set(what)
    try:
        yield
    finally:
        _ABOUT.reset(token)


def print_now(line: str) -> None:
    """Print a message with the time of day in front; its lines are aligned."""
    first, *others = line.split("\n")
    time = f"{datetime.now().astimezone():%H:%M:%S} "
    print_lines(f"{time}{first}", *(f"{' ' * len(time)}{other}" for other in others))
    sys.stdout.flush()


def print_document(document: Any, output: str, text: str = "") -> None:
    """Print JSON, YAML or (`output` "text") the text, which `text_of` makes of lines."""
    if output == "text":
        write_for_people(sys.stdout, f"{text}\n")
    elif output == "json":
        sys.stdout.write(json_text(document))
    else:
        sys.stdout.write(yaml_text([document]))


def json_text(document: Any) -> str:
    """Return indented JSON with a line break at its end."""
    return escaped_json(document, indent=2) + "\n"


def text_of(lines: Iterable[str]) -> str:
    return "\n".join(map(one_line, lines))


def counted(number: int, noun: str) -> str:
    """Return the number with the noun in its form: `1 node`, `2 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def first_names(names: Sequence[str]) -> str:
    """Return the first names and the number of others: `a, b, c, … and 2 more`."""
    rest = f", … and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + rest


def limited(rows: Sequence[T], most: int) -> Sequence[T]:
    """Return the rows of a table, at most `most` of them (0: all)."""
    return rows[:most] if most > 0 else rows


def limited_table(rows: Sequence[Sequence[str]], count: int, indent: str = "  ") -> Iterator[str]:
    """Yield the lines of a table, and how many of `count` rows it does not have."""
    if len(rows) > 1:
        yield from (f"{indent}{line}" for line in format_table(rows))
    if count > len(rows) - 1:
        yield f"{indent}… and {count - len(rows) + 1} more (--nodes 0 shows all)"


def format_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align the columns of rows; the first row is the heading."""
    shown = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in shown) for column in range(len(shown[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in shown
    ]
