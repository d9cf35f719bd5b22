"""SchedulerProfiles of AKS' own scheduler, which reads them from one object in the API.

The object is SchedulerConfiguration "upstream" (aks.azure.com/v1alpha1, preview) with a
KubeSchedulerConfiguration as text. Sources: Microsoft's articles "Configure advanced scheduler
profiles on AKS (preview)" and "Scheduler configuration concepts" (MicrosoftDocs/azure-aks-docs at
fb060ab, 2026-08-21). They name the fields that users configure, 18 in-tree plugins, the object's
name and the reserved profile. The schema of the CRD is not public, so its status is not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import yaml

from ..base import names
from ..base.findings import Finding
from ..base.objects import Object, label, mapping
from ..kube.resource import AKS_SCHEDULER_CONFIGURATIONS, ObjectRef
from ..model.attachment import (
    PROFILE,
    SPEC,
    last_accepted,
    name_of,
    scheduler_of,
    schedulers_of,
)
from ..model.plan import Action, Create, Delete, Event, Replace
from ..model.snapshot import Snapshot
from ..schedulerconfig.schema import API_VERSION, KIND
from ..schedulerconfig.validation import Target
from ..schedulerconfig.yaml_text import yaml_text
from .aks_support import NAME, PLUGINS, RESERVED_PROFILE
from .validate import ProfileResult, validate_profiles

SCHEDULER: Final = "aks"
"""The reserved `spec.scheduler`."""

REF: Final[ObjectRef] = AKS_SCHEDULER_CONFIGURATIONS.named(NAME)
_WHERE: Final = f"SchedulerConfiguration/{NAME}"
_ENABLE: Final = "az aks update --enable-upstream-kubescheduler-user-configuration"


@dataclass(frozen=True, slots=True)
class AksProfiles:
    """The profiles in AKS' own scheduler."""

    results: tuple[ProfileResult, ...] = ()  # the results for the SchedulerProfiles that name it
    actions: tuple[Action, ...] = ()  # the writes that bring its object up to date
    # the schedulerNames that it serves because of them
    scheduler_names: tuple[str, ...] = field(default=())


_LONGER, _SPARE = 4, 16 * 1024
"""A text that is longer than ours by these (a factor, and characters of comments) is another one,
and is not decoded, which takes a second for a MiB of YAML."""


def aks_profiles(snapshot: Snapshot, target: Target, taken: Mapping[str, str]) -> AksProfiles:
    """Keep SchedulerProfiles with `spec.scheduler: aks` in the object.

    `taken` has the other schedulers by the schedulerNames that they serve. A SecondaryScheduler of
    the reserved name has its profiles instead.
    """
    if SCHEDULER in snapshot.secondaries.schedulers:
        return AksProfiles()
    objects = (snapshot.scheduler_profiles or {}).values()
    mine = [obj for obj in objects if SCHEDULER in schedulers_of(obj)]
    if snapshot.aks_configurations is None:
        return AksProfiles(tuple(_refused(mine, "NotServed", _not_served())))
    found = snapshot.aks_configurations.get(NAME)
    if found is not None and not _is_ours(found):
        return AksProfiles(tuple(_refused(mine, "NotOurs", _foreign())))
    bad = {name_of(obj): tuple(_unsupported(name_of(obj), mapping(obj["spec"]))) for obj in mine}
    candidates: list[Object] = []
    unusable = []
    for obj in mine:
        if not bad[name_of(obj)]:
            candidates.append(obj)
        elif (accepted := last_accepted(obj)) is not None:
            candidates.append({**obj, "spec": accepted})
        else:
            unusable.append(ProfileResult(name_of(obj), False, bad[name_of(obj)]))
    profiles, results = validate_profiles(SCHEDULER, candidates, {}, target, taken=taken)
    error = snapshot.write_errors.get(REF, "")
    reported = (*(_noted(result, bad[result.name], error) for result in results), *unusable)
    return AksProfiles(
        reported,
        _writes(found, profiles),
        tuple(str(profile["schedulerName"]) for profile in profiles),
    )


