"""Reading JSON of any depth and with any numbers from other programs, within limits.

An API server serves objects with up to 10,000 nested levels. Python's decoder, like everything
recursive, supports about 1,000, and one such object would hide a whole list. A value of two bytes
takes a hundred when it is decoded, so values are counted before.
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
    """A document is larger than its reader accepts; it was not decoded."""

    def __init__(self, excess: str, size: int) -> None:
        self.excess = excess  # "more than 100000 values"
        self.size = size  # bytes of the document, or of the part that was read
        super().__init__(f"the document has {excess}")


def too_many_bytes(limit: Size, size: int) -> TooLargeError:
    """Return the error for a document of which `size` bytes were read."""
    return TooLargeError(f"more than {limit.bytes} bytes", size)


def check_size(text: str | bytes, limit: Size = DOCUMENT) -> float:
    """Reject a document that is too large to be decoded.

    Returns:
        The largest share of `limit` that the document may take, up to 1.0.

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
    """Count the characters before values in JSON, or in the beginning of it, outside of strings.

    Separators within strings do not count: a ConfigMap with a table is one value. Counting ends at
    `limit`. Text with more than twice as many strings reaches it, because a value has at most one
    key.
    """
    values = at = 0
    for number, (begin, end) in enumerate(_strings(text)):
        values += separators(text[at:begin])
        if values >= limit or number > 2 * limit:
            return limit
        at = end
    return min(values + separators(text[at:]), limit)


def _strings(text: str | bytes) -> Iterator[tuple[int, int]]:
    if isinstance(text, str):
        return (string.span() for string in _STRING.finditer(text))
    return (string.span() for string in _BYTE_STRING.finditer(text))


def most_values(text: str | bytes) -> int:
    """Return an upper bound of JSON's values: all but the first follow one of `,`, `[`, `{`."""
    return separators(text) + 1


def separators(text: str | bytes) -> int:
    """Count the characters before values in a part of JSON, also within strings."""
    if isinstance(text, str):
        return text.count(",") + text.count("[") + text.count("{")
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def read_json(
    text: str | bytes,
    limit: Size | None = DOCUMENT,
    loads: Callable[[str | bytes], Any] = json.loads,
) -> Any:
    """Decode a document, in which values nested deeper than DOCUMENT_DEPTH may become null.

    `loads` is the decoder: a program that reads a lot has a faster one. Without a `limit`, the
    caller has called `check_size`.

    Raises:
        TooLargeError: the document is larger than `limit`.
        ValueError: the text is not JSON.
    """
    if limit is not None:
        check_size(text, limit)
    try:
        return loads(text)
    except (RecursionError, ValueError) as error:
        if isinstance(error, json.JSONDecodeError) and loads is json.loads:
            raise
        # Too deep, or more digits than Python converts; other decoders do not distinguish errors.
        shallow = _shallow(text if isinstance(text, str) else text.decode())
        return json.loads(shallow, parse_int=_number)


def parse_json(
    text: str | bytes,
    limit: Size = DOCUMENT,
    loads: Callable[[str | bytes], Any] = json.loads,
) -> Any:
    """Decode a document.

    Raises:
        TooLargeError: the document is larger than `limit`.
        ValueError: the text is not JSON, or it is nested too deep.
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


def _shallow(text: str) -> str:
    """Replace values that are nested deeper than DOCUMENT_DEPTH with null."""
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
    """Return whether objects and lists, including `value`, are nested in more than `levels`."""
    level = [value] if isinstance(value, (dict, list, Mapping)) else []
    for _ in range(levels):
        if not level:
            return False
        level = [
            child
            for parent in level
            for child in (parent if isinstance(parent, list) else parent.values())
            if isinstance(child, (dict, list))
        ]
    return bool(level)


def bounded(obj: Any, levels: int = OBJECT_DEPTH) -> Any:
    """Return `obj`, or a copy with null in place of the objects and lists below `levels`."""
    return _cut(obj, levels) if exceeds_depth(obj, levels) else obj


def _cut(value: Any, levels: int) -> Any:
    if not isinstance(value, (dict, list)):
        return value
    if levels == 0:
        return None
    if isinstance(value, list):
        return [_cut(child, levels - 1) for child in value]
    return {key: _cut(child, levels - 1) for key, child in value.items()}
