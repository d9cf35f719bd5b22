"""SchedulerProfiles of the scheduler of AKS, which reads them from one object in the API.

The object is SchedulerConfiguration "upstream" (aks.azure.com/v1alpha1, preview) with a
KubeSchedulerConfiguration as text. Sources: Microsoft's articles "Configure advanced scheduler
profiles on AKS (preview)" and "Scheduler configuration concepts" (MicrosoftDocs/azure-aks-docs at
fb060ab, 2026-08-21). They name the fields that users configure, 18 in-tree plugins, the object's
name and the reserved profile. The schema of the CRD is not public, so its status is not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import yaml

from ...base import names
from ...base.findings import Finding, format_path
from ...base.objects import Object, is_being_deleted, label, mapping
from ...base.source.yaml_text import yaml_text
from ...config.effective.attachment import (
    PROFILE,
    SPEC,
    last_accepted,
    name_of,
    scheduler_of,
    schedulers_of,
)
from ...config.effective.profiles.aks_support import NAME, RESERVED_PROFILE, unsupported_plugins
from ...config.effective.profiles.validate import ProfileResult, validate_profiles
from ...config.language.schema import API_VERSION, KIND
from ...config.language.validation.configuration import Target
from ...kube.resource import AKS_SCHEDULER_CONFIGURATIONS, ObjectRef
from ..model.apply import create, new_object
from ..model.plan import Action, Delete, Event, Replace
from ..model.snapshot import Snapshot
from ..status.in_use import Configuration, InUse
from ..status.readiness import rolling_out

SCHEDULER: Final = "aks"
"""The reserved `spec.scheduler`."""

REF: Final[ObjectRef] = AKS_SCHEDULER_CONFIGURATIONS.named(NAME)
_WHERE: Final = f"SchedulerConfiguration/{NAME}"
_NOT_SERVED: Final = (
    f"the API server has no kind {AKS_SCHEDULER_CONFIGURATIONS.kind} of "
    f"{AKS_SCHEDULER_CONFIGURATIONS.api_version}; on AKS, enable it: az aks update "
    "--enable-upstream-kubescheduler-user-configuration (preview); elsewhere, remove the field, or "
    'create SecondaryScheduler "aks"'
)
_FOREIGN: Final = (
    f"another client created {_WHERE}, so the operator does not change it; delete it, or hand it "
    f"over: kubectl label schedulerconfiguration {NAME} {names.MANAGED_BY_LABEL}={names.PROGRAM}"
)


@dataclass(frozen=True, slots=True)
class AksProfiles:
    results: tuple[ProfileResult, ...] = ()  # for the SchedulerProfiles that name the scheduler
    actions: tuple[Action, ...] = ()  # writes that bring the object up to date
    scheduler_names: tuple[str, ...] = ()  # those that the scheduler serves with these profiles
    in_use: InUse | None = None  # what the object has: what AKS runs is not known


_LONGER, _SPARE = 4, 16 * 1024
"""A text longer than the operator's by this factor, plus characters for comments, has other
content. It is not decoded, which takes a second for a MiB of YAML."""


def aks_profiles(snapshot: Snapshot, target: Target, taken: Mapping[str, str]) -> AksProfiles:
    """Keep SchedulerProfiles with `spec.scheduler: aks` in the object.

    `taken` maps each schedulerName that another scheduler serves to that scheduler. If a
    SecondaryScheduler has the reserved name, the profiles are attached to it instead.
    """
    if SCHEDULER in snapshot.secondaries.schedulers:
        return AksProfiles()
    objects = (snapshot.scheduler_profiles or {}).values()
    mine = [obj for obj in objects if SCHEDULER in schedulers_of(obj)]
    if snapshot.aks_configurations is None:
        return AksProfiles(tuple(_refused(mine, "NotServed", _NOT_SERVED)))
    existing = snapshot.aks_configurations.get(NAME)
    if existing is not None and not _is_ours(existing):
        return AksProfiles(tuple(_refused(mine, "NotOurs", _FOREIGN)))
    unsupported: dict[str, tuple[Finding, ...]] = {}
    candidates: list[Object] = []
    unusable = []
    for obj in mine:
        name = name_of(obj)
        unsupported[name] = tuple(_unsupported(name, mapping(obj["spec"])))
        if not unsupported[name]:
            candidates.append(obj)
        elif (accepted := last_accepted(obj)) is not None:
            candidates.append({**obj, "spec": accepted})
        else:
            unusable.append(ProfileResult(name, False, unsupported[name]))
    profiles, results = validate_profiles(SCHEDULER, candidates, {}, target, taken=taken)
    error = snapshot.write_errors.get(REF, "")
    actions = _writes(existing, profiles)
    composed = Configuration({"profiles": list(profiles)}) if actions else None
    waits = rolling_out(f"{_WHERE} is not written yet")
    reported = (_with_errors(result, unsupported[result.name], error) for result in results)
    return AksProfiles(
        (*reported, *unusable),
        actions,
        tuple(str(profile["schedulerName"]) for profile in profiles),
        InUse((), (waits,), composed),
    )


def remove_aks_profiles(snapshot: Snapshot) -> tuple[Action, ...]:
    """Delete the object, unless another client created it."""
    existing = (snapshot.aks_configurations or {}).get(NAME)
    return _writes(existing, ()) if existing is not None and _is_ours(existing) else ()


def _is_ours(obj: Object) -> bool:
    return label(obj, names.MANAGED_BY_LABEL) == names.PROGRAM


def _writes(existing: Object | None, profiles: Iterable[Mapping[str, Any]]) -> tuple[Action, ...]:
    resource = AKS_SCHEDULER_CONFIGURATIONS
    desired = list(profiles)
    if not desired:
        if existing is None or is_being_deleted(existing):
            return ()
        event = Event("SchedulerConfigurationDeleted", f"Deleted {_WHERE}: it has no profiles left")
        return (Delete(resource, existing, (event,)),)
    document = {"apiVersion": API_VERSION, "kind": KIND, "profiles": desired}
    text = yaml_text([document])
    spec = {"rawConfig": text}
    if existing is None:
        return (create(resource, {**new_object(resource, NAME), "spec": spec}, exclusive=True),)
    before = mapping(existing.get("spec"))
    if _document(before.get("rawConfig"), _LONGER * len(text) + _SPARE) == document:
        return ()
    event = Event("SchedulerConfigurationUpdated", f"Updated {_WHERE} because profiles changed")
    return (Replace(resource, {**existing, "spec": {**before, **spec}}, events=(event,)),)


def _document(text: Any, longest: int) -> Any:
    """Decode the configuration in the object; None if it is too long or is not YAML."""
    if not isinstance(text, str) or len(text) > longest:
        return None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None


def _unsupported(name: str, spec: Mapping[str, Any]) -> Iterator[Finding]:
    if scheduler_of(spec) != SCHEDULER:
        return
    if (spec.get("schedulerName") or name) == RESERVED_PROFILE:
        message = f'AKS reserves the profile "{RESERVED_PROFILE}"; use another schedulerName'
        yield PROFILE.finding(name, "ReservedProfile", f"{SPEC}.schedulerName", message)
    for path, _, wrong in unsupported_plugins(spec):
        message = f"{wrong}; remove it, or use a SecondaryScheduler"
        yield PROFILE.finding(name, "PluginNotSupported", f"{SPEC}.{format_path(path)}", message)


def _with_errors(
    result: ProfileResult, unsupported: tuple[Finding, ...], error: str
) -> ProfileResult:
    if unsupported:
        return replace(result, accepted=False, findings=unsupported)
    if error:
        finding = PROFILE.finding(
            result.name, "SyncError", f"{SPEC}.scheduler", f"{_WHERE}: {error}"
        )
        return replace(result, accepted=False, findings=(*result.findings, finding))
    return result


def _refused(
    objects: Iterable[Mapping[str, Any]], reason: str, message: str
) -> Iterator[ProfileResult]:
    for obj in sorted(objects, key=name_of):
        if scheduler_of(mapping(obj.get("spec"))) == SCHEDULER:
            finding = PROFILE.finding(name_of(obj), reason, f"{SPEC}.scheduler", message)
            yield ProfileResult(name_of(obj), False, (finding,))
