"""Extenders: their fields in old spellings, and the time-out of a Policy, which is nanoseconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..base.findings import Path
from .changes import Report
from .old_schema import EXTENDER_FIELDS, TLS_FIELDS

_UNITS: Final = ((3_600_000_000_000, "h"), (60_000_000_000, "m"), (1_000_000_000, "s"),
                 (1_000_000, "ms"), (1_000, "us"))  # fmt: skip


def spell(extenders: Any, report: Report) -> Any:
    """The extenders with their fields spelled as v1 has them.

    Old versions read these fields whatever their case: a Policy has `enableHttps`, the oldest ones
    have `BindVerb` and a TLS configuration without any lower case.
    """
    if not isinstance(extenders, list):
        return extenders
    return [
        _spelled(extender, EXTENDER_FIELDS, ("extenders", index), report)
        for index, extender in enumerate(extenders)
    ]


def duration(nanoseconds: int) -> str:
    """A Go duration in the largest unit that it is a multiple of: 5000000000 is `5s`."""
    for size, unit in _UNITS:
        if nanoseconds and nanoseconds % size == 0:
            return f"{nanoseconds // size}{unit}"
    return f"{nanoseconds}ns" if nanoseconds else "0s"


def from_policy(extenders: list[dict[str, Any]], report: Report) -> list[dict[str, Any]]:
    """The extenders of a Policy that has been read."""
    converted = []
    for index, extender in enumerate(extenders):
        fields = dict(extender)
        if "httpTimeout" in fields:
            text = duration(fields["httpTimeout"])
            report.same(
                ("extenders", index, "httpTimeout"),
                f"{fields['httpTimeout']} is {text}",
                "a Policy has nanoseconds, v1 has a duration",
            )
            fields["httpTimeout"] = text
        converted.append(fields)
    return converted


def _spelled(value: Any, known: Mapping[str, str], path: Path, report: Report) -> Any:
    if not isinstance(value, Mapping):
        return value
    fields: dict[str, Any] = {}
    for key, item in value.items():
        name = known.get(str(key).lower(), str(key))
        if name != key:
            report.same((*path, key), f"this is {name} in v1", "old versions took any case")
        if name == "tlsConfig":
            item = _spelled(item, TLS_FIELDS, (*path, key), report)
        fields[name] = item
    return fields
