"""SchedulerProfiles and SchedulerExtenders of the control plane, as observed configuration.

The accepted ones are stored in `observedConfig`: if the API no longer serves a kind, because its
CustomResourceDefinition was deleted, pods keep the profiles that they name, and their extenders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ....base import names
from ....base.findings import Finding
from ....base.objects import mapping
from ....base.spec_limits import json_bytes
from ...language.merging.merge import normalized_json
from ...language.merging.merge_plain import unique_names
from ...language.schema import DEFAULT_SCHEDULER
from ..attachment import (
    CONTROL_PLANE,
    EXTENDER,
    KIND_NOT_SERVED,
    PROFILE,
    Attachable,
    name_of,
    rejection_findings,
    scheduler_of,
)
from ..extenders.validate import (
    ExtenderResult,
    OwnExtenders,
    unattached_extenders,
    validate_extenders,
)
from ..profiles.check import first_profile
from ..profiles.validate import ProfileResult, unattached_profiles, validate_profiles
from .base_configuration import Base
from .inputs import Inputs

EXTENDERS: Final = "extenders"
PROFILES: Final = "profiles"


@dataclass(frozen=True, slots=True)
class ObservedExtenders:
    own: tuple[Mapping[str, Any], ...] = ()  # their entries, in the order of the calls
    # the results for objects of this scheduler, or of a scheduler that does not exist
    results: tuple[ExtenderResult, ...] = ()
    # the objects that are moving to another scheduler, which has not accepted them yet
    leaving: tuple[ExtenderResult, ...] = ()
    findings: tuple[Finding, ...] = ()

    def over(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the overrides with these extenders in front of their own."""
        listed = config.get(EXTENDERS)
        if not self.own or not isinstance(listed, list | None):
            return config
        return {**config, EXTENDERS: [*self.own, *(listed or ())]}


def observe_extenders(inputs: Inputs, base: Base) -> ObservedExtenders:
    """Validate the SchedulerExtenders of the control plane.

    Without fragments in the base, there is no configuration, and the extenders observed last stay.
    """
    over = base.overrides.config
    if base.fragments is None:
        return ObservedExtenders(_remembered(inputs, EXTENDERS))
    if inputs.objects.extenders is None:
        own = _remembered(inputs, EXTENDERS)
        # Not an error without extenders: the kind is newer than the others.
        urls = [entry.get("urlPrefix") for entry in own]
        findings = (_not_served(inputs, EXTENDER, urls),) if own else ()
        return ObservedExtenders(own, findings=findings)
    objects = inputs.objects.extenders
    if not objects:
        return ObservedExtenders()
    chosen = validate_extenders(
        CONTROL_PLANE,
        objects,
        OwnExtenders(over.get(EXTENDERS), names.OVERRIDES),
        base.target,
        inputs.facts,
        profiles=_profile_count(inputs, over),
    )
    results = (*chosen.results, *unattached_extenders(objects, inputs.objects.schedulers))
    rejections = tuple(finding for result in results for finding in rejection_findings(result))
    return ObservedExtenders(chosen.entries, results, chosen.leaving, rejections)


def _profile_count(inputs: Inputs, over: Mapping[str, Any]) -> int:
    """Return the number of profiles if all are accepted."""
    specs = [(name_of(obj), mapping(obj.get("spec"))) for obj in inputs.objects.profiles or ()]
    asked = {
        spec.get("schedulerName") or name
        for name, spec in specs
        if scheduler_of(spec) == CONTROL_PLANE
    }
    listed = over.get("profiles")
    for profile in listed if isinstance(listed, list) else ():
        asked.add(mapping(profile).get("schedulerName") or DEFAULT_SCHEDULER)
    return len({DEFAULT_SCHEDULER, *map(str, asked)})


@dataclass(frozen=True, slots=True)
class ObservedProfiles:
    own: tuple[Mapping[str, Any], ...] = ()
    # all profiles before the overrides, in order; empty if `own` is empty
    all: tuple[Mapping[str, Any], ...] = ()
    # the results for objects of this scheduler, or of a scheduler that does not exist
    results: tuple[ProfileResult, ...] = ()
    findings: tuple[Finding, ...] = ()


def observe_profiles(inputs: Inputs, base: Base, extenders: ObservedExtenders) -> ObservedProfiles:
    """Validate the SchedulerProfiles of the control plane, with its SchedulerExtenders.

    Without fragments in the base, there is no configuration, and the profiles observed last stay.
    """
    if base.fragments is None:
        return ObservedProfiles(_remembered(inputs, PROFILES))
    first = first_profile(base.fragments[0])
    if inputs.objects.profiles is None:
        own = _remembered(inputs, PROFILES)
        replaced = [profile["schedulerName"] for profile in own]
        kept = () if first["schedulerName"] in replaced else (first,)
        findings = (_not_served(inputs, PROFILE, replaced),)
        return ObservedProfiles(own, (*kept, *own) if own else (), (), findings)
    objects = inputs.objects.profiles
    over = extenders.over(base.overrides.config)
    profiles, results = validate_profiles(
        CONTROL_PLANE, objects, first, base.target, over=over, reserved=json_bytes(over)
    )
    results = (*results, *unattached_profiles(objects, inputs.objects.schedulers))
    own = tuple(profile for profile in profiles if profile is not first)
    rejections = tuple(finding for result in results for finding in rejection_findings(result))
    return ObservedProfiles(own, profiles if own else (), results, rejections)


def _remembered(inputs: Inputs, key: str) -> tuple[Mapping[str, Any], ...]:
    previous = mapping(inputs.spec.get("observedConfig")).get(key)
    if not isinstance(previous, list) or not all(isinstance(item, Mapping) for item in previous):
        return ()
    if key == PROFILES and unique_names(previous, "schedulerName") is None:
        return ()
    return tuple(normalized_json(previous))


def _not_served(inputs: Inputs, attachable: Attachable, kept: Sequence[Any]) -> Finding:
    """Report that the kind is missing, as an error if what it configured before stays in use."""
    condition = names.INEFFECTIVE_SETTINGS
    install = f"kubectl apply --server-side -k {inputs.platform.definitions}"
    message = f"the API does not serve this kind; install it: {install}"
    key = EXTENDERS if attachable is EXTENDER else PROFILES
    if kept:
        condition = attachable.condition
        message += f" (the {key} that were observed last stay in use: {', '.join(map(str, kept))})"
    return Finding(condition, KIND_NOT_SERVED, attachable.kind, message, blocking=False)
