"""What users had set when a revision was cut, kept with it so that it can be asked for again.

A revision's content is the outcome of a composition, and many edits lead to the same one: there is
no way back from it to the fields that somebody wrote. So `revision-status-N` has them under the key
`inputs`. They are no part of the content and its hash: another way to the same content is no reason
to restart a scheduler.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from ...base.objects import Object

SCHEDULER_FIELDS: Final = frozenset({"profile", "profileCustomizations"})
"""Of `Scheduler.spec`: what a composition reads."""

KUBESCHEDULER_FIELDS: Final = frozenset(
    {
        "bindAddress",
        "featureGates",
        "forceRedeploymentReason",
        "logLevel",
        "observedConfig",
        "tlsSecurityProfile",
        "unsupportedConfigOverrides",
    }
)
"""Of `KubeScheduler.spec`: the same."""


@dataclass(frozen=True, slots=True)
class RecordedInputs:
    """The fields that a revision was composed from; what was not set is not in there.

    Attributes:
        scheduler: of the Scheduler's spec.
        kubescheduler: of the KubeScheduler's spec.
        profiles: the specs of SchedulerProfiles that were in use, by the objects' names.
        extenders: the same of SchedulerExtenders.
    """

    scheduler: Mapping[str, Any]
    kubescheduler: Mapping[str, Any]
    profiles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    extenders: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def record(
    scheduler: Object | None,
    kubescheduler: Object | None,
    profiles: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    extenders: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> str:
    """The inputs as they are now, as compact JSON with sorted keys.

    Args:
        scheduler: the Scheduler.
        kubescheduler: the KubeScheduler.
        profiles: the specs of SchedulerProfiles that are in use, by the objects' names.
        extenders: the same of SchedulerExtenders.
    """
    own = _chosen((kubescheduler or {}).get("spec") or {}, KUBESCHEDULER_FIELDS)
    observed = own.get("observedConfig")
    given = {"profiles": profiles, "extenders": extenders}
    if any(given.values()) and isinstance(observed, Mapping):
        # What is observed of them is made from the specs, which are here themselves.
        own["observedConfig"] = {k: v for k, v in observed.items() if not given.get(k)}
    document = {
        "scheduler": _chosen((scheduler or {}).get("spec") or {}, SCHEDULER_FIELDS),
        "kubescheduler": own,
    }
    if profiles:
        document["schedulerProfiles"] = dict(profiles)
    if extenders:
        document["schedulerExtenders"] = dict(extenders)
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def read_inputs(text: str) -> RecordedInputs | None:
    """What `record` wrote; None if there is nothing, or somebody put something else there."""
    try:
        document = json.loads(text)
        scheduler, kubescheduler = document["scheduler"], document["kubescheduler"]
    except (ValueError, KeyError, TypeError):
        return None
    if not isinstance(scheduler, Mapping) or not isinstance(kubescheduler, Mapping):
        return None
    profiles = document.get("schedulerProfiles") or {}
    extenders = document.get("schedulerExtenders") or {}
    if not isinstance(profiles, Mapping) or not isinstance(extenders, Mapping):
        return None
    return RecordedInputs(
        _chosen(scheduler, SCHEDULER_FIELDS),
        _chosen(kubescheduler, KUBESCHEDULER_FIELDS),
        _specs(profiles),
        _specs(extenders),
    )


def object_edits(before: RecordedInputs, after: RecordedInputs) -> tuple[str, ...]:
    """Which SchedulerProfiles and SchedulerExtenders are not what they were, a sentence each."""
    kinds = (
        ("SchedulerProfile", before.profiles, after.profiles),
        ("SchedulerExtender", before.extenders, after.extenders),
    )
    found = []
    for kind, old, new in kinds:
        for name in sorted(old.keys() | new.keys()):
            if name not in new:
                found.append(f"{kind} {name} is not in use any more")
            elif name not in old:
                found.append(f"{kind} {name} is new")
            elif old[name] != new[name]:
                found.append(f"{kind} {name} was edited")
    return tuple(found)


def _specs(objects: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {name: spec for name, spec in objects.items() if isinstance(spec, Mapping)}


def _chosen(spec: Mapping[str, Any], fields: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if key in fields and value is not None}
