"""A place in the characters of a YAML file, and the text of plain, quoted and block scalars."""

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


_S: Final = re.escape(BLANK + BREAKS + END)
_PLAIN: Final = re.compile(f"(?:[^{_S}:]|:(?![{_S}]))*")
_FLOW_PLAIN: Final = re.compile(rf"(?:[^{_S}:,?\[\]{{}}]|:(?![{_S}]))*")
_QUOTED: Final = {"'": re.compile(f"[^{_S}']*"), '"': re.compile(rf'[^{_S}"\\]*')}
_HEX: Final = re.compile(r"[0-9a-fA-F]+")
_CODE_LENGTH: Final = {"x": 2, "u": 4, "U": 8}
_ESCAPES: Final = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f",
    "r": "\r", "e": "\x1b", " ": " ", '"': '"', "'": "'", "\\": "\\", "N": "\x85", "_": "\xa0",
    "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_TAB: Final = "a tab (U+0009) in the indentation; YAML indents with spaces"


class _Folded:
    """A scalar of several lines, whose line breaks are folded."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.is_broken = False
        self._blanks = self._first = ""
        self._further: list[str] = []

    def space(self, cursor: Cursor, indent: int = 0) -> None:
        """Consume blanks and line breaks; tabs before the column `indent` are an error."""
        while (character := cursor.text[cursor.at]) in BLANK_OR_BREAK:
            if character in BLANK:
                if self.is_broken and character == "\t" and cursor.column < indent:
                    cursor.fail(_TAB)
                if not self.is_broken:
                    self._blanks += character
                cursor.at += 1
            elif self.is_broken:
                self._further.append(cursor.line_break())
            else:
                self._blanks, self._first = "", cursor.line_break()
                self.is_broken = True

    def join(self) -> None:
        """Add the consumed blanks or the folded line breaks."""
        if not self.is_broken:
            self.parts.append(self._blanks)
        elif self._first == "\n":
            self.parts += self._further or " "
        else:
            self.parts += (self._first, *self._further)
        self._blanks = self._first = ""
        self._further = []
        self.is_broken = False


def plain(cursor: Cursor, indent: int, *, flow: bool) -> tuple[str, bool, int]:
    """Consume a plain scalar; return (its text, whether it ends with its line, its end).

    The end is an offset, or 0 if the scalar has several lines.
    """
    folded, pattern = _Folded(), _FLOW_PLAIN if flow else _PLAIN
    line, end = cursor.line, 0
    while True:
        cursor.need(4)
        if cursor.is_at_document_mark() or cursor.text[cursor.at] == "#":
            break
        if part := cursor.match(pattern):
            folded.join()
            folded.parts.append(part)
            end = cursor.at if cursor.line == line else 0
        if cursor.text[cursor.at] not in BLANK_OR_BREAK:
            break
        folded.space(cursor, indent)
        if not flow and cursor.column < indent:
            break
    return "".join(folded.parts), folded.is_broken, end


def quoted(cursor: Cursor, quote: str) -> str:
    """Consume a scalar in single or double quotes; return its text."""
    start, folded = cursor.at, _Folded()
    cursor.at += 1
    while True:
        cursor.need(4)
        if cursor.is_at_document_mark():
            cursor.fail(f"a line of a value in quotes is a document separator; end the {quote}")
        if cursor.text[cursor.at] == END:
            cursor.fail(f"a value in quotes does not end; add a second {quote}", start)
        while cursor.text[cursor.at] not in SEPARATORS:
            folded.parts.append(cursor.match(_QUOTED[quote]))
            cursor.need(2)
            character, following = cursor.text[cursor.at], cursor.text[cursor.at + 1]
            if character in SEPARATORS or (character == quote and quote == '"'):
                break
            if character == quote:
                if following != quote:
                    break
                folded.parts.append(quote)
                cursor.at += 2
            elif following in BREAKS:
                cursor.need(3)
                cursor.at += 1
                cursor.line_break()
                folded.is_broken = True
                break
            else:
                folded.parts.append(_escaped(cursor, following))
        if cursor.text[cursor.at] == quote:
            break
        folded.space(cursor)
        folded.join()
    cursor.at += 1
    return "".join(folded.parts)


def _escaped(cursor: Cursor, character: str) -> str:
    start = cursor.at
    cursor.at += 2
    if character in _ESCAPES:
        return _ESCAPES[character]
    length = _CODE_LENGTH.get(character)
    if length is None:
        cursor.fail(f'"\\{character}" is not an escape sequence; write two backslashes', start)
    cursor.need(length)
    digits = cursor.text[cursor.at : cursor.at + length]
    if not _HEX.fullmatch(digits):
        cursor.fail(
            f"\\{character} needs {length} hexadecimal digits; write two backslashes", start
        )
    code = int(digits, 16)
    if 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
        cursor.fail(f"\\{character}{digits} is not a character; write two backslashes", start)
    cursor.at += length
    return chr(code)


def block(cursor: Cursor, parent: int, *, literal: bool) -> str:
    """Consume a scalar after | or > in a block with the indentation `parent`; return its text."""
    chomping, increment = _header(cursor)
    cursor.blanks()
    cursor.comment()
    if cursor.text[cursor.at] not in BREAK_OR_END:
        cursor.fail("text follows | or > on the same line; begin the text on the next line")
    cursor.line_break()
    indent = max(parent, 0) + increment if increment else 0
    indent, breaks = _breaks(cursor, indent, parent)
    parts: list[str] = []
    last_break, was_blank = "", False
    while cursor.column == indent and cursor.text[cursor.at] != END:
        is_blank = cursor.text[cursor.at] in BLANK
        if literal or was_blank or is_blank or last_break != "\n":
            parts.append(last_break)
        elif not breaks:
            parts.append(" ")
        parts += breaks
        was_blank = is_blank
        parts.append(cursor.rest_of_line())
        cursor.need(2)
        last_break = cursor.line_break()
        indent, breaks = _breaks(cursor, indent, parent)
    if chomping != "-":
        parts.append(last_break)
    if chomping == "+":
        parts += breaks
    return "".join(parts)


def _header(cursor: Cursor) -> tuple[str, int]:
    """Consume the indicators; return (+, - or nothing; columns of indentation, or 0)."""
    cursor.at += 1
    chomping, increment = "", 0
    for _ in range(2):
        character = cursor.text[cursor.at]
        if character in "+-" and not chomping:
            chomping = character
        elif character in "123456789" and not increment:
            increment = int(character)
        elif character == "0" and not increment:
            cursor.fail("an indentation of 0 after | or >; write 1 to 9, or nothing")
        else:
            break
        cursor.at += 1
    return chomping, increment


def _breaks(cursor: Cursor, indent: int, parent: int) -> tuple[int, list[str]]:
    """Consume empty lines and the indentation; return (the indentation, the line breaks)."""
    deepest = 0
    breaks: list[str] = []
    while True:
        while (not indent or cursor.column < indent) and cursor.text[cursor.at] == " ":
            cursor.at += 1
        deepest = max(deepest, cursor.column)
        if (not indent or cursor.column < indent) and cursor.text[cursor.at] == "\t":
            cursor.fail(_TAB)
        if cursor.text[cursor.at] not in BREAKS:
            return indent or max(deepest, parent + 1, 1), breaks
        breaks.append(cursor.line_break())
