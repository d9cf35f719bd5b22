"""The generations of KubeScheduler and Scheduler that the status of KubeScheduler is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...base import names
from ...base.objects import mapping
from ...kube.resource import SCHEDULERS

_KEY: Final[Mapping[str, str]] = {
    "group": SCHEDULERS.group,
    "resource": SCHEDULERS.plural,
    "namespace": "",
    "name": names.CLUSTER,
}


def observed_generations(
    before: Mapping[str, Any],
    kubescheduler: Mapping[str, Any] | None,
    scheduler: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The fields of the status; `before` is the current status."""
    return {
        "observedGeneration": _generation(kubescheduler or {}),
        "generations": merge_generations(before.get("generations"), scheduler),
    }


def merge_generations(old: Any, scheduler: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """The list with the Scheduler's generation; entries of other clients are kept."""
    others = [dict(entry) for entry in _entries(old) if not _is_own(entry)]
    if scheduler is None:
        return others
    return [*others, {**_KEY, "lastGeneration": _generation(scheduler)}]


def is_scheduler_observed(
    kubescheduler: Mapping[str, Any], scheduler: Mapping[str, Any] | None
) -> bool:
    """Whether the status is about this Scheduler; True if an earlier release wrote the status."""
    entries = _entries(mapping(kubescheduler.get("status")).get("generations"))
    own = next(filter(_is_own, entries), None)
    if scheduler is None or own is None:
        return True
    return bool(own.get("lastGeneration") == _generation(scheduler))


def _entries(value: Any) -> list[Mapping[str, Any]]:
    return [entry for entry in value or () if isinstance(entry, Mapping)]


def _is_own(entry: Mapping[str, Any]) -> bool:
    return all((entry.get(key) or "") == value for key, value in _KEY.items())


def _generation(obj: Mapping[str, Any]) -> int:
    return int(mapping(obj.get("metadata")).get("generation") or 0)
