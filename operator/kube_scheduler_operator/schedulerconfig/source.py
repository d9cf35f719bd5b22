"""YAML and JSON as kube-scheduler parses them, with the line and column of every value.

Unlike in PyYAML, `y` is true, `010` is 8, `1e1` is 10, `1:30` is a string, a duplicate key is an
error, and a file that begins with `{` must be JSON. These are the rules of sigs.k8s.io/yaml and
encoding/json; tests/integration/test_source_against_binary.py compares with kube-scheduler.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import yaml

from ..base.findings import Path
from . import source_json
from .go_values import without_nulls
from .source_nesting import find_deep_document
from .source_tree import DEEPEST, TOO_DEEP, Flaw, ParseError, Position, SourceNode

__all__ = ["Document", "Flaw", "ParseError", "Position", "read"]

_TAG: Final = "tag:yaml.org,2002:"
_INTEGER: Final = re.compile(r"[-+]?(?:0[bB][01]+|0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
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
_MOST_NODES: Final = 100_000
"""Above any real configuration; a few lines of nested aliases exceed it."""

_MOST_DIGITS: Final = 1000
"""Of a number; no float64 is as large, and Go reads a number out of its range as a string."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file.

    Attributes:
        root: its values with their positions.
        flaws: errors after which the document could still be parsed.
    """

    root: SourceNode
    flaws: tuple[Flaw, ...] = ()

    @property
    def value(self) -> Any:
        """The document as plain data, without null fields at any depth."""
        return without_nulls(self.root.data)

    def position(self, path: Path) -> Position:
        """Position of a path's key or list entry, or of its deepest existing parent."""
        return self._walk(path)[0]

    def depth(self, path: Path) -> int:
        """Number of leading parts of a path that the document contains."""
        return self._walk(path)[1]

    def _walk(self, path: Path) -> tuple[Position, int]:
        node, found = self.root, self.root.position
        for depth, part in enumerate(path):
            step = node.child(part)
            if step is None:
                return found, depth
            found, node = step
        return found, len(path)


def read(text: str) -> tuple[list[Document], ParseError | None]:
    """The nonempty documents of a file, and the error that ended parsing, if any.

    Documents before the error are returned.
    """
    if text.lstrip().startswith("{"):
        try:
            root, flaws = source_json.parse(text)
        except ParseError as error:
            return [], error
        return [Document(root, tuple(flaws))], None
    documents: list[Document] = []
    try:
        deep = find_deep_document(text, _LOADER)
        # Composing only creates nodes and constructs no objects, so the input is safe.
        nodes = yaml.compose_all(text, Loader=_LOADER)
        for node in nodes if deep is None else islice(nodes, deep.index):
            if node is not None:
                builder = _Builder()
                root = builder.node(node)
                if root.data is not None:
                    documents.append(Document(root, tuple(builder.flaws)))
        if deep is not None:
            return documents, ParseError(deep.position, TOO_DEEP)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = Position(mark.line + 1, mark.column + 1) if mark else Position(1, 1)
        return documents, ParseError(where, _message(error))
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        where = Position(before.count("\n") + 1, len(before) - before.rfind("\n"))
        return documents, ParseError(where, f"a character that YAML does not allow: {error.reason}")
    except yaml.YAMLError as error:
        return documents, ParseError(Position(1, 1), str(error))
    except ParseError as error:
        return documents, error
    return documents, None


