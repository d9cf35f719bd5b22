"""The ConfigMap `load-state`: annotations that nodes may have, and the annotator's last report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ...base import names
from ...base.json_text import parse_json
from ...base.objects import Object
from ...base.times import timestamp
from ...scheduling.load.policy import FAMILIES

LISTED: Final = 20
"""Maximum number of node names per list."""


@dataclass(frozen=True, slots=True)
class AnnotatorReport:
    """The annotator's report after a cycle, read from untrusted JSON."""

    at: datetime | None = None
    policy: str = ""  # digest of the policy.json in use
    nodes: int = 0
    known: int = 0  # number of nodes with known, recent load
    stale: int = 0  # number of nodes with outdated load
    missing: int = 0  # number of nodes whose load was never known
    stale_names: tuple[str, ...] = ()  # at most LISTED
    missing_names: tuple[str, ...] = ()  # at most LISTED
    removed: tuple[str, ...] = ()  # annotation families to remove that are no longer on any node
    error: str = ""  # why the last cycle failed, completely or in part


def read_written(state: Object | None) -> tuple[str, ...]:
    """Return the annotation families that nodes may have, in the order of FAMILIES."""
    text = str(((state or {}).get("data") or {}).get(names.LOAD_WRITTEN_KEY) or "")
    written = set(text.split(","))
    return tuple(family for family in FAMILIES if family in written)


def read_report(state: Object | None) -> AnnotatorReport:
    """Read the annotator's last report; empty if it is missing or invalid."""
    text = ((state or {}).get("data") or {}).get(names.LOAD_STATE_KEY)
    try:
        report = parse_json(text or "{}")
    except ValueError:
        return AnnotatorReport()
    if not isinstance(report, Mapping):
        return AnnotatorReport()
    return AnnotatorReport(
        at=timestamp(_text(report, "at")),
        policy=_text(report, "policy"),
        nodes=_count(report, "nodes"),
        known=_count(report, "known"),
        stale=_count(report, "staleCount"),
        missing=_count(report, "missingCount"),
        stale_names=_names(report, "stale"),
        missing_names=_names(report, "missing"),
        removed=_names(report, "removed"),
        error=_text(report, "error"),
    )


def _text(report: Mapping[str, Any], key: str) -> str:
    value = report.get(key)
    return value if isinstance(value, str) else ""


def _count(report: Mapping[str, Any], key: str) -> int:
    value = report.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _names(report: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = report.get(key)
    return tuple(map(str, value[:LISTED])) if isinstance(value, Sequence) else ()
