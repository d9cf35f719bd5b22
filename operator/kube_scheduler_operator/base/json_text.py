"""Reading JSON from other programs, with any depth and any number.

An API server serves objects with up to 10,000 nested levels. Python's decoder, like everything
recursive, ends at about 1,000, and one such object would hide a whole list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from .limits import DOCUMENT_DEPTH, OBJECT_DEPTH

# Strings and brackets; everything between them does not affect the depth.
_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


def read_json(text: str | bytes) -> Any:
    """The document; what is nested deeper than DOCUMENT_DEPTH may be null instead.

    Raises:
        ValueError: this is not JSON.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except (RecursionError, ValueError):  # too deep, or more digits than Python converts
        kept = shallow(text if isinstance(text, str) else text.decode())
        return json.loads(kept, parse_int=_number)


def parse_json(text: str | bytes) -> Any:
    """The document.

    Raises:
        ValueError: this is not JSON, or it is nested too deep.
    """
    try:
        return json.loads(text)
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
