"""YAML nodes to JSON like kube-scheduler's (sigs.k8s.io/yaml), with positions."""

from __future__ import annotations

import base64
import math
import re
import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from .culprit import TEMPLATE
from .encoding import LINE_BREAK
from .tree import DEEPEST, TOO_DEEP, Flaw, ParseError, Position, SourceNode
from .yaml_scanner import Alias, Mapping, Node, Scalar, Sequence

_TAG: Final = "tag:yaml.org,2002:"
_TYPES: Final = ("str", "bool", "int", "float", "null", "timestamp")
_RESOLVED: Final = {"", *(f"{_TAG}{name}" for name in _TYPES)}
_INTEGER: Final = re.compile(r"[-+]?(?:0[bB][01]+|0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_DATE: Final = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:[Tt ]([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})?)?"
)
_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(
        ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True
    ),
    **dict.fromkeys(
        ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False
    ),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_MOST_DIGITS: Final = 20
"""Of an integer; the decoder reads a larger number as a float."""
_ALWAYS_ALLOWED: Final = (1000, 100)
"""(nodes, nodes that aliases repeat) that every document may have."""
_ALIAS_RANGE: Final = (400_000, 4_000_000)
"""Nodes of a document from which and up to which the share of aliases shrinks to a tenth."""


@dataclass(slots=True)
class Builder:
    """Converts the nodes of one document."""

    text: str  # of the file
    # offsets of the lines; filled when needed, and shared by the documents of a file
    lines: list[int] = field(default_factory=list)
    flaws: list[Flaw] = field(default_factory=list)
    _depth: int = 0
    _open: set[int] = field(default_factory=set)
    _count: int = 1  # the document
    _repeated: int = 0

    def node(self, node: Node) -> SourceNode:
        """Convert a node.

        Raises:
            ParseError: it cannot be converted.
        """
        where = self._position(node)
        self._counted(where)
        if isinstance(node, Alias):
            target = self._repeat(node)
            return SourceNode(where, target.data, target.fields, target.items)
        if isinstance(node, Scalar):
            return SourceNode(where, self._scalar(node, where))
        if self._depth == DEEPEST:
            raise ParseError(where, TOO_DEEP)
        self._depth += 1
        value = self._collection(node, where)
        self._depth -= 1
        return value

    def _collection(self, node: Sequence | Mapping, where: Position) -> SourceNode:
        if isinstance(node, Sequence):
            items = [self.node(item) for item in node.items]
            return SourceNode(where, [item.data for item in items], items=items)
        fields: dict[str, tuple[Position, SourceNode]] = {}
        for key, child in self._pairs(node):
            self._field(key, child, fields)
        if not node.end and fields:
            first, _ = next(iter(fields.values()))
            where = first if first == where else where  # with the length of the first field
        return SourceNode(where, {name: child.data for name, (_, child) in fields.items()}, fields)

    def _repeat(self, alias: Alias) -> SourceNode:
        if id(alias) in self._open:
            raise ParseError(
                self._position(alias), "an anchor contains itself; write the value out"
            )
        self._open.add(id(alias))
        value = self.node(alias.node)
        self._open.discard(id(alias))
        return value

    def _counted(self, where: Position) -> None:
        """Count a node, and enforce the decoder's limit for aliases."""
        self._count += 1
        self._repeated += bool(self._open)
        nodes, repeated = _ALWAYS_ALLOWED
        if self._count > nodes and self._repeated > repeated:
            low, high = _ALIAS_RANGE
            share = min(max((self._count - low) / (high - low), 0), 1)
            if self._repeated / self._count > 0.99 - 0.89 * share:
                message = "aliases make this file too large; write the values out"
                raise ParseError(where, message)

    def _scalar(self, node: Scalar, where: Position) -> Any:
        try:
            value = scalar(node)
        except ValueError as error:
            raise ParseError(where, str(error)) from None
        if isinstance(value, float) and not math.isfinite(value):
            message = f"{node.text} is not a JSON number; write a finite one"
            self.flaws.append(Flaw(where, (), message))
        return value

    def _field(
        self,
        key: Node,
        child: Node,
        fields: dict[str, tuple[Position, SourceNode]],
    ) -> None:
        at = self._position(key, child)
        while isinstance(key, Alias):
            self._counted(at)
            key = key.node
        self._counted(at)
        if not isinstance(key, Scalar):
            is_template = self.text[key.start - 1 : key.start + 1] == "{{"
            message = TEMPLATE if is_template else "a list or a map cannot be a key; write a string"
            self.flaws.append(Flaw(at, (), message))
            return
        try:
            value = _typed(key)
        except ValueError as error:
            raise ParseError(at, str(error)) from None
        if value is None or (isinstance(value, int) and value >= 2**63):
            what = "null" if value is None else key.text
            self.flaws.append(Flaw(at, (), f"{what} cannot be a key; write it in quotes"))
        name = _key_text(value)
        if name in fields:
            line = fields[name][0].line
            message = f'duplicate key "{name}", first in line {line}; remove one'
            self.flaws.append(Flaw(at, (), message))
        fields[name] = (at, self.node(child))

    def _pairs(self, node: Mapping) -> Iterator[tuple[Node, Node]]:
        """Yield the keys and values, including those of `<<`, whose keys must also be unique."""
        for key, child in node.pairs:
            if not _is_merge(key):
                yield key, child
                continue
            several = child.items[::-1] if isinstance(child, Sequence) else [child]
            for merged in several:
                yield from self._merged(merged)

    def _merged(self, node: Node) -> Iterator[tuple[Node, Node]]:
        where = self._position(node)
        self._counted(where)
        target = node.node if isinstance(node, Alias) else node
        if not isinstance(target, Mapping):
            raise ParseError(
                where, "<< can only merge maps, or a list of maps; write an alias of one"
            )
        if not isinstance(node, Alias):
            yield from self._pairs(target)
            return
        if id(node) in self._open:
            raise ParseError(where, "an anchor contains itself; write the value out")
        self._open.add(id(node))
        self._counted(where)
        yield from self._pairs(target)
        self._open.discard(id(node))

    def _position(self, node: Node, value: Node | None = None) -> Position:
        """Return the position of a node; the length of a key includes that of a scalar value."""
        if not self.lines:
            self.lines += [0, *(match.end() for match in LINE_BREAK.finditer(self.text))]
        line = bisect_right(self.lines, node.start)
        last = self.lines[line] if line < len(self.lines) else len(self.text) + 1
        end = node.end if node.end <= last else 0
        if isinstance(value, Scalar | Alias) and value.end <= last:
            end = max(end, value.end)
        return Position(line, node.start - self.lines[line - 1] + 1, max(end - node.start, 0))


