"""Reading JSON from other programs, with any depth and any number, and within limits.

An API server serves objects with up to 10,000 nested levels. Python's decoder, like everything
recursive, ends at about 1,000, and one such object would hide a whole list. Its result takes a
hundred bytes for a value of two: so values are counted before they are decoded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from .limits import DOCUMENT, DOCUMENT_DEPTH, OBJECT_DEPTH, Size

# Strings and brackets; everything between them does not affect the depth.
_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


_STRING: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_BYTE_STRING: Final = re.compile(_STRING.pattern.encode(), re.DOTALL)


class TooLargeError(ValueError):
    """A document is larger than its reader accepts; it was not decoded.

    Attributes:
        excess: what it has too much of: "more than 100000 values".
        size: its length in bytes, or the part of it that was read.
    """

    def __init__(self, excess: str, size: int) -> None:
        self.excess = excess
        self.size = size
        super().__init__(f"the document has {excess}")


def too_many_bytes(limit: Size, size: int) -> TooLargeError:
    """The error for a document of which `size` bytes were read."""
    return TooLargeError(f"more than {limit.bytes} bytes", size)


def check_size(text: str | bytes, limit: Size = DOCUMENT) -> float:
    """Refuse a document that is too large to be decoded.

    Returns:
        How much of `limit` it takes at most; 1.0 is all of it.

    Raises:
        TooLargeError: it has more bytes or values than `limit`.
    """
    size = len(text)
    if size > limit.bytes:
        raise too_many_bytes(limit, size)
    values = most_values(text)
    if values > limit.values and count_values(text, limit.values) >= limit.values:
        raise TooLargeError(f"more than {limit.values} values", size)
    return max(size / limit.bytes, values / limit.values)


def count_values(text: str | bytes, limit: int) -> int:
    """The characters before values in JSON or the beginning of it, outside of strings.

    Strings have separators, too: a ConfigMap with a table is one value. It counts to `limit`, and
    counts as that many what has more than twice as many strings: each value has a key at most.
    """
    found = at = 0
    for number, (begin, end) in enumerate(_strings(text)):
        found += separators(text[at:begin])
        if found >= limit or number > 2 * limit:
            return limit
        at = end
    return min(found + separators(text[at:]), limit)


def _strings(text: str | bytes) -> Iterator[tuple[int, int]]:
    if isinstance(text, str):
        return (string.span() for string in _STRING.finditer(text))
    return (string.span() for string in _BYTE_STRING.finditer(text))


def most_values(text: str | bytes) -> int:
    """How many values JSON has at most: each one but the first follows one of `,`, `[`, `{`."""
    return separators(text) + 1


def separators(text: str | bytes) -> int:
    """The characters before values in a part of JSON; those within strings count, too."""
    if isinstance(text, str):
        return text.count(",") + text.count("[") + text.count("{")
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def read_json(
    text: str | bytes,
    limit: Size | None = DOCUMENT,
    loads: Callable[[str | bytes], Any] = json.loads,
) -> Any:
    """The document; what is nested deeper than DOCUMENT_DEPTH may be null instead.

    `loads` decodes it: a program that reads a lot has a faster one. Without a `limit`, the caller
    has called `check_size`.

    Raises:
        TooLargeError: it is larger than `limit`.
        ValueError: this is not JSON.
    """
    if limit is not None:
        check_size(text, limit)
    try:
        return loads(text)
    except (RecursionError, ValueError) as error:
        if isinstance(error, json.JSONDecodeError) and loads is json.loads:
            raise
        # Too deep, or more digits than Python converts; other decoders do not distinguish errors.
        kept = shallow(text if isinstance(text, str) else text.decode())
        return json.loads(kept, parse_int=_number)


def parse_json(
    text: str | bytes,
    limit: Size = DOCUMENT,
    loads: Callable[[str | bytes], Any] = json.loads,
) -> Any:
    """The document.

    Raises:
        TooLargeError: it is larger than `limit`.
        ValueError: this is not JSON, or it is nested too deep.
    """
    check_size(text, limit)
    try:
        return loads(text)
    except RecursionError as error:
        raise ValueError("this is nested too deep") from error


def _number(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:
        return float(digits)


def shallow(text: str) -> str:
    """JSON with null in place of all values that are nested deeper than DOCUMENT_DEPTH."""
    kept: list[str] = []
    depth, begin = 0, 0
    for token in _TOKEN.finditer(text):
        bracket = token[0]
        if bracket in "[{":
            depth += 1
            if depth == DOCUMENT_DEPTH + 1:
                kept += (text[begin : token.start()], "null")
        elif bracket in "]}":
            if depth == DOCUMENT_DEPTH + 1:
                begin = token.end()
            depth -= 1
    if depth > DOCUMENT_DEPTH:
        return ""  # it ends within such a value
    return "".join((*kept, text[begin:]))


def exceeds_depth(value: Any, levels: int) -> bool:
    """Whether objects and lists are nested in more levels than that; `value` is the first."""
    level = [value] if isinstance(value, (dict, list, Mapping)) else []
    for _ in range(levels):
        if not level:
            return False
        level = [
            child
            for one in level
            for child in (one if isinstance(one, list) else one.values())
            if isinstance(child, (dict, list))
        ]
    return bool(level)


def bounded(obj: Any, levels: int = OBJECT_DEPTH) -> Any:
    """`obj`, or a copy with null in place of the objects and lists below `levels`."""
    return _cut(obj, levels) if exceeds_depth(obj, levels) else obj


def _cut(value: Any, levels: int) -> Any:
    if not isinstance(value, (dict, list)):
        return value
    if levels == 0:
        return None
    if isinstance(value, list):
        return [_cut(child, levels - 1) for child in value]
    return {key: _cut(child, levels - 1) for key, child in value.items()}
