"""What users had set when a revision was cut, recorded with it so that it can be restored.

Many edits lead to the same content, so the fields that a user set cannot be derived from it.
`revision-status-N` has them under the key `inputs`. They are not part of the content and its hash:
a scheduler need not restart because other fields result in the same content.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ....base import names
from ....base.json_text import parse_json
from ....base.limits import COMPOSED_BYTES
from ....base.objects import Object
from ...language.merging.presets import changes_of_default_profile

SCHEDULER_FIELDS: Final = frozenset({"profile", "profileCustomizations"})
"""The fields of `Scheduler.spec` that a composition reads."""

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
"""The fields of `KubeScheduler.spec` that a composition reads."""

SECONDARY_KEPT: Final = frozenset({"assign", "namespace", "replicas"})
"""The fields of `SecondaryScheduler.spec` that do not decide what it runs."""

_SECONDARY_BYTES: Final = 64 * 1024
"""The longest record of a SecondaryScheduler; the API server takes annotations of 256 KiB."""


NOT_RECORDED: Final = frozenset({"placementCheck", "upgradeCheck"})
"""The fields of `OperatorSettings.spec` that no revision contains."""

UNRECORDED: Final = (
    "the operator's version, one that it follows, or what the cluster provides (certificates, "
    "authorities, API server, gates)"
)
"""The inputs that are not recorded."""


@dataclass(frozen=True, slots=True)
class RecordedInputs:
    """The fields that a revision was composed from; fields that were not set are missing."""

    scheduler: Mapping[str, Any]
    kubescheduler: Mapping[str, Any]
    # the specs of the objects in use, by name
    profiles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    extenders: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    operator_settings: Mapping[str, Any] | None = None
    # the spec of the SecondaryScheduler, without SECONDARY_KEPT; None: it is not about one
    secondary: Mapping[str, Any] | None = None

    @property
    def own_settings(self) -> Mapping[str, Mapping[str, Any]]:
        """The part of OperatorSettings' spec that a revision contains, by name."""
        if self.operator_settings is None:
            return {}
        spec = {k: v for k, v in self.operator_settings.items() if k not in NOT_RECORDED}
        return {names.CLUSTER: spec} if spec or not self.operator_settings else {}


def record(
    scheduler: Object | None,
    kubescheduler: Object | None,
    profiles: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    extenders: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    operator_settings: Mapping[str, Any] | None = None,
) -> str:
    """Return the current inputs as compact JSON with sorted keys.

    `profiles` and `extenders` are the specs of the objects in use, by name; `operator_settings` is
    that of OperatorSettings in use.
    """
    own = _chosen((kubescheduler or {}).get("spec") or {}, KUBESCHEDULER_FIELDS)
    observed = own.get("observedConfig")
    objects = {"profiles": profiles, "extenders": extenders}
    if any(objects.values()) and isinstance(observed, Mapping):
        # The observed configuration repeats their specs, which are recorded themselves.
        own["observedConfig"] = {k: v for k, v in observed.items() if not objects.get(k)}
    document = {
        "scheduler": _chosen((scheduler or {}).get("spec") or {}, SCHEDULER_FIELDS),
        "kubescheduler": own,
    }
    if profiles:
        document["schedulerProfiles"] = dict(profiles)
    if extenders:
        document["schedulerExtenders"] = dict(extenders)
    if operator_settings is not None:
        document["operatorSettings"] = dict(operator_settings)
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    # Undo needs it, a revision does not: it must not make the ConfigMap too large.
    return text if len(text.encode()) <= COMPOSED_BYTES else ""


def profile_changes(spec: Mapping[str, Any], inputs: str) -> str:
    """Name what changes the profile of Scheduler, by KubeScheduler's `spec`; empty: nothing.

    Overrides count as the revision with these inputs has them: refused ones are not used.
    """
    recorded = read_inputs(inputs)
    if recorded is None:
        return changes_of_default_profile(spec)
    overrides = recorded.kubescheduler.get("unsupportedConfigOverrides")
    return changes_of_default_profile({**spec, "unsupportedConfigOverrides": overrides})