_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml if available: ten times as fast."""


def _message(error: yaml.MarkedYAMLError) -> str:
    context = f"{error.context}: " if error.context else ""
    return f"{context}{error.problem}"


@dataclass(slots=True)
class _Builder:
    """Converts PyYAML's nodes to SourceNodes."""

    flaws: list[Flaw] = field(default_factory=list)
    open: set[int] = field(default_factory=set)
    count: int = 0

    def node(self, node: Any) -> SourceNode:
        where = _position(node)
        self.count += 1
        if id(node) in self.open:
            raise ParseError(where, "an anchor contains itself; write the value out")
        if len(self.open) > DEEPEST:
            raise ParseError(where, TOO_DEEP)
        if self.count > _MOST_NODES:
            raise ParseError(where, "aliases make this file too large; write the values out")
        if isinstance(node, yaml.ScalarNode):
            return SourceNode(where, self._scalar(node, where))
        self.open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                items = [self.node(item) for item in node.value]
                return SourceNode(where, [item.data for item in items], items=items)
            return self._mapping(node, where)
        finally:
            self.open.discard(id(node))

    def _scalar(self, node: yaml.ScalarNode, where: Position) -> Any:
        value = scalar(node)
        if isinstance(value, float) and not math.isfinite(value):
            self.flaws.append(
                Flaw(where, (), f"{node.value} is not a JSON number; write a finite one")
            )
        return value

    def _mapping(self, node: yaml.MappingNode, where: Position) -> SourceNode:
        fields: dict[str, tuple[Position, SourceNode]] = {}
        for key, child in self._pairs(node):
            at = _position(key)
            if not isinstance(key, yaml.ScalarNode):
                self.flaws.append(Flaw(at, (), "a list or a map cannot be a key; write a string"))
                continue
            name = _key(scalar(key))
            if name in fields:
                line = fields[name][0].line
                message = f'duplicate key "{name}", first in line {line}; remove one'
                self.flaws.append(Flaw(at, (), message))
            fields[name] = (at, self.node(child))
        return SourceNode(where, {name: child.data for name, (_, child) in fields.items()}, fields)

    def _pairs(self, node: yaml.MappingNode) -> Iterator[tuple[yaml.Node, yaml.Node]]:
        """The keys and values, including those of `<<`, which must not be duplicates either."""
        for key, child in node.value:
            if key.tag != f"{_TAG}merge" or key.value != "<<":
                yield key, child
                continue
            merged = child.value if isinstance(child, yaml.SequenceNode) else [child]
            for each in merged:
                if not isinstance(each, yaml.MappingNode):
                    raise ParseError(_position(each), "<< can only merge maps")
                if id(each) in self.open:
                    raise ParseError(_position(each), "an anchor contains itself")
                self.open.add(id(each))
                yield from self._pairs(each)
                self.open.discard(id(each))


def scalar(node: yaml.ScalarNode) -> Any:
    """A scalar as kube-scheduler parses it; a number without a fraction is an integer."""
    text = str(node.value)
    tag = str(node.tag).removeprefix(_TAG)
    plain = not node.style  # None, and "" from libyaml
    if tag == "binary":
        import base64

        try:
            lines = text.replace("\r", "").replace("\n", "")
            return base64.b64decode(lines, validate=True).decode(errors="replace")
        except ValueError:
            message = "!!binary is not followed by base64; encode the value"
            raise ParseError(_position(node), message) from None
    if tag.startswith("!") or (not plain and tag == "str"):
        return text
    value = _resolve(text)
    if plain and tag == "str" and _implicit(text) != "str":
        return text  # tagged !!str
    return value


def _resolve(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    digits = text.replace("_", "")
    if len(digits) > _MOST_DIGITS:
        return text
    if _INTEGER.fullmatch(digits):
        return _integer(digits)
    if _FLOAT.fullmatch(digits):
        number = float(digits)
        return int(number) if number.is_integer() else number
    return text


def _integer(digits: str) -> int:
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-").lower()
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        return sign * int(digits, 8)
    return sign * int(digits, 0)


def _implicit(text: str) -> str:
    """The tag that PyYAML infers for a plain scalar."""
    resolver: Any = yaml.resolver.Resolver()
    tag = resolver.resolve(yaml.ScalarNode, text, (True, False))
    return str(tag).removeprefix(_TAG)


def _key(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def _position(node: yaml.Node) -> Position:
    mark = node.start_mark
    return Position(mark.line + 1, mark.column + 1)
