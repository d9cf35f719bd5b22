"""What the readers of YAML and JSON make: values that know where they stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..base.findings import Path


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a file; both count from 1, columns in characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Flaw:
    """Something that can be read and is wrong all the same.

    Attributes:
        position: where.
        path: the field, if that is known.
        message: what is wrong; what to do after a semicolon.
    """

    position: Position
    path: Path
    message: str


@dataclass(frozen=True, slots=True)
class Node:
    """A value of a document.

    Attributes:
        position: where it begins.
        data: the value as plain data.
        fields: of a map: where the key is, and the value.
        items: of a list.
    """

    position: Position
    data: Any
    fields: dict[str, tuple[Position, Node]] = field(default_factory=dict)
    items: Sequence[Node] = ()

    def child(self, part: str | int) -> tuple[Position, Node] | None:
        """(where it is written, the value) of a key or a list index; None if it is not there."""
        if isinstance(part, str):
            return self.fields.get(part)
        if 0 <= part < len(self.items):
            return self.items[part].position, self.items[part]
        return None


class SourceError(Exception):
    """A text that cannot be read.

    Attributes:
        position: where.
        message: what is wrong there.
    """

    def __init__(self, position: Position, message: str) -> None:
        super().__init__(message)
        self.position, self.message = position, message
