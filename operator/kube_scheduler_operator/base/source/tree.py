"""Parsed YAML and JSON: values with their positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ..findings import Path

DEEPEST: Final = 100
"""Levels: twice as many as any configuration has, and far below Python's limit."""
TOO_DEEP: Final = f"nested more than {DEEPEST} levels deep; remove levels"


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a file, and the length of the text there."""

    line: int  # from 1
    column: int  # in characters, from 1
    # characters of a scalar, of a list or map in brackets, of the first field of another map, or of
    # a key with a scalar as its value; 0 if it is unknown or has several lines
    length: int = field(default=0, compare=False)

    @property
    def end_column(self) -> int | None:
        """The column after the text; None if its length is unknown."""
        return self.column + self.length if self.length else None


@dataclass(frozen=True, slots=True)
class Flaw:
    """An error in a document that could still be parsed."""

    position: Position
    path: Path  # of the field, if known
    message: str  # the error, and the fix after a semicolon


@dataclass(frozen=True, slots=True)
class SourceNode:
    position: Position
    data: Any  # the value as plain data
    # of a map: key -> (position of the key, value)
    fields: dict[str, tuple[Position, SourceNode]] = field(default_factory=dict)
    items: Sequence[SourceNode] = ()  # of a list

    def child(self, part: str | int) -> tuple[Position, SourceNode] | None:
        """Return (position, value) of a key or a list index; None if absent."""
        if isinstance(part, str):
            return self.fields.get(part)
        if 0 <= part < len(self.items):
            return self.items[part].position, self.items[part]
        return None

    def at(self, path: Path) -> SourceNode | None:
        """Return the value at a path; None if the document does not contain it."""
        _, depth, node = self.walk(path)
        return node if depth == len(path) else None

    def walk(self, path: Path) -> tuple[Position, int, SourceNode]:
        """Follow a path; return (position, number of parts found, value) of where it ends."""
        node, position = self, self.position
        for depth, part in enumerate(path):
            step = node.child(part)
            if step is None:
                return position, depth, node
            position, node = step
        return position, len(path), node


class ParseError(Exception):
    """A file that cannot be parsed."""

    def __init__(self, position: Position, message: str) -> None:
        super().__init__(message)
        self.position, self.message = position, message
