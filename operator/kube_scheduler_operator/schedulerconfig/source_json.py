"""Strict JSON with the line and column of every value; numbers stay as they are written.

kube-scheduler takes `5.0` for an integer in YAML and refuses it in JSON, so floats are kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]  # not in stubs
from typing import Any, Final, NoReturn

from .source_tree import Flaw, Node, Position, SourceError

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_NUMBER: Final = re.compile(r"(-?(?:0|[1-9]\d*))(\.\d+)?([eE][-+]?\d+)?", re.ASCII)
_WORDS: Final = {"true": True, "false": False, "null": None}
_DEEPEST: Final = 100  # twice as deep as any configuration, and far from what Python can do


def parse(text: str) -> tuple[Node, list[Flaw]]:
    """(the only value in the text, keys that are there twice).

    Raises:
        SourceError: it is no JSON, or something follows.
    """
    parser = _Parser(text)
    parser.skip()
    root = parser.value(0)
    parser.skip()
    if parser.at < len(text):
        parser.fail("something follows the JSON document; it must be the only one in its file")
    return root, parser.flaws


@dataclass(slots=True)
class _Parser:
    text: str
    at: int = 0
    flaws: list[Flaw] = field(default_factory=list)
    _lines: list[int] = field(default_factory=list)

    def skip(self) -> None:
        found = _SPACE.match(self.text, self.at)
        assert found  # noqa: S101  # the expression matches nothing, too
        self.at = found.end()

    def position(self, at: int) -> Position:
        from bisect import bisect_right

        if not self._lines:
            self._lines += [0, *(found.end() for found in re.finditer("\n", self.text))]
        line = bisect_right(self._lines, at)
        return Position(line, at - self._lines[line - 1] + 1)

    def fail(self, message: str) -> NoReturn:
        raise SourceError(self.position(self.at), message)

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def value(self, depth: int) -> Node:
        if depth > _DEEPEST:
            self.fail("nested too deep")
        where, first = self.position(self.at), self.peek()
        if first == "{":
            return self._object(where, depth)
        if first == "[":
            return self._array(where, depth)
        if first == '"':
            return Node(where, self._string())
        return Node(where, self._literal())

    def _literal(self) -> Any:
        number = _NUMBER.match(self.text, self.at)
        if number:
            self.at = number.end()
            whole, fraction, exponent = number.groups()
            return float(number[0]) if fraction or exponent else int(whole)
        for word in _WORDS:
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return _WORDS[word]
        return self.fail("a JSON value is expected here (the text begins with {, so it is JSON)")

    def _string(self) -> str:
        try:
            value, self.at = scanstring(self.text, self.at + 1, True)
        except JSONDecodeError as error:
            raise SourceError(self.position(error.pos), error.msg) from None
        return str(value)

    def _object(self, where: Position, depth: int) -> Node:
        fields: dict[str, tuple[Position, Node]] = {}
        self.at += 1
        self.skip()
        while self.peek() != "}":
            if self.peek() != '"':
                self.fail('a key in "quotes" is expected here (the text begins with {: JSON)')
            at = self.position(self.at)
            key = self._string()
            self._expect(":", "a colon is expected after a key")
            if key in fields:
                message = f'"{key}" is there twice, first in line {fields[key][0].line}; remove one'
                self.flaws.append(Flaw(at, (), message))
            fields[key] = (at, self.value(depth + 1))
            self._separator("}")
        self.at += 1
        data: dict[str, Any] = {key: node.data for key, (_, node) in fields.items()}
        return Node(where, data, fields)

    def _array(self, where: Position, depth: int) -> Node:
        items: list[Node] = []
        self.at += 1
        self.skip()
        while self.peek() != "]":
            items.append(self.value(depth + 1))
            self._separator("]")
        self.at += 1
        return Node(where, [item.data for item in items], items=items)

    def _expect(self, character: str, message: str) -> None:
        self.skip()
        if self.peek() != character:
            self.fail(message)
        self.at += 1
        self.skip()

    def _separator(self, end: str) -> None:
        """A comma, or the end, before which none may stand."""
        self.skip()
        if self.peek() == end:
            return
        self._expect(",", f"a comma or {end} is expected here")
        if self.peek() == end:
            self.fail("a comma must not stand before the end")