def _is_merge(key: Node) -> bool:
    return (
        isinstance(key, Scalar)
        and key.text == "<<"
        and (key.is_implicit or key.tag == f"{_TAG}merge")
    )


def scalar(node: Scalar) -> Any:
    """Convert a scalar like kube-scheduler; a number without a fraction is an integer.

    Raises:
        ValueError: its text does not fit its tag.
    """
    value = _typed(node)
    # JSON does not distinguish 5.0 and 5; from 1e21 on it has an exponent.
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e21
    return int(value) if is_whole else value


def _typed(node: Scalar) -> Any:
    text, tag = node.text, node.tag
    if tag == f"{_TAG}binary":
        try:
            octets = base64.b64decode(text.replace("\r", "").replace("\n", ""), validate=True)
        except ValueError:
            raise ValueError("!!binary is not base64; encode the value") from None
        return octets.decode(errors="replace")
    if tag not in _RESOLVED or tag == f"{_TAG}str" or (not tag and not node.is_implicit):
        return text
    kind, value = _resolve(text, tag)
    tagged = tag.removeprefix(_TAG)
    if tagged == "float" and kind == "int" and value < 2**63:
        return float(value)
    if tagged not in ("", kind):
        raise ValueError(f"{text} does not have the type of its tag !!{tagged}; remove the tag")
    return value


def _resolve(text: str, tag: str) -> tuple[str, Any]:
    """Return (the type of a text in YAML, its value)."""
    if text in _WORDS:
        value = _WORDS[text]
        return "null" if value is None else type(value).__name__, value
    if text[0] not in "+-.0123456789":
        return "str", text
    digits = text
    if text[0] != ".":
        if tag in ("", f"{_TAG}timestamp") and _is_date(text):
            return "timestamp", text
        digits = text.replace("_", "")
        if _INTEGER.fullmatch(digits):
            integer = _integer(digits)
            if -(2**63) <= integer < 2**64:
                return "int", integer
    if _FLOAT.fullmatch(digits) and math.isfinite(number := float(digits)):
        return "float", number
    return "str", text


def _integer(digits: str) -> int:
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-").lower()
    if digits[0] == "0" and digits.isdigit():
        return sign * int(digits, 8)
    if digits.isdigit() and len(digits) > _MOST_DIGITS:
        return sign * 2**64  # a float
    return sign * int(digits, 0)


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    try:
        datetime(year or 4, month, day, hour, minute, second)
    except ValueError:
        return False
    return match[4] is None or (match[7] is None) == (" " in text)


def _key_text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float):
        return _float_text(value)
    return str(value)


def _float_text(value: float) -> str:
    """Format a float like Go with 32 bits: `.inf`, `1.5`, `1e+06`."""
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    packed = struct.pack("f", value)
    for digits in range(9):
        mantissa, exponent = f"{value:.{digits}e}".split("e")
        if struct.pack("f", float(f"{mantissa}e{exponent}")) == packed:
            break
    if -4 <= int(exponent) < 6:
        return f"{float(f'{mantissa}e{exponent}'):.{max(digits - int(exponent), 0)}f}"
    return f"{mantissa}e{int(exponent):+03d}"
