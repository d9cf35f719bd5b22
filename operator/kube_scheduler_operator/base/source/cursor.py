"""A place in the characters of a YAML file, and classes of characters."""

from __future__ import annotations

import re
from typing import Final, NoReturn

from .encoding import BREAKS, Characters, position_of
from .tree import ParseError, Position

END: Final = "\0"
"""Follows the last character; YAML does not allow it anywhere else."""
BLANK: Final = " \t"
BLANK_OR_BREAK: Final = frozenset(BLANK + BREAKS)
BREAK_OR_END: Final = frozenset(BREAKS + END)
SEPARATORS: Final = frozenset(BLANK + BREAKS + END)
MARKS: Final = ("---", "...")
_PADDING: Final = 10  # more than the scanner looks ahead
_SPACES: Final = re.compile(" *")
_BLANKS: Final = re.compile(f"[{BLANK}]*")
_LINE: Final = re.compile(f"[^{BREAKS}{END}]*")
_BYTE_ORDER_MARK: Final = "\ufeff"


class Cursor:
    """The current place in a text; reading beyond an incomplete text raises IndexError."""

    __slots__ = ("_source", "_twice_marked", "at", "line", "line_start", "text")

    def __init__(self, source: Characters) -> None:
        self._source = source
        self.text = source.text if source.error else source.text + END * _PADDING
        self.at = self.line = self.line_start = 0
        # After a second mark, the decoder skips one character of each line of its first block.
        self._twice_marked = self.text.startswith(_BYTE_ORDER_MARK)

    @property
    def column(self) -> int:
        """The number of characters before this one in its line."""
        return self.at - self.line_start

    @property
    def error(self) -> ParseError:
        """The error that follows an incomplete text."""
        assert self._source.error  # noqa: S101  # complete texts are padded
        return self._source.error

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        """Raise an error at an offset, by default the current one."""
        raise ParseError(self.position(self.at if at is None else at), message)

    def position(self, at: int) -> Position:
        return position_of(self._source.text, at)

    def need(self, length: int) -> None:
        """Require the next characters, or the end of a complete text."""
        self.text[self.at + length - 1]

    def match(self, pattern: re.Pattern[str]) -> str:
        """Consume a match of the pattern, which may be empty."""
        match = pattern.match(self.text, self.at)
        assert match  # noqa: S101  # the patterns also match an empty string
        self.at = match.end()
        self.text[self.at]
        return match[0]

    def blanks(self) -> str:
        """Consume spaces and tabs."""
        return self.match(_BLANKS)

    def spaces(self) -> str:
        return self.match(_SPACES)

    def comment(self) -> None:
        """Consume a comment, if one begins here."""
        if self.text[self.at] == "#":
            self.match(_LINE)

    def rest_of_line(self) -> str:
        """Consume everything before the next line break."""
        return self.match(_LINE)

    def line_break(self) -> str:
        """Consume a line break, if one is here, and return its value."""
        character = self.text[self.at]
        if character not in BREAKS:
            return ""
        self.need(2)
        self.at += 2 if self.text[self.at : self.at + 2] == "\r\n" else 1
        self.line += 1
        self.line_start = self.at
        return character if character in "\u2028\u2029" else "\n"

    def end_line(self) -> None:
        """Begin another line at the end of the text, unless its last line is complete."""
        if self.column:
            self.line += 1
            self.line_start = self.at

    def byte_order_mark(self) -> None:
        """Skip the character that the decoder mistakes for a byte order mark in a line."""
        if self._twice_marked and not self.column and self.at < self._source.first_block:
            self.at += 1

    def is_at_document_mark(self) -> bool:
        """Return whether the line begins with `---` or `...`."""
        return (
            self.at == self.line_start
            and self.text.startswith(MARKS, self.at)
            and self.text[self.at + 3] in SEPARATORS
        )