def remove_aks_profiles(snapshot: Snapshot) -> tuple[Action, ...]:
    """Delete the object, unless it is another client's."""
    found = (snapshot.aks_configurations or {}).get(NAME)
    return _writes(found, ()) if found is not None and _is_ours(found) else ()


def _is_ours(obj: Object) -> bool:
    return label(obj, names.MANAGED_BY_LABEL) == names.PROGRAM


def _writes(found: Object | None, profiles: Iterable[Mapping[str, Any]]) -> tuple[Action, ...]:
    resource = AKS_SCHEDULER_CONFIGURATIONS
    wanted = list(profiles)
    if not wanted:
        if found is None or "deletionTimestamp" in found["metadata"]:
            return ()
        gone = Event(
            "SchedulerConfigurationDeleted", f"Deleted {_WHERE}: it has no profile any more"
        )
        return (Delete(resource, found, (gone,)),)
    document = {"apiVersion": API_VERSION, "kind": KIND, "profiles": wanted}
    text = yaml_text([document])
    spec = {"rawConfig": text}
    if found is None:
        made = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": NAME, "labels": dict(names.OWN_LABELS)},
            "spec": spec,
        }
        event = Event("SchedulerConfigurationCreated", f"Created {_WHERE} because it was missing")
        return (Create(resource, made, (event,), exclusive=True),)
    before = mapping(found.get("spec"))
    if _document(before.get("rawConfig"), _LONGER * len(text) + _SPARE) == document:
        return ()
    event = Event("SchedulerConfigurationUpdated", f"Updated {_WHERE} because profiles changed")
    return (Replace(resource, {**found, "spec": {**before, **spec}}, events=(event,)),)


def _document(text: Any, longest: int) -> Any:
    """The configuration in the object; None if it is not one. Its formatting does not matter."""
    if not isinstance(text, str) or len(text) > longest:
        return None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None


def _unsupported(name: str, spec: Mapping[str, Any]) -> Iterator[Finding]:
    """What AKS does not document as configurable."""
    if scheduler_of(spec) != SCHEDULER:
        return
    if (spec.get("schedulerName") or name) == RESERVED_PROFILE:
        message = f'AKS reserves the profile "{RESERVED_PROFILE}"; use another schedulerName'
        yield PROFILE.finding(name, "ReservedProfile", f"{SPEC}.schedulerName", message)
    for path, plugin in _plugins(spec):
        if plugin not in PLUGINS and plugin != "*":
            message = (
                f"{plugin} is not one of the {len(PLUGINS)} plugins that AKS documents as "
                "configurable; remove it, or use a SecondaryScheduler"
            )
            yield PROFILE.finding(name, "PluginNotSupported", f"{SPEC}.{path}", message)


def _plugins(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(path, name) of each plugin in a profile."""
    for point, lists in mapping(spec.get("plugins")).items():
        for key in ("enabled", "disabled"):
            entries = mapping(lists).get(key)
            for at, each in enumerate(entries if isinstance(entries, list) else ()):
                yield f"plugins.{point}.{key}[{at}].name", str(mapping(each).get("name"))
    arguments = spec.get("pluginConfig")
    for at, each in enumerate(arguments if isinstance(arguments, list) else ()):
        yield f"pluginConfig[{at}].name", str(mapping(each).get("name"))


def _noted(result: ProfileResult, bad: tuple[Finding, ...], error: str) -> ProfileResult:
    if bad:
        return replace(result, accepted=False, findings=bad)
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


def _not_served() -> str:
    kind = AKS_SCHEDULER_CONFIGURATIONS
    return (
        f"the API server has no kind {kind.kind} of {kind.api_version}; on AKS, enable it: "
        f'{_ENABLE} (preview); elsewhere, remove the field, or create SecondaryScheduler "aks"'
    )


def _foreign() -> str:
    return (
        f"another client made {_WHERE}, so the operator does not change it; delete it, or hand it "
        f"over: kubectl label schedulerconfiguration {NAME} "
        f"{names.MANAGED_BY_LABEL}={names.PROGRAM}"
    )
