"""The status of SchedulerProfiles: what became of each, and the version that was accepted last.

The latter is the operator's only memory of it. A status is written when it would change, so that
hundreds of profiles that nobody edits cost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..base import names
from ..kube.resource import SCHEDULER_PROFILES
from ..model.plan import Action, Replace
from ..schedulerconfig.memo import by_identity
from ..status.accepted import accepted_condition, accepted_events, remembered
from ..status.conditions import merge_conditions
from ..status.warnings import warnings_condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from ..base.objects import Object
    from ..schedulerconfig.effective_plugins import Entry
    from .validate import Verdict

_WEIGHTED: Final = ("score", "placementScore")


def report_profiles(
    objects: Mapping[str, Object], verdicts: Iterable[Verdict], now: datetime
) -> tuple[Action, ...]:
    """The writes that make the objects say what became of them; none where they say it already."""
    writes = []
    for verdict in verdicts:
        obj = objects[verdict.name]
        status = profile_status(obj, verdict, now)
        if status != (obj.get("status") or {}):
            events = accepted_events("SchedulerProfile", obj, status)
            writes.append(Replace(SCHEDULER_PROFILES, {**obj, "status": status}, "status", events))
    return tuple(writes)


def profile_status(obj: Object, verdict: Verdict, now: datetime) -> dict[str, Any]:
    """The status that an object should have."""
    before: Mapping[str, Any] = obj.get("status") or {}
    generation = int(obj["metadata"].get("generation") or 0)
    status = remembered(before, generation, verdict.spec if verdict.accepted else None)
    if verdict.spec is not None:
        name = verdict.spec.get("schedulerName") or obj["metadata"]["name"]
        status["schedulerName"] = name
    if table := plugin_table(verdict):
        status["plugins"] = table
    owner = f"SchedulerProfile/{verdict.name} "
    warnings = warnings_condition(names.WARNINGS, verdict.warnings, owner)
    found = [accepted_condition(verdict, before, owner), warnings]
    status["conditions"] = merge_conditions(before.get("conditions") or (), found, now)
    return status


def plugin_table(verdict: Verdict) -> dict[str, str]:
    """The plugins that run, one line per extension point, with weights where they count."""
    return dict(_table(verdict.points))


@by_identity(512)
def _table(points: Mapping[str, tuple[Entry, ...]]) -> dict[str, str]:
    return {point: _line(point, entries) for point, entries in sorted(points.items())}


def _line(point: str, entries: Iterable[Entry]) -> str:
    weighted = point in _WEIGHTED
    return " ".join(f"{e.name}={e.weight or 1}" if weighted else e.name for e in entries)
