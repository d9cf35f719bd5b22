"""Extenders: field names of old versions, and timeouts of a Policy in nanoseconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...base.findings import Path
from .changes import ConversionLog
from .old_schema import EXTENDER_FIELDS, TLS_FIELDS

_UNITS: Final = ((3_600_000_000_000, "h"), (60_000_000_000, "m"), (1_000_000_000, "s"),
                 (1_000_000, "ms"), (1_000, "us"))  # fmt: skip


def spell(extenders: Any, report: ConversionLog) -> Any:
    """Spell the fields of extenders as in v1.

    Old versions ignored the case of these fields: a Policy has `enableHttps`, and the oldest ones
    have `BindVerb` and TLS fields in capitals.
    """
    if not isinstance(extenders, list):
        return extenders
    return [
        _spelled(extender, EXTENDER_FIELDS, ("extenders", index), report)
        for index, extender in enumerate(extenders)
    ]


def duration(nanoseconds: int) -> str:
    """Format a Go duration in the largest unit that divides it: 5000000000 is `5s`."""
    for size, unit in _UNITS:
        if nanoseconds and nanoseconds % size == 0:
            return f"{nanoseconds // size}{unit}"
    return f"{nanoseconds}ns" if nanoseconds else "0s"


def from_policy(extenders: list[dict[str, Any]], report: ConversionLog) -> list[dict[str, Any]]:
    """Convert the extenders of a Policy with valid types."""
    converted = []
    for index, extender in enumerate(extenders):
        fields = dict(extender)
        if "httpTimeout" in fields:
            text = duration(fields["httpTimeout"])
            report.same(
                ("extenders", index, "httpTimeout"),
                f"{fields['httpTimeout']} converted to {text}",
                "a Policy has nanoseconds, v1 a duration",
            )
            fields["httpTimeout"] = text
        converted.append(fields)
    return converted


def _spelled(value: Any, known: Mapping[str, str], path: Path, report: ConversionLog) -> Any:
    if not isinstance(value, Mapping):
        return value
    fields: dict[str, Any] = {}
    for key, item in value.items():
        name = known.get(str(key).lower(), str(key))
        if name != key:
            report.same((*path, key), f"renamed to {name}", "v1 field names are case-sensitive")
        if name == "tlsConfig":
            item = _spelled(item, TLS_FIELDS, (*path, key), report)
        fields[name] = item
    return fields
