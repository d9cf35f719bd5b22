"""The annotator's report to the operator: the JSON in a ConfigMap, written and read here.

The operator copies it to the LoadPolicy's status. With a ConfigMap, the annotator needs no
permission for LoadPolicies.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final

from ...base.json_text import parse_json
from ...base.names import LOAD_STATE_KEY
from ...base.objects import Object, mapping
from ...base.times import timestamp

LISTED: Final = 20
"""Maximum number of node names per list."""


@dataclass(frozen=True, slots=True)
class ReportedState:
    at: str = ""  # time of the report (RFC 3339)
    source: str = ""  # type of the source
    policy: str = ""  # the first ten hexadecimal digits of the SHA-256 of the policy's text
    # annotation families that are written in addition to the operator's own
    write: list[str] = field(default_factory=list)
    # annotation families to remove that are no longer on any node
    removed: list[str] = field(default_factory=list)
    nodes: int = 0
    known: int = 0  # number of nodes with known, recent load
    stale: list[str] = field(default_factory=list)
    # number of nodes with outdated load, and names of some
    staleCount: int = 0  # noqa: N815 - as in the JSON
    missing: list[str] = field(default_factory=list)
    # number of nodes whose load was never known, and names of some
    missingCount: int = 0  # noqa: N815
    cycleSeconds: float = 0.0  # noqa: N815 - of the last cycle
    patches: int = 0  # number of node PATCHes in the last hour
    error: str = ""

    def text(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @property
    def essence(self) -> tuple[object, ...]:
        """The values whose change causes a write."""
        varying = ("at", "cycleSeconds", "patches")
        return tuple(value for name, value in asdict(self).items() if name not in varying)

    @property
    def time(self) -> datetime | None:
        """The time of the report; None without a report."""
        return timestamp(self.at)

    @classmethod
    def read(cls, config_map: Object | None) -> ReportedState:
        """Read the last report, untrusted JSON; what is missing or invalid has its default."""
        text = mapping(mapping(config_map).get("data")).get(LOAD_STATE_KEY)
        try:
            report = mapping(parse_json(text or "{}"))
        except ValueError:
            return cls()
        defaults = asdict(cls())
        return cls(**{name: _read(report.get(name), value) for name, value in defaults.items()})


def _read(value: Any, default: Any) -> Any:
    if type(value) is not type(default):
        return default
    return list(map(str, value[:LISTED])) if isinstance(value, list) else value
