"""Characters to YAML tokens, with the rules of kube-scheduler's decoder (go.yaml.in/yaml/v2).

YAML libraries report different errors: `{a:}`, `[a?b]`, tabs, keys of several lines. Reading a file
like kube-scheduler requires a scanner with the same rules, including the surprising ones.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from typing import Final

from .encoding import BREAKS, Characters
from .scalars import BLANK, BREAK_OR_END, END, SEPARATORS, Cursor, block, plain, quoted

STREAM_END: Final = "the end of the file"
VERSION: Final = "%YAML"
TAG_PREFIX: Final = "%TAG"
DOCUMENT_START: Final = "---"
DOCUMENT_END: Final = "..."
SEQUENCE: Final = "a list"
MAPPING: Final = "a map"
BLOCK_END: Final = "the end of the block"
FLOW_SEQUENCE: Final = "["
FLOW_SEQUENCE_END: Final = "]"
FLOW_MAPPING: Final = "{"
FLOW_MAPPING_END: Final = "}"
ENTRY: Final = "-"
FLOW_ENTRY: Final = ","
KEY: Final = "a key"
VALUE: Final = ":"
ALIAS: Final = "*"
ANCHOR: Final = "&"
TAG: Final = "!"
SCALAR: Final = "a value"

_NEVER_FIRST: Final = frozenset(",[]{}#&*!|>'\"%@`" + END + BLANK + BREAKS)
"""Characters that a plain scalar cannot begin with."""
_WORD: Final = re.compile(r"[0-9A-Za-z_-]*")
_URI: Final = re.compile(r"[0-9A-Za-z_\-;/?:@&=+$,.!~*'()\[\]]*")
_OCTET: Final = re.compile(r"%([0-9a-fA-F]{2})")
_VERSION: Final = re.compile(r"[ \t]*([0-9]{1,2})\.([0-9]{1,2})(?![0-9])")
_AFTER_ANCHOR: Final = SEPARATORS | frozenset("?:,]}%@`")
_LONGEST_KEY: Final = 1024
"""Characters between the beginning of a key and its colon."""


@dataclass(slots=True)
class Token:
    kind: str  # one of the constants of this module
    start: int  # offset of its first character
    value: str = ""  # text of a scalar, name of an anchor or an alias, handle of a tag, or version
    is_plain: bool = False  # of a scalar: without quotes, and not a block
    suffix: str = ""  # of a tag; of a %TAG directive: the prefix that the handle abbreviates
    end: int = 0  # of a scalar or an alias in one line: the offset of its end; else 0


@dataclass(slots=True)
class _Key:
    """A place where a key may have begun."""

    token: int  # the number of its first token
    is_possible: bool = False
    is_required: bool = False
    start: int = 0
    line: int = 0


class Scanner:
    """The tokens of a text; `peek` and `next` raise the ParseError of the next token."""

    def __init__(self, source: Characters) -> None:
        self.cursor = Cursor(source)
        self._tokens: deque[Token] = deque()
        self._taken = 0
        self._is_filled = False
        self._indent = -1
        self._indents: list[int] = []
        self._flow = 0
        self._keys = [_Key(0)]  # one for each level of [ and {
        self._level_of_token: dict[int, int] = {}
        self._key_allowed = True

    def peek(self) -> Token:
        if not self._is_filled:
            try:
                self._fill()
            except IndexError:
                raise self.cursor.error from None
            self._is_filled = True
        return self._tokens[0]

    def next(self) -> Token:
        token = self.peek()
        self._tokens.popleft()
        self._taken += 1
        self._is_filled = False
        return token

    def _fill(self) -> None:
        """Scan until it is known whether the next token begins a key."""
        while True:
            if self._tokens:
                level = self._level_of_token.get(self._taken, len(self._keys))
                if level >= len(self._keys) or not self._is_key(self._keys[level]):
                    return
            self._fetch()

    def _is_key(self, key: _Key) -> bool:
        """Return whether a colon here makes it a key."""
        cursor = self.cursor
        if key.is_possible and (key.line < cursor.line or key.start + _LONGEST_KEY < cursor.at):
            self._forget(key)
        return key.is_possible

    def _forget(self, key: _Key) -> None:
        if key.is_required:
            message = "a line without a colon; add one after the key, or correct the indentation"
            self.cursor.fail(message, key.start)
        key.is_possible = False

    def _may_be_key(self) -> None:
        if self._key_allowed:
            cursor = self.cursor
            is_required = not self._flow and self._indent == cursor.column
            self._no_key()
            token = self._taken + len(self._tokens)
            self._keys[-1] = _Key(token, True, is_required, cursor.at, cursor.line)
            self._level_of_token[token] = len(self._keys) - 1

    def _no_key(self) -> None:
        key = self._keys[-1]
        if key.is_possible:
            self._forget(key)
            self._level_of_token.pop(key.token, None)

    def _insert(self, kind: str, start: int, number: int) -> None:
        """Insert a token before the one with a number, or append it if that one is consumed."""
        place = number - self._taken
        self._tokens.insert(place if place >= 0 else len(self._tokens), Token(kind, start))

    def _begin_block(self, kind: str, column: int, start: int, number: int = -1) -> None:
        """Begin a list or a map if the column is deeper than the current one."""
        if not self._flow and self._indent < column:
            self._indents.append(self._indent)
            self._indent = column
            self._insert(kind, start, number)

    def _end_blocks(self, column: int) -> None:
        while not self._flow and self._indent > column:
            self._tokens.append(Token(BLOCK_END, self.cursor.at))
            self._indent = self._indents.pop()

    def _take(self, kind: str, length: int = 1) -> None:
        self._tokens.append(Token(kind, self.cursor.at))
        self.cursor.at += length

    def _fetch(self) -> None:
        cursor, flow = self.cursor, self._flow
        self._skip_space()
        self._end_blocks(cursor.column)
        cursor.need(4)
        first = cursor.text[cursor.at]
        separated = cursor.text[cursor.at + 1] in SEPARATORS
        if first == END:
            cursor.end_line()
            self._end_all(STREAM_END, 0)
        elif first == "%" and not cursor.column:
            self._directive()
        elif cursor.is_at_document_mark():
            self._end_all(cursor.text[cursor.at : cursor.at + 3], 3)
        elif first in "[{]}":
            (self._begin_flow if first in "[{" else self._end_flow)(first)
        elif first == ",":
            self._no_key()
            self._key_allowed = True
            self._take(FLOW_ENTRY)
        elif first == "-" and separated:
            self._block_indicator(ENTRY, SEQUENCE, allows_key=True)
        elif first == "?" and (flow or separated):
            self._block_indicator(KEY, MAPPING, allows_key=not flow)
        elif first == ":" and (flow or separated):
            self._value()
        elif first in "|>" and not flow:
            self._no_key()
            self._key_allowed = True
            start = cursor.at
            self._tokens.append(
                Token(SCALAR, start, block(cursor, self._indent, literal=first == "|"))
            )
        else:
            self._may_be_key()
            self._content(first)

    def _content(self, first: str) -> None:
        """Take a scalar, an alias, or a property: each may begin a key, and no key follows it."""
        cursor, start = self.cursor, self.cursor.at
        self._key_allowed = False
        if first in "*&":
            self._tokens.append(self._anchor(first))
        elif first == "!":
            self._tokens.append(self._tag())
        elif first in "'\"":
            line, text = cursor.line, quoted(cursor, first)
            end = cursor.at if cursor.line == line else 0
            self._tokens.append(Token(SCALAR, start, text, end=end))
        elif first in _NEVER_FIRST:
            cursor.fail(_unexpected(first))
        else:
            text, is_broken, end = plain(cursor, self._indent + 1, flow=self._flow > 0)
            self._key_allowed = is_broken
            self._tokens.append(Token(SCALAR, start, text, is_plain=True, end=end))

    def _skip_space(self) -> None:
        cursor = self.cursor
        while True:
            cursor.byte_order_mark()
            if self._flow or not self._key_allowed:
                cursor.blanks()
            else:
                cursor.spaces()
            cursor.comment()
            if not cursor.line_break():
                return
            if not self._flow:
                self._key_allowed = True

    def _end_all(self, kind: str, length: int) -> None:
        self._end_blocks(-1)
        self._no_key()
        self._key_allowed = False
        self._take(kind, length)

    def _begin_flow(self, kind: str) -> None:
        self._may_be_key()
        self._keys.append(_Key(self._taken + len(self._tokens)))
        self._flow += 1
        self._key_allowed = True
        self._take(kind)

    def _end_flow(self, kind: str) -> None:
        self._no_key()
        if self._flow:
            self._flow -= 1
            self._level_of_token.pop(self._keys.pop().token, None)
        self._key_allowed = False
        self._take(kind)

    def _block_indicator(self, kind: str, block_kind: str, *, allows_key: bool) -> None:
        """Take a hyphen or a question mark."""
        cursor = self.cursor
        if not self._flow:
            if not self._key_allowed:
                cursor.fail(f'"{cursor.text[cursor.at]}" cannot follow here; begin a new line')
            self._begin_block(block_kind, cursor.column, cursor.at)
        self._no_key()
        self._key_allowed = allows_key
        self._take(kind)

    def _value(self) -> None:
        cursor, key = self.cursor, self._keys[-1]
        if self._is_key(key):
            self._insert(KEY, key.start, key.token)
            self._begin_block(MAPPING, key.start - cursor.line_start, key.start, key.token)
            key.is_possible = False
            self._level_of_token.pop(key.token, None)
            self._key_allowed = False
        else:
            if not self._flow:
                if not self._key_allowed:
                    message = "a second colon; quote the value that contains it, or add a line"
                    cursor.fail(f"{message} break")
                self._begin_block(MAPPING, cursor.column, cursor.at)
            self._key_allowed = not self._flow
        self._take(VALUE)

    def _directive(self) -> None:
        cursor, start = self.cursor, self.cursor.at
        self._end_blocks(-1)
        self._no_key()
        self._key_allowed = False
        cursor.at += 1
        name = cursor.match(_WORD)
        if name not in ("YAML", "TAG") or cursor.text[cursor.at] not in SEPARATORS:
            cursor.fail(f'"%{name}" is not a directive of YAML; remove the line', start)
        if name == "YAML":
            version = _VERSION.match(cursor.text, cursor.at)
            if version is None:
                cursor.fail("%YAML has no version; remove the line", start)
            cursor.at = version.end()
            number = f"{int(version[1])}.{int(version[2])}"
            self._tokens.append(Token(VERSION, start, number))
        else:
            self._tokens.append(self._tag_directive(start))
        cursor.blanks()
        cursor.comment()
        if cursor.text[cursor.at] not in BREAK_OR_END:
            cursor.fail("text follows the directive; remove it", start)
        cursor.line_break()

    def _tag_directive(self, start: int) -> Token:
        cursor = self.cursor
        cursor.blanks()
        handle = self._handle(start)
        if handle != "!" and not handle.endswith("!"):
            cursor.fail("the handle of %TAG must end with !; remove the line", start)
        if not cursor.blanks():
            cursor.fail("%TAG has no prefix; remove the line", start)
        prefix = self._uri(start)
        if not prefix or cursor.text[cursor.at] not in SEPARATORS:
            cursor.fail("%TAG has no valid prefix; remove the line", start)
        return Token(TAG_PREFIX, start, handle, suffix=prefix)

    def _anchor(self, kind: str) -> Token:
        cursor, start = self.cursor, self.cursor.at
        cursor.at += 1
        name = cursor.match(_WORD)
        if not name or cursor.text[cursor.at] not in _AFTER_ANCHOR:
            what = f"the name of an {'alias' if kind == ALIAS else 'anchor'}"
            fix = f"quote a value that begins with {kind}"
            cursor.fail(f"{what} after {kind} must have letters and digits; {fix}", start)
        return Token(kind, start, name, end=cursor.at)

    def _tag(self) -> Token:
        cursor, start = self.cursor, self.cursor.at
        handle, suffix = "", ""
        if cursor.text[cursor.at + 1] == "<":
            cursor.at += 2
            suffix = self._uri(start)
            if not suffix or cursor.text[cursor.at] != ">":
                cursor.fail("a tag after !< must end with >; add it", start)
            cursor.at += 1
        else:
            handle = self._handle(start)
            is_handle = len(handle) > 1 and handle.endswith("!")
            suffix = self._uri(start)
            if is_handle and not suffix:
                cursor.fail("a tag has no name after its handle; quote a value", start)
            if not is_handle:
                handle, suffix = "!", handle[1:] + suffix
                if not suffix:
                    handle, suffix = "", "!"
        if cursor.text[cursor.at] not in SEPARATORS:
            cursor.fail(
                "a tag must be followed by a space; quote a value that begins with !", start
            )
        return Token(TAG, start, handle, suffix=suffix)

    def _handle(self, start: int) -> str:
        cursor = self.cursor
        if cursor.text[cursor.at] != "!":
            cursor.fail("the handle of %TAG must begin with !; remove the line", start)
        cursor.at += 1
        handle = "!" + cursor.match(_WORD)
        if cursor.text[cursor.at] == "!":
            cursor.at += 1
            handle += "!"
        return handle

    def _uri(self, start: int) -> str:
        cursor, uri = self.cursor, bytearray()
        while True:
            uri += cursor.match(_URI).encode()
            if cursor.text[cursor.at] != "%":
                break
            cursor.need(3)
            octet = _OCTET.match(cursor.text, cursor.at)
            if octet is None:
                cursor.fail("% in a tag needs two hexadecimal digits; quote the value", start)
            cursor.at = octet.end()
            uri.append(int(octet[1], 16))
        try:
            return uri.decode()
        except UnicodeDecodeError:
            cursor.fail("% in a tag encodes something other than UTF-8; quote the value", start)


def _unexpected(character: str) -> str:
    if character == "\t":
        return "a tab (U+0009) in the indentation; write spaces"
    return f"a value cannot begin with {character}; quote it"