def record_secondary(
    spec: Mapping[str, Any],
    profiles: Mapping[str, Mapping[str, Any]],
    extenders: Mapping[str, Mapping[str, Any]],
) -> str:
    """Return what a SecondaryScheduler was composed from, as `record` does; empty: too long."""
    document = {
        "scheduler": {},
        "kubescheduler": {},
        "secondaryScheduler": {k: v for k, v in spec.items() if k not in SECONDARY_KEPT},
        **({"schedulerProfiles": dict(profiles)} if profiles else {}),
        **({"schedulerExtenders": dict(extenders)} if extenders else {}),
    }
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text if len(text.encode()) <= _SECONDARY_BYTES else ""


def read_inputs(text: str) -> RecordedInputs | None:
    """Read what `record` wrote; None if it is missing or was edited."""
    try:
        document = parse_json(text)
        scheduler, kubescheduler = document["scheduler"], document["kubescheduler"]
    except (ValueError, KeyError, TypeError):
        return None
    if not isinstance(scheduler, Mapping) or not isinstance(kubescheduler, Mapping):
        return None
    profiles = document.get("schedulerProfiles") or {}
    extenders = document.get("schedulerExtenders") or {}
    if not isinstance(profiles, Mapping) or not isinstance(extenders, Mapping):
        return None
    settings, secondary = document.get("operatorSettings"), document.get("secondaryScheduler")
    return RecordedInputs(
        _chosen(scheduler, SCHEDULER_FIELDS),
        _chosen(kubescheduler, KUBESCHEDULER_FIELDS),
        _specs(profiles),
        _specs(extenders),
        settings if isinstance(settings, Mapping) else None,
        secondary if isinstance(secondary, Mapping) else None,
    )


def settings_in(text: str) -> Mapping[str, Any] | None:
    """`contained_settings` of what `record` wrote; None: unknown."""
    inputs = read_inputs(text)
    return contained_settings(inputs.operator_settings) if inputs is not None else None


def contained_settings(spec: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The part of OperatorSettings' spec that a revision contains, without empty fields."""
    return {k: v for k, v in (spec or {}).items() if v and k not in NOT_RECORDED}


def own_edits(before: RecordedInputs, after: RecordedInputs) -> tuple[str, ...]:
    """List the edited fields of Scheduler, KubeScheduler and SecondaryScheduler, one sentence each.

    The observed configuration, which the operator writes, is one of the fields. An empty field is
    one that is not set.
    """
    objects = (
        ("Scheduler", before.scheduler, after.scheduler),
        ("KubeScheduler", before.kubescheduler, after.kubescheduler),
        ("SecondaryScheduler", before.secondary or {}, after.secondary or {}),
    )
    edits = []
    for kind, old, new in objects:
        fields = sorted(
            key
            for key in old.keys() | new.keys()
            if (old.get(key) or None) != (new.get(key) or None)
        )
        if fields:
            edits.append(f"{kind}: spec.{', spec.'.join(fields)}")
    return tuple(edits)


class ObjectEdit(NamedTuple):
    """A change of an object besides Scheduler and KubeScheduler."""

    kind: str
    name: str
    before: Mapping[str, Any] | None  # its spec in use; None: it was not in use
    after: Mapping[str, Any] | None

    @property
    def sentence(self) -> str:
        if self.after is None:
            return f"{self.kind} {self.name} is no longer in use"
        return f"{self.kind} {self.name} {'is new' if self.before is None else 'was edited'}"

    @property
    def not_recorded(self) -> frozenset[str]:
        """The fields of its spec that no revision contains."""
        return NOT_RECORDED if self.kind == "OperatorSettings" else frozenset()


def changed_objects(before: RecordedInputs, after: RecordedInputs) -> tuple[ObjectEdit, ...]:
    """List changed objects besides Scheduler and KubeScheduler."""
    kinds = (
        ("SchedulerProfile", before.profiles, after.profiles),
        ("SchedulerExtender", before.extenders, after.extenders),
        ("OperatorSettings", before.own_settings, after.own_settings),
    )
    return tuple(
        ObjectEdit(kind, name, old.get(name), new.get(name))
        for kind, old, new in kinds
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    )


def _specs(objects: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {name: spec for name, spec in objects.items() if isinstance(spec, Mapping)}


def _chosen(spec: Mapping[str, Any], fields: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if key in fields and value is not None}
