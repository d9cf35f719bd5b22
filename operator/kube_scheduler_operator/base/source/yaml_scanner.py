"""YAML tokens to documents: trees of scalars, lists, maps and aliases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NoReturn

from . import tokens
from .encoding import Characters
from .tokens import Scanner, Token
from .tree import DEEPEST, TOO_DEEP

_DIRECTIVES: Final = (tokens.VERSION, tokens.TAG_PREFIX)
_NO_CONTENT: Final = (
    *_DIRECTIVES, tokens.DOCUMENT_START, tokens.DOCUMENT_END, tokens.STREAM_END,
)  # fmt: skip
_AFTER_KEY: Final = (tokens.KEY, tokens.VALUE, tokens.BLOCK_END)
_AFTER_ENTRY: Final = (tokens.ENTRY, tokens.BLOCK_END)
_PREFIXES: Final = {"!": "!", "!!": "tag:yaml.org,2002:"}


@dataclass(slots=True)
class Scalar:
    start: int  # offset of its first character
    text: str  # without quotes
    tag: str = ""  # in full; empty if it has none
    is_implicit: bool = True  # whether its text determines its type
    end: int = 0  # offset after its last character; 0 if it has several lines, or is not written


@dataclass(slots=True)
class Sequence:
    start: int
    items: list[Node] = field(default_factory=list)
    end: int = 0  # only of a list in brackets


@dataclass(slots=True)
class Mapping:
    start: int
    pairs: list[tuple[Node, Node]] = field(default_factory=list)  # also of duplicate keys
    end: int = 0  # only of a map in braces


@dataclass(slots=True)
class Alias:
    start: int
    node: Node  # the node with the anchor
    end: int = 0


Node = Scalar | Sequence | Mapping | Alias


class Parser:
    """The documents of a text."""

    def __init__(self, source: Characters) -> None:
        self.scanner = Scanner(source)
        self._anchors: dict[str, Node] = {}
        self._prefixes: dict[str, str] = {}
        self._depth = 0

    def documents(self) -> Iterator[Node]:
        """Read the documents one by one, including empty ones.

        Raises:
            ParseError: the next document is not YAML.
        """
        is_first = True
        while True:
            while not is_first and self._kind() == tokens.DOCUMENT_END:
                self.scanner.next()
            if self._kind() == tokens.STREAM_END:
                return
            is_explicit = not is_first or self._kind() in (*_DIRECTIVES, tokens.DOCUMENT_START)
            self._directives()
            start = self.scanner.peek()
            if is_explicit:
                if start.kind != tokens.DOCUMENT_START:
                    self._expected("--- before another document", start)
                self.scanner.next()
            self._anchors = {}
            if is_explicit and self._kind() in _NO_CONTENT:
                yield Scalar(start.start, "")
            else:
                node = self._node(block=True)
                self._kind()  # only the next token shows the end of a document
                yield node
            if self._kind() == tokens.DOCUMENT_END:
                self.scanner.next()
            is_first = False

    def _directives(self) -> None:
        self._prefixes, has_version = {}, False
        while (token := self.scanner.peek()).kind in _DIRECTIVES:
            if token.kind == tokens.VERSION:
                if has_version:
                    self._fail("a second %YAML directive; remove it", token)
                if token.value != "1.1":
                    message = f"kube-scheduler reads YAML 1.1, not {token.value}; remove the line"
                    self._fail(message, token)
                has_version = True
            elif token.value in self._prefixes:
                self._fail(f"a second %TAG directive for {token.value}; remove it", token)
            else:
                self._prefixes[token.value] = token.suffix
            self.scanner.next()
        self._prefixes = {**_PREFIXES, **self._prefixes}

    def _node(self, *, block: bool, indentless: bool = False) -> Node:
        token = self.scanner.peek()
        if token.kind == tokens.ALIAS:
            return self._alias(token)
        start, anchor, tag = token.start, "", ""
        kinds = [tokens.ANCHOR, tokens.TAG]
        while kinds and (token := self.scanner.peek()).kind in kinds:
            kinds.remove(token.kind)
            self.scanner.next()
            if token.kind == tokens.ANCHOR:
                anchor = token.value
            else:
                tag = self._full_tag(token)
        node: Scalar | Sequence | Mapping
        token = self.scanner.peek()
        if token.kind == tokens.SCALAR:
            self.scanner.next()
            is_implicit = tag == "!" or (token.is_plain and not tag)
            node = Scalar(start, token.value, tag, is_implicit, token.end)
        elif token.kind in (
            tokens.FLOW_SEQUENCE,
            *((tokens.SEQUENCE,) if block else ()),
            *((tokens.ENTRY,) if indentless else ()),
        ):
            node = Sequence(start)
        elif token.kind == tokens.FLOW_MAPPING or (block and token.kind == tokens.MAPPING):
            node = Mapping(start)
        elif anchor or tag:
            node = Scalar(start, "", tag, is_implicit=not tag)
        else:
            self._expected("a value", token)
        if anchor:
            self._anchors[anchor] = node
        if not isinstance(node, Scalar):
            self._collection(node, token)
        return node

    def _alias(self, token: Token) -> Alias:
        self.scanner.next()
        if token.value not in self._anchors:
            self._fail(
                f"no anchor &{token.value} precedes *{token.value}; add it, or quote the value",
                token,
            )
        return Alias(token.start, self._anchors[token.value], token.end)

    def _collection(self, node: Sequence | Mapping, begin: Token) -> None:
        if self._depth == DEEPEST:
            self._fail(TOO_DEEP, begin)
        self._depth += 1
        if isinstance(node, Sequence):
            self._sequence(node, begin)
        else:
            self._mapping(node, begin)
        self._depth -= 1

    def _full_tag(self, token: Token) -> str:
        if not token.value:
            return token.suffix
        if token.value not in self._prefixes:
            message = f"the tag handle {token.value} is unknown; quote a value that begins with !"
            self._fail(message, token)
        return self._prefixes[token.value] + token.suffix

    def _sequence(self, node: Sequence, begin: Token) -> None:
        if begin.kind == tokens.FLOW_SEQUENCE:
            self._flow_sequence(node)
        elif begin.kind == tokens.SEQUENCE:
            self.scanner.next()
            self._entries(node, _AFTER_ENTRY)
            if self._kind() != tokens.BLOCK_END:
                self._expected('"-" before another entry of the list', self.scanner.peek(), node)
            self.scanner.next()
        else:
            self._entries(node, (tokens.ENTRY, *_AFTER_KEY))

    def _entries(self, node: Sequence, empty_before: tuple[str, ...]) -> None:
        while self._kind() == tokens.ENTRY:
            entry = self.scanner.next()
            if self._kind() in empty_before:
                node.items.append(Scalar(entry.start + 1, ""))
            else:
                node.items.append(self._node(block=True))

    def _mapping(self, node: Mapping, begin: Token) -> None:
        self.scanner.next()
        if begin.kind == tokens.FLOW_MAPPING:
            self._flow_mapping(node)
            return
        while self._kind() == tokens.KEY:
            key = self._after(_AFTER_KEY)
            if self._kind() == tokens.VALUE:
                value = self._after(_AFTER_KEY)
            else:
                value = Scalar(self.scanner.peek().start, "")
            node.pairs.append((key, value))
        if self._kind() != tokens.BLOCK_END:
            self._expected("another key of the map", self.scanner.peek(), node)
        self.scanner.next()

    def _after(self, empty_before: tuple[str, ...]) -> Node:
        """Read the key or value of a block map after its indicator."""
        indicator = self.scanner.next()
        if self._kind() in empty_before:
            return Scalar(indicator.start + 1, "")
        return self._node(block=True, indentless=True)

    def _flow_sequence(self, node: Sequence) -> None:
        self.scanner.next()
        end = tokens.FLOW_SEQUENCE_END
        while self._kind() != end:
            if node.items:
                self._separator(node, end)
                if self._kind() == end:
                    break
            if self._kind() == tokens.KEY:
                pair = Mapping(self.scanner.next().start)
                node.items.append(pair)
                if self._kind() in (tokens.VALUE, tokens.FLOW_ENTRY, end):
                    # The decoder consumes what follows an empty key, even the end of the list.
                    key: Node = Scalar(self.scanner.next().start, "")
                else:
                    key = self._node(block=False)
                pair.pairs.append((key, self._flow_value(end)))
            else:
                node.items.append(self._node(block=False))
        node.end = self.scanner.next().start + 1

    def _flow_mapping(self, node: Mapping) -> None:
        end = tokens.FLOW_MAPPING_END
        while self._kind() != end:
            if node.pairs:
                self._separator(node, end)
                if self._kind() == end:
                    break
            if self._kind() == tokens.KEY:
                self.scanner.next()
                if self._kind() in (tokens.VALUE, tokens.FLOW_ENTRY, end):
                    key: Node = Scalar(self.scanner.peek().start, "")
                else:
                    key = self._node(block=False)
                node.pairs.append((key, self._flow_value(end)))
            else:
                key = self._node(block=False)
                node.pairs.append((key, Scalar(self.scanner.peek().start, "")))
        node.end = self.scanner.next().start + 1

    def _flow_value(self, end: str) -> Node:
        token = self.scanner.peek()
        if token.kind == tokens.VALUE:
            self.scanner.next()
            if self._kind() not in (tokens.FLOW_ENTRY, end):
                return self._node(block=False)
        return Scalar(token.start, "")

    def _separator(self, node: Node, end: str) -> None:
        if self._kind() != tokens.FLOW_ENTRY:
            what = "list" if isinstance(node, Sequence) else "map"
            self._expected(f'"," or "{end}" in the {what}', self.scanner.peek(), node)
        self.scanner.next()

    def _kind(self) -> str:
        return self.scanner.peek().kind

    def _expected(self, what: str, token: Token, parent: Node | None = None) -> NoReturn:
        """Raise the error for a token that cannot be here."""
        if token.kind == tokens.SCALAR:
            shown = f'"{token.value[:40]}"'
        else:
            shown = token.kind if len(token.kind) > 3 else f'"{token.kind}"'
        where = ""
        if parent is not None:
            where = f" that begins on line {self.scanner.cursor.position(parent.start).line}"
        self._fail(f"expected {what}{where}, found {shown}; check quotes and indentation", token)

    def _fail(self, message: str, token: Token) -> NoReturn:
        self.scanner.cursor.fail(message, token.start)
