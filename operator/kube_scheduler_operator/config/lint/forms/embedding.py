"""Where in another document a configuration is, and what reads it."""

from __future__ import annotations

from dataclasses import dataclass

from ....base.findings import Path
from ....base.source.encoding import LINE_BREAK
from ....base.source.tree import Position
from ...language.versions import Version
from .form import Mount, Part, Text


@dataclass(frozen=True, slots=True)
class Embedding:
    owner: str  # the object that has it: `ConfigMap my-config`
    position: Position  # of the content's key, in the text that has the document
    content: str | None = None  # None: a part of the document, not a text
    # the lines of that text from the first line of the content on; empty if the content is written
    # in another form
    lines: tuple[str, ...] = ()
    outer: Embedding | None = None  # where that text itself is; None: it is the file
    text: Text | None = None
    part: Part | None = None

    def in_file(self, position: Position) -> Position:
        """Translate a position in the content to the file; the key's position if it is unknown."""
        here = self._in_text(position)
        return self.outer.in_file(here) if self.outer else here

    def _in_text(self, position: Position) -> Position:
        if self.content is None:
            return position
        index = position.line - 1
        content = LINE_BREAK.split(self.content)
        if index < min(len(content), len(self.lines)):
            line, whole = content[index], self.lines[index]
            if whole.endswith(line):
                first = self.position.line + 1
                column = len(whole) - len(line) + position.column
                return Position(first + index, column, position.length)
        return self.position

    def outer_path(self, path: Path) -> Path:
        """Translate a path in a part to the document."""
        return self.part.outer(path) if self.part else path

    @property
    def version(self) -> Version | None:
        """The version of the kube-scheduler that reads it, if the document shows it."""
        described = self.text or self.part
        own = described.version if described else None
        return own or (self.outer.version if self.outer else None)

    @property
    def place(self) -> str:
        """The provider whose scheduler reads it, as in `--for`; empty: unknown."""
        described = self.text or self.part
        return described.place if described else ""

    @property
    def node_mounts(self) -> tuple[Mount, ...] | None:
        """The files that the node has from outside; None: unknown."""
        own = self.text.node_mounts if self.text else None
        return own if own is not None or self.outer is None else self.outer.node_mounts
