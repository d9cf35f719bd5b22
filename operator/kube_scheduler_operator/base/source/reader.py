"""YAML and JSON as kube-scheduler reads them, with the line and column of every value.

Unlike in other YAML libraries, `y` is true, `010` is 8, `1e1` is 10, `1:30` is a string, a
duplicate key is an error, and a file that begins with `{` must be JSON. These are the rules of
sigs.k8s.io/yaml and encoding/json; tests/integration compares the results with kube-scheduler.

Every command that opens a file uses `read`.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ..findings import Path
from ..go_values import without_nulls
from . import json_scanner
from .culprit import explained
from .encoding import Characters, characters
from .separator import SEPARATOR
from .tree import Flaw, ParseError, Position, SourceNode
from .values import Builder
from .yaml_scanner import Parser

__all__ = ["Document", "Flaw", "ParseError", "Position", "read"]

_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
"""White space that Go accepts before the `{` of a JSON document."""


@dataclass(frozen=True, slots=True)
class Document:
    root: SourceNode  # the values with their positions
    flaws: tuple[Flaw, ...] = ()
    index: int = 0  # in the file, including empty documents; kube-scheduler only reads 0
    is_listed: bool = False  # whether it is an item of a List
    json: bytes = b""  # of a JSON document
    places: Mapping[Path, slice] = field(default_factory=dict)  # of each `args` in `json`

    @property
    def value(self) -> Any:
        """The document as plain data, without null fields at any depth."""
        return without_nulls(self.root.data)

    def objects(self) -> list[Document]:
        """Return the document, or the items of a `v1` List, kubectl's form of several objects.

        The flaws of a List are not repeated.
        """
        data = self.root.data
        items = self.root.child("items")
        if not isinstance(data, dict) or items is None or not isinstance(data["items"], list):
            return [self]
        if (data.get("apiVersion"), data.get("kind")) != ("v1", "List"):
            return [self]
        documents = (Document(node, (), self.index, True) for node in items[1].items)
        return [nested for document in documents for nested in document.objects()]

    def json_text(self, path: Path) -> bytes | None:
        """Return the text of `args` as written; None for another path, and in YAML."""
        if path not in self.places:
            return None
        # As in the parsed text, one character for each byte that is not UTF-8.
        text = self.json.decode("utf-8", "surrogateescape")[self.places[path]]
        return text.encode("utf-8", "surrogateescape")

    def position(self, path: Path) -> Position:
        """Return the position of a path's key or list entry, or of its deepest existing parent.

        The length is unknown for the whole document, and for a list entry that is only a parent.
        """
        position, depth, _ = self.root.walk(path)
        is_whole = not depth or (depth < len(path) and isinstance(path[depth - 1], int))
        return Position(position.line, position.column) if is_whole else position

    def data(self, path: Path) -> Any:
        """Return the value at a path; None if the document does not contain it."""
        node = self.root.at(path)
        return None if node is None else node.data

    def depth(self, path: Path) -> int:
        """Return how many leading parts of a path the document contains."""
        return self.root.walk(path)[1]


def read(source: str | bytes) -> tuple[list[Document], ParseError | None]:
    """Return the nonempty documents of a file, and the error that ended parsing, if any.

    Documents before the error are returned. Bytes are UTF-8, or UTF-16 with a byte order mark.
    """
    data = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source
    return _read_json(data) if is_json(data) else read_yaml(data)


def _read_json(data: bytes) -> tuple[list[Document], ParseError | None]:
    """Like `read`: one document, as kube-scheduler reads it, or a stream, as kubectl reads it."""
    text = data.decode("utf-8", _REPLACE)
    try:
        return [_of_json(json_scanner.parse(text), data)], None
    except ParseError as error:
        only_one = error
    try:
        values = json_scanner.parse_stream(text)
    except ParseError as error:
        # Documents of a stream may be YAML, or all of them.
        documents, failure = read_yaml(data) if SEPARATOR.search(text) else ([], error)
        if failure is not None:
            return [], error
    else:
        documents = [_of_json(value, data, index) for index, value in enumerate(values)]
    if any(_is_of_kube_scheduler(document.root.data) for document in documents):
        return [], only_one
    return documents, None


def _of_json(value: json_scanner.Value, data: bytes, index: int = 0) -> Document:
    return Document(value.root, tuple(value.flaws), index, json=data, places=value.texts)


def _is_of_kube_scheduler(data: Any) -> bool:
    version = data.get("apiVersion") if isinstance(data, Mapping) else None
    return isinstance(version, str) and version.startswith("kubescheduler.config.k8s.io/")


def read_yaml(data: bytes) -> tuple[list[Document], ParseError | None]:
    """Like `read`, for a program that reads a file as YAML even if it begins with `{`."""
    text = characters(data)
    documents, failure = _read_yaml(text)
    if failure is not None and failure is not text.error:
        failure = explained(failure, text.text, lambda other: _read_yaml(Characters(other))[1])
    return documents, failure


def is_json(data: bytes) -> bool:
    """Return whether kube-scheduler reads a file as JSON."""
    return data.decode("utf-8", _REPLACE).lstrip(_SPACE).startswith("{")


def _read_yaml(text: Characters) -> tuple[list[Document], ParseError | None]:
    documents: list[Document] = []
    lines: list[int] = []
    try:
        for index, node in enumerate(Parser(text).documents()):
            builder = Builder(text.text, lines)
            root = builder.node(node)
            if root.data is not None:
                documents.append(Document(root, tuple(builder.flaws), index))
    except ParseError as error:
        return documents, error
    return documents, None


def _replacement(error: UnicodeError) -> tuple[str, int]:
    """Replace each invalid byte, as in Go."""
    assert isinstance(error, UnicodeDecodeError)  # noqa: S101  # it is registered for decoding
    return "\ufffd", error.start + 1


_REPLACE: Final = "kube-scheduler-operator-replace"
codecs.register_error(_REPLACE, _replacement)
