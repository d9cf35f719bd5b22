"""The status of SchedulerProfiles, the only record of their last accepted versions.

It is written only when it changes, so that hundreds of unchanged profiles cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from ...base import names
from ...base.objects import Object
from ...config.effective.profiles.validate import ProfileResult
from ...config.language.plugins.effective_plugins import PluginEntry
from ...config.language.validation.result_cache import cached_by_identity
from ...kube.resource import SCHEDULER_PROFILES
from ..model.plan import Action, Replace
from ..status.accepted import accepted_condition, accepted_events, remembered
from ..status.conditions import merge_conditions
from ..status.warnings import warnings_condition

_WEIGHTED: Final = ("score", "placementScore")


def report_profiles(
    objects: Mapping[str, Object], results: Iterable[ProfileResult], now: datetime
) -> tuple[Action, ...]:
    """Write the statuses that are not up to date."""
    writes = []
    for result in results:
        obj = objects[result.name]
        status = profile_status(obj, result, now)
        if status != (obj.get("status") or {}):
            events = accepted_events("SchedulerProfile", obj, status)
            writes.append(Replace(SCHEDULER_PROFILES, {**obj, "status": status}, "status", events))
    return tuple(writes)


def profile_status(obj: Object, result: ProfileResult, now: datetime) -> dict[str, Any]:
    before: Mapping[str, Any] = obj.get("status") or {}
    generation = int(obj["metadata"].get("generation") or 0)
    status = remembered(before, generation, result.spec if result.accepted else None)
    if result.spec is not None:
        name = result.spec.get("schedulerName") or obj["metadata"]["name"]
        status["schedulerName"] = result.serves or name
    if table := plugin_table(result):
        status["plugins"] = table
    owner = f"SchedulerProfile/{result.name} "
    warnings = warnings_condition(names.WARNINGS, result.warnings, owner)
    conditions = [accepted_condition(result, before, owner), warnings]
    status["conditions"] = merge_conditions(before.get("conditions") or (), conditions, now)
    return status


def plugin_table(result: ProfileResult) -> dict[str, str]:
    """List the plugins that run, one line per extension point; score plugins with weights."""
    return dict(_table(result.points))


@cached_by_identity(512)
def _table(points: Mapping[str, tuple[PluginEntry, ...]]) -> dict[str, str]:
    return {point: _line(point, entries) for point, entries in sorted(points.items())}


def _line(point: str, entries: Iterable[PluginEntry]) -> str:
    weighted = point in _WEIGHTED
    return " ".join(f"{e.name}={e.weight or 1}" if weighted else e.name for e in entries)
