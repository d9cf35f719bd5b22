"""The status of SchedulerProfiles, the only record of their last accepted versions.

It is written only when it changes, so that hundreds of unchanged profiles cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from ...base.bounded_cache import cached_by_identity
from ...base.objects import Object, mapping
from ...config.effective.attachment import scheduler_of
from ...config.effective.profiles.validate import ProfileResult
from ...config.language.plugins.effective_plugins import PluginEntry
from ...kube.resource import SCHEDULER_PROFILES
from ..model.plan import Action
from ..status.accepted import accepted_status, accepted_write
from ..status.in_use import InUse

_WEIGHTED: Final = ("score", "placementScore")


def report_profiles(
    objects: Mapping[str, Object],
    results: Iterable[ProfileResult],
    in_use: Mapping[str, InUse],
    now: datetime,
) -> tuple[Action, ...]:
    """Write the statuses that changed; `in_use` has what each scheduler runs, as far as known."""
    return tuple(
        write
        for result in results
        for obj in (objects[result.name],)
        for write in accepted_write(SCHEDULER_PROFILES, obj, _status(obj, result, in_use, now))
    )


def _status(
    obj: Object, result: ProfileResult, in_use: Mapping[str, InUse], now: datetime
) -> dict[str, Any]:
    runs = in_use.get(scheduler_of(mapping(obj.get("spec"))))
    scheduler = runs.profile(result.scheduler_name) if runs is not None else None
    status = accepted_status(SCHEDULER_PROFILES, obj, result, now, scheduler)
    if result.spec is not None:
        name = result.spec.get("schedulerName") or obj["metadata"]["name"]
        status["schedulerName"] = result.serves or name
    if table := plugin_table(result):
        status["plugins"] = table
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
