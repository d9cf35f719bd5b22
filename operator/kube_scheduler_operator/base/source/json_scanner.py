"""A strict JSON parser with the line and column of every value.

kube-scheduler reads `5.0` as an integer in YAML but rejects it in JSON, so floats stay floats.
"""

from __future__ import annotations

import math
import re
import sys
from bisect import bisect_right
from dataclasses import dataclass, field
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]  # not in stubs
from typing import Any, Final, NoReturn

from ..findings import Path
from .separator import SEPARATOR
from .tree import DEEPEST, TOO_DEEP, Flaw, ParseError, Position, SourceNode

_SPACES: Final = " \t\r\n"
_SPACE: Final = re.compile(f"[{_SPACES}]*")
_NUMBER: Final = re.compile(r"(-?(?:0|[1-9]\d*))(\.\d+)?([eE][-+]?\d+)?", re.ASCII)
_WORDS: Final = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a text.

    Attributes:
        flaws: duplicate keys.
        texts: the places of the values `args`, by path.
    """

    root: SourceNode
    flaws: list[Flaw]
    texts: dict[Path, slice]


def parse(text: str) -> Value:
    """Return the single value of the text.

    Raises:
        ParseError: not JSON, or followed by other text.
    """
    parser = _Parser(text)
    value = parser.document()
    parser.end()
    return value


def parse_stream(text: str) -> list[Value]:
    """Return the objects of the text, one after the other, with or without `---` between them.

    kubectl reads this; kube-scheduler reads a file with one JSON document.

    Raises:
        ParseError: something else follows an object.
    """
    parser = _Parser(text)
    values = [parser.document()]
    while parser.next_object():
        values.append(parser.document())
    parser.end()
    return values


@dataclass(slots=True)
class _Parser:
    text: str
    at: int = 0
    flaws: list[Flaw] = field(default_factory=list)
    texts: dict[Path, slice] = field(default_factory=dict)
    _lines: list[int] = field(default_factory=list)

    def document(self) -> Value:
        """Read a value that is not part of another one, and what separates it from the next."""
        self.flaws, self.texts = [], {}
        self.skip()
        value = Value(self.value(()), self.flaws, self.texts)
        self.skip()
        return value

    def next_object(self) -> bool:
        """Skip separators; return whether an object follows."""
        while match := SEPARATOR.match(self.text, self.at):
            self.at = match.end()
            self.skip()
        return self.peek() == "{"

    def end(self) -> None:
        if self.at < len(self.text):
            self.fail("text follows the JSON document; keep one document in the file")

    def skip(self) -> None:
        if self.text[self.at : self.at + 1] in _SPACES and (
            match := _SPACE.match(self.text, self.at)
        ):
            self.at = match.end()

    def position(self, at: int, end: int = 0) -> Position:
        if not self._lines:
            self._lines += [0, *(match.end() for match in re.finditer("\n", self.text))]
        line = bisect_right(self._lines, at)
        last = self._lines[line] if line < len(self._lines) else len(self.text) + 1
        length = max(end - at, 0) if end <= last else 0
        return Position(line, at - self._lines[line - 1] + 1, length)

    def fail(self, message: str) -> NoReturn:
        raise ParseError(self.position(self.at), message)

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def value(self, path: Path) -> SourceNode:
        if len(path) > DEEPEST:
            self.fail(TOO_DEEP)
        began, first = self.at, self.peek()
        if first == "{":
            return self._object(began, path)
        if first == "[":
            return self._array(began, path)
        data = self._string() if first == '"' else self._literal(path)
        return SourceNode(self.position(began, self.at), data)

    def _literal(self, path: Path) -> Any:
        number = _NUMBER.match(self.text, self.at)
        if number:
            whole, fraction, exponent = number.groups()
            if math.isinf(float(number[0])):
                message = "the number does not fit into a float64; use a smaller number"
                self.flaws.append(Flaw(self.position(self.at), path, message))
                self.at = number.end()
                return math.copysign(sys.float_info.max, float(number[0]))
            self.at = number.end()
            return float(number[0]) if fraction or exponent else int(whole)
        for word in _WORDS:
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return _WORDS[word]
        return self.fail(
            "expected a JSON value, because the file begins with {; write a number, true, false, "
            'null, or a text in "quotes"'
        )

    def _string(self) -> str:
        try:
            value, self.at = scanstring(self.text, self.at + 1, True)
        except JSONDecodeError as error:
            what = error.msg.removesuffix(" at")
            message = f"{what}; end the text with a quote, or escape the character"
            raise ParseError(self.position(error.pos), message) from None
        if value.isascii():
            return str(value)
        # Like Go, replace halves of a surrogate pair, which no encoding can represent.
        return str(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def _object(self, began: int, path: Path) -> SourceNode:
        fields: dict[str, tuple[Position, SourceNode]] = {}
        self.at += 1
        self.skip()
        while self.peek() != "}":
            if self.peek() != '"':
                self.fail(
                    'expected a key in "quotes", because a file that begins with { is JSON; write '
                    "it in quotes, or --- above the { for YAML"
                )
            start = self.at
            key = self._string()
            at = self.position(start, self.at)
            self.skip()
            if self.peek() != ":":
                self.fail("expected a colon after the key; add one")
            self.at += 1
            self.skip()
            if key in fields:
                message = f'duplicate key "{key}", first in line {fields[key][0].line}; remove one'
                self.flaws.append(Flaw(at, (*path, key), message))
            value_at = self.at
            node = self.value((*path, key))
            if not isinstance(node.data, dict | list) and node.position.line == at.line:
                at = self.position(start, self.at)
            fields[key] = (at, node)
            if key == "args":
                self.texts[*path, key] = slice(value_at, self.at)
            self._separator("}")
        self.at += 1
        data: dict[str, Any] = {key: node.data for key, (_, node) in fields.items()}
        return SourceNode(self.position(began, self.at), data, fields)

    def _array(self, began: int, path: Path) -> SourceNode:
        items: list[SourceNode] = []
        self.at += 1
        self.skip()
        while self.peek() != "]":
            items.append(self.value((*path, len(items))))
            self._separator("]")
        self.at += 1
        where = self.position(began, self.at)
        return SourceNode(where, [item.data for item in items], items=items)

    def _separator(self, end: str) -> None:
        """Consume a comma before another entry; a trailing comma is an error."""
        self.skip()
        character = self.peek()
        if character == end:
            return
        if character != ",":
            self.fail(f"expected a comma or {end}; add one")
        self.at += 1
        self.skip()
        if self.peek() == end:
            self.fail(f"trailing comma before {end}; remove it")
