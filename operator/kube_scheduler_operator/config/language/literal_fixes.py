"""Fixes for values of a wrong type or form, where the intended value is evident."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from ...base.go_values import nanoseconds
from ...base.source.culprit import first_culprit
from ...base.source.yaml_text import flow
from .schema import List, Struct

_TRUE: Final = ("true", "yes", "on", "1", "y")
_FALSE: Final = ("false", "no", "off", "0", "n")
_FIELD: Final = re.compile(r"\s*(\w+):(?:(\s)|(\S+))")
"""A field in a text: with the white space after its colon, or with its value."""
_NUMBER: Final = re.compile(r"\W*?([+-]?[0-9]+)(\.0*)?[^0-9]*")
_UNITS: Final[Mapping[str, tuple[int, str]]] = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), (1, "s")),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), (1, "m")),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), (1, "h")),
    **dict.fromkeys(("d", "day", "days"), (24, "h")),
    "ms": (1, "ms"),
}
"""Unit as people write it -> (factor, unit of Go)."""
_PART: Final = re.compile(r"([0-9]+)([a-z]*)")
_MOST_DIGITS: Final = 19  # of the longest duration in nanoseconds, 2^63 - 1

_MILLISECOND: Final = 10**6
"""Nanoseconds, in which a Policy writes durations."""


def type_fix(value: Any, expected: str) -> str:
    """Suggest how to correct a value of another type.

    `expected` is `an object`, `a list`, `an integer`, `a number`, `true or false`, or another text.
    """
    if expected == "an object" and isinstance(value, list):
        return "remove the hyphens before its fields"
    if expected == "an object":
        return "write its fields below it"
    if expected == "a list":
        return "begin each of its entries with a hyphen"
    if expected == "a string" and isinstance(value, list) and len(value) == 1:
        return f"write {flow(value[0])}, without brackets or a hyphen"
    if isinstance(value, Mapping | list):
        return f"write {'text' if expected == 'a string' else expected}"
    if expected == "true or false":
        word = str(value).strip().lower()
        return f"write {'true' if word in _TRUE else 'false' if word in _FALSE else expected}"
    if expected in ("an integer", "a number"):
        number = _NUMBER.fullmatch(value) if isinstance(value, str) else None
        return f"write {number[1]}" if number else f"write {expected}"
    if expected.startswith("a duration"):
        if isinstance(value, int) and value >= _MILLISECOND and not value % _MILLISECOND:
            parts = divmod(value // _MILLISECOND, 1000)
            return f"write {parts[0]}s" if not parts[1] else f"write {value // _MILLISECOND}ms"
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        is_possible = is_number and abs(value) < 10**_MOST_DIGITS
        return duration_fix(f"{value:g}" if is_possible else "")
    return "write it in quotes"


def object_fix(value: Any, kind: Struct) -> str:
    """Suggest how to write an object instead of another value; empty if it is not evident."""
    names = [name for name in ("name", "schedulerName", "type") if name in kind.fields]
    if isinstance(value, str) and (match := _FIELD.match(value)) and match[1] in kind.fields:
        if match[2]:
            return "remove the | or > after the key, so that its fields are not a text"
        return f"write a space after the colon: {match[1]}: {match[3]}"
    if isinstance(value, str) and names and "\n" not in value and ":" not in value:
        return f"write {{{names[0]}: {flow(value)}}}"
    if isinstance(value, list) and "enabled" in kind.fields:
        return "write enabled above its entries"
    return ""


def list_fix(value: Any, kind: List) -> str:
    """Suggest how to write a list instead of another value; empty if it is not evident."""
    item = kind.item
    if not isinstance(item, Struct):
        return f"write [{flow(value)}]" if isinstance(value, str) else ""
    if isinstance(value, str) and (entry := object_fix(value, item)):
        return entry.replace("{", "[{").replace("}", "}]")
    if isinstance(value, Mapping) and "name" in item.fields and not set(value) & set(item.fields):
        names = ", ".join(f"{{name: {flow(str(name))}, …}}" for name in value)
        return f"write a list of entries with a name: [{names}]" if value else ""
    return ""


def duration_fix(text: str) -> str:
    """Suggest how to correct a text that is not a duration."""
    if culprit := first_culprit(text):
        return f"it has {culprit.replace('; ', ', ')}"
    parts = _PART.findall(text.replace(" ", "").lower())
    written = "".join(number + unit for number, unit in parts)
    if len(parts) > 1 and not all(unit for _, unit in parts):
        return "write one such as 15s"
    if any(len(number) > _MOST_DIGITS for number, _ in parts):
        return "write one such as 15s"
    if parts and written == text.replace(" ", "").lower():
        known = [(int(number), _UNITS.get(unit or "s")) for number, unit in parts]
        made = "".join(f"{number * unit[0]}{unit[1]}" for number, unit in known if unit)
        if all(unit for _, unit in known) and _is_duration(made):
            return f"write {made}"
    return "write one such as 15s"


def _is_duration(text: str) -> bool:
    try:
        nanoseconds(text)
    except ValueError:
        return False
    return True
