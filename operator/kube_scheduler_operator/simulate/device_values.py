"""What devices have of the attributes and capacities that a selector reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_NAME
from ..base.objects import mapping

_READ: Final = re.compile(
    r"""device\.(attributes|capacity)\[['"]([^'"]+)['"]\](?:\.(\w+)|\[['"]([^'"]+)['"]\])"""
)
_NAMED: Final = 2
"""Devices that a sentence names."""
_MOST: Final = 4
"""Values that it has of each."""


def written_values(
    expressions: Iterable[str], devices: Sequence[tuple[tuple[str, str, str], Mapping[str, Any]]]
) -> str:
    """Return what devices have of what expressions read, as the end of a sentence."""
    read = list(dict.fromkeys(_names(expressions)))[:_MOST]
    seen: dict[str, str] = {}
    for (_, _, name), device in devices:
        values = [text for kind, domain, key in read if (text := _value(device, kind, domain, key))]
        if values:
            seen.setdefault(" and ".join(values), name)
    return "".join(
        f"; device {foreign(name, FOREIGN_NAME)} has {values}"
        for values, name in list(seen.items())[:_NAMED]
    )


def _names(expressions: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    for expression in expressions:
        for kind, domain, name, quoted in _READ.findall(expression):
            yield kind, domain, name or quoted


def _value(device: Mapping[str, Any], kind: str, domain: str, name: str) -> str:
    values = mapping(device.get(kind))
    found = mapping(values.get(f"{domain}/{name}") or values.get(name))
    value = next(iter(found.values()), None)
    if value is None or isinstance(value, (dict, list)):
        return ""
    return f"{foreign(name, FOREIGN_NAME)} {foreign(str(value), FOREIGN_NAME)}"
