"""Values of Volcano's configuration: the names of types, and values of any type as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

TYPE_NAMES: Final = {
    "string": "a string",
    "bool": "true or false",
    "list": "a list",
    "map": "a map",
    "strings": "a map of strings",
    "int": "an integer",
    "float": "a number",
    "number": "a number",
}
"""Type in the record -> the type in messages."""
BOOLEANS: Final = frozenset(
    {"1", "t", "T", "true", "TRUE", "True", "0", "f", "F", "false", "FALSE", "False"}
)
"""Texts that Go's strconv.ParseBool takes."""


def scalar_text(value: Any) -> str:
    """A scalar as yaml.v2 decodes it into a string."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def name_of(entry: Mapping[str, Any]) -> str:
    """The `name` of an entry; empty if it has none."""
    name = entry.get("name")
    return "" if name is None else scalar_text(name)


def entries(value: Any) -> Sequence[Any]:
    """The entries of a list; none of any other value."""
    return value if isinstance(value, list) else ()
