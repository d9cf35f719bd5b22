"""Which KubeScheduler and which Scheduler the status of KubeScheduler is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..base import names
from ..base.objects import mapping
from ..kube.resource import SCHEDULERS

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
    """The fields of the status that say so; `before` is the status so far."""
    return {
        "observedGeneration": _generation(kubescheduler or {}),
        "generations": merge_generations(before.get("generations"), scheduler),
    }


def merge_generations(old: Any, scheduler: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """The list with the Scheduler's generation; entries of other clients are kept."""
    others = [dict(each) for each in _entries(old) if not _is_own(each)]
    if scheduler is None:
        return others
    return [*others, {**_KEY, "lastGeneration": _generation(scheduler)}]


def is_scheduler_observed(
    kubescheduler: Mapping[str, Any], scheduler: Mapping[str, Any] | None
) -> bool:
    """Whether the status is about this Scheduler; True if an earlier release wrote the status."""
    own = [
        each
        for each in _entries(mapping(kubescheduler.get("status")).get("generations"))
        if _is_own(each)
    ]
    if scheduler is None or not own:
        return True
    return bool(own[0].get("lastGeneration") == _generation(scheduler))


def _entries(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value or () if isinstance(each, Mapping)]


def _is_own(entry: Mapping[str, Any]) -> bool:
    return all((entry.get(key) or "") == value for key, value in _KEY.items())


def _generation(obj: Mapping[str, Any]) -> int:
    return int(mapping(obj.get("metadata")).get("generation") or 0)
