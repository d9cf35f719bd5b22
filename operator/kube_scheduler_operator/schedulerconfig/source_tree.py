"""Parsed YAML and JSON: values with their positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ..base.findings import Path

DEEPEST: Final = 100
"""Maximum nesting: twice as deep as any configuration, and far below Python's limit."""
TOO_DEEP: Final = f"nested more than {DEEPEST} levels deep; remove levels"


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a file."""

    line: int  # from 1; columns in characters
    column: int
    # characters of what stands there in this line: a scalar, a list or map in brackets, or a key
    # and, if that is a scalar, its value; of another map its first field. 0: it is not known, or
    # several lines. Ignored by comparisons.
    length: int = field(default=0, compare=False)

    @property
    def end_column(self) -> int | None:
        """The column behind what stands there; None if it is not known."""
        return self.column + self.length if self.length else None


@dataclass(frozen=True, slots=True)
class Flaw:
    """An error in a document that could still be parsed."""

    position: Position  # of the error
    path: Path  # of the field, if known
    message: str  # the error, and the fix after a semicolon


@dataclass(frozen=True, slots=True)
class SourceNode:
    """A value of a document."""

    position: Position  # of its first character
    data: Any  # the value as plain data
    # of a map: key -> (position of the key, value)
    fields: dict[str, tuple[Position, SourceNode]] = field(default_factory=dict)
    items: Sequence[SourceNode] = ()  # of a list

    def child(self, part: str | int) -> tuple[Position, SourceNode] | None:
        """(position, value) of a key or a list index; None if absent."""
        if isinstance(part, str):
            return self.fields.get(part)
        if 0 <= part < len(self.items):
            return self.items[part].position, self.items[part]
        return None

    def walk(self, path: Path) -> tuple[Position, int]:
        """(position of a path's key or entry or its deepest parent, the parts that it has)."""
        node, position = self, self.position
        for depth, part in enumerate(path):
            step = node.child(part)
            if step is None:
                return position, depth
            position, node = step
        return position, len(path)


class ParseError(Exception):
    """A file that cannot be parsed.

    Attributes:
        position: of the error.
        message: the error.
    """

    def __init__(self, position: Position, message: str) -> None:
        super().__init__(message)
        self.position, self.message = position, message
