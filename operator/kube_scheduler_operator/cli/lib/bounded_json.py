"""Reads JSON of a program that is not trusted, within limits of size, depth and values."""

from __future__ import annotations

import math
from typing import Any, Final

from ...base.json_text import exceeds_depth, parse_json

_LEVELS: Final = 16
"""Levels of nested objects and lists; answers of agents have 7."""
_LARGEST: Final = 2**63


def read_bounded_json(text: bytes, *, limit_bytes: int, limit_values: int) -> Any:
    """The document.

    The number of values is estimated before they are made, because each takes more memory than its
    text: commas and opening brackets, also those within strings, count.

    Raises:
        ValueError: this is not JSON, or it exceeds a limit; the message has the limit.
    """
    if len(text) > limit_bytes:
        raise ValueError(f"it has more than {limit_bytes} bytes")
    if sum(map(text.count, (b",", b"[", b"{"))) >= limit_values:
        raise ValueError(f"it has more than {limit_values} values")
    try:
        document = parse_json(text)
    except (UnicodeDecodeError, ValueError) as error:
        raise ValueError(f"it is not JSON: {error}") from None
    if exceeds_depth(document, _LEVELS):
        raise ValueError(f"it is nested in more than {_LEVELS} levels")
    return document


def is_number(value: Any) -> bool:
    """Whether this is a number that other programs read as well."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and abs(value) < _LARGEST
