"""The ConfigMap `load-state`: what may be on nodes, and what the annotator last said."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ..base import names
from ..base.objects import Object
from ..base.times import timestamp
from ..load.policy import FAMILIES
from ..model.workloads import digest

LISTED: Final = 20
"""So many names of nodes at most."""


@dataclass(frozen=True, slots=True)
class Said:
    """What the annotator said after a cycle; nobody promises that any of it has a type.

    Attributes:
        at: when.
        policy: of which policy.json: the digest of its text.
        nodes: how many there are.
        known: of how many the load is known.
        stale: of how many it was known once.
        missing: of how many it never was.
        stale_names: of those, some.
        missing_names: of those, some.
        removed: families of annotations that no node has any more.
        error: why the last cycle came to nothing, or to less.
    """

    at: datetime | None = None
    policy: str = ""
    nodes: int = 0
    known: int = 0
    stale: int = 0
    missing: int = 0
    stale_names: tuple[str, ...] = ()
    missing_names: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    error: str = ""


def read_written(state: Object | None) -> tuple[str, ...]:
    """Families of annotations that nodes may have, in the order of FAMILIES."""
    text = str(((state or {}).get("data") or {}).get(names.LOAD_WRITTEN_KEY) or "")
    found = set(text.split(","))
    return tuple(family for family in FAMILIES if family in found)


def read_said(state: Object | None) -> Said:
    """What the annotator said last; empty if it has not, or somebody put something else there."""
    text = ((state or {}).get("data") or {}).get(names.LOAD_STATE_KEY)
    try:
        said = json.loads(text or "{}")
    except ValueError:
        return Said()
    if not isinstance(said, Mapping):
        return Said()
    return Said(
        at=timestamp(_text(said, "at")),
        policy=_text(said, "policy"),
        nodes=_count(said, "nodes"),
        known=_count(said, "known"),
        stale=_count(said, "staleCount"),
        missing=_count(said, "missingCount"),
        stale_names=_names(said, "stale"),
        missing_names=_names(said, "missing"),
        removed=_names(said, "removed"),
        error=_text(said, "error"),
    )


def policy_digest(text: str) -> str:
    """By which the annotator says which policy.json it goes by."""
    return digest(text)


def _text(said: Mapping[str, Any], key: str) -> str:
    value = said.get(key)
    return value if isinstance(value, str) else ""


def _count(said: Mapping[str, Any], key: str) -> int:
    value = said.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _names(said: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = said.get(key)
    return tuple(map(str, value[:LISTED])) if isinstance(value, Sequence) else ()
