"""SecondarySchedulers and SchedulerProfiles that name a schedulerName and are refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from ...base import names
from ...base.foreign_text import foreign
from ...base.limits import FOREIGN_NAME, FOREIGN_REASON
from ...base.objects import entries, mapping
from ...kube.api import Object
from ...kube.client import ApiClient
from ...kube.errors import KubeError
from ...kube.resource import SCHEDULER_PROFILES, SECONDARY_SCHEDULERS
from ...operator.status.conditions import condition_in

_REFUSES: Final = (
    (names.DEGRADED, "True"),
    (names.ACCEPTED, "False"),
    (names.AVAILABLE, "False"),
)
"""The conditions that say why an object is not in use, the first one that holds."""


async def refused_in_cluster(api: ApiClient, schedulers: Iterable[Object]) -> dict[str, str]:
    """Return, for schedulerNames, which object has them and why it is not in use.

    SchedulerProfiles count as far as they may be listed.
    """
    profiles: Iterable[Object] = ()
    with suppress(KubeError):
        profiles = (await api.list(SCHEDULER_PROFILES)).items
    secondaries = ({"kind": SECONDARY_SCHEDULERS.kind, **obj} for obj in schedulers)
    others = ({"kind": SCHEDULER_PROFILES.kind, **obj} for obj in profiles)
    return refused_names((*secondaries, *others))


def refused_names(objects: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return, for schedulerNames, which object has them and why it is not in use."""
    found: dict[str, str] = {}
    for obj in objects:
        if reason := _refused(obj):
            for name in _names(obj):
                found.setdefault(name, reason)
    return found


def _names(obj: Mapping[str, Any]) -> Iterator[str]:
    """Yield the schedulerNames of the object's own spec."""
    name, spec = str(mapping(obj.get("metadata")).get("name")), mapping(obj.get("spec"))
    if obj.get("kind") == SCHEDULER_PROFILES.kind:
        yield str(spec.get("schedulerName") or name)
        return
    for own in entries(spec.get("profiles")) or ({},):
        yield str(mapping(own).get("schedulerName") or name)


def _refused(obj: Mapping[str, Any]) -> str:
    kind = obj.get("kind")
    if kind not in (SECONDARY_SCHEDULERS.kind, SCHEDULER_PROFILES.kind):
        return ""
    title = f"{kind} {foreign(str(mapping(obj.get('metadata')).get('name')), FOREIGN_NAME)}"
    status = mapping(obj.get("status"))
    if not status.get("conditions"):
        return f"{title} names it, and the operator has not observed it yet"
    for type_, value in _REFUSES:
        condition = condition_in(status, type_)
        if condition.get("status") == value:
            why = str(condition.get("message") or condition.get("reason") or "no message")
            return f"{title} names it and is not in use: {foreign(why, FOREIGN_REASON).rstrip('.')}"
    return ""
