"""The SecondaryScheduler that has the settings of Scheduler and KubeScheduler "cluster".

Where the provider runs the control plane's scheduler, this one is in its place: profile, log level
and overrides are the same fields as on every other platform. Users set only the fields that the
operator leaves to them (USERS_FIELDS in config/effective/managed.py). The conditions of
KubeScheduler are about all SecondarySchedulers, whose statuses have the details.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from ...base import names
from ...base.findings import Finding
from ...base.objects import Object, annotation, entries, is_being_deleted, label, mapping, uid_of
from ...base.recognition import Recognition
from ...config.effective.attachment import is_ours
from ...config.effective.control_plane.accepted_settings import AcceptedSettings
from ...config.effective.control_plane.recorded_inputs import read_inputs, record
from ...config.effective.control_plane.scheduler import EffectiveControlPlane
from ...config.effective.facts import Facts
from ...config.effective.managed import USERS_FIELDS, managed_spec, settings_without_effect
from ...config.language.merging.presets import DEFAULT_PROFILE
from ...config.language.versions import Version, version_skew
from ...kube.resource import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    KUBE_SCHEDULERS,
    PODS,
    SECONDARY_SCHEDULERS,
    ObjectRef,
)
from ..model.apply import annotated, create, new_object
from ..model.plan import Action, Delete, Event, Replace
from ..model.pod_status import is_ready
from ..model.snapshot import Snapshot
from ..status.conditions import (
    AS_EXPECTED,
    Condition,
    aggregate,
    condition_in,
    problem_condition,
)
from ..status.placement_check import HELD, SIMULATING
from ..status.running import images_that_run
from .status import new_status, observed_generations

RECORD_BYTES: Final = 128 * 1024
"""The longest record of settings; all annotations of an object may have 256 KiB."""

STATIC_POD_CONDITIONS: Final = frozenset(
    {
        names.ADOPTED_SETTINGS,
        names.ADOPTION_DEGRADED,
        names.GUARD_DEGRADED,
        names.HAND_EDITS,
        names.INSTALLER_POD_PENDING_DEGRADED,
        names.INSTALLER_POD_WAITING_DEGRADED,
        names.NODES_DEGRADED,
        names.NODE_INSTALLER_DEGRADED,
        names.NODE_INSTALLER_PROGRESSING,
        names.PREFLIGHT_DEGRADED,
        names.REVISION_DEGRADED,
        names.STATIC_PODS_AVAILABLE,
        names.STATIC_PODS_DEGRADED,
        names.STATIC_RESOURCES_DEGRADED,
        names.UNKNOWN_LEASE_HOLDER,
    }
)
"""Conditions that an operator on another platform may have left."""

USERS_RECORD: Final = "managedScheduler"
"""The field of KubeScheduler's status with what users set in the object, which outlives it."""

_OWNER: Final = KUBE_SCHEDULERS.named(names.CLUSTER)
_DEFINITION: Final = CUSTOM_RESOURCE_DEFINITIONS.named(SECONDARY_SCHEDULERS.name)

_SHOWN: Final = 5
"""The number of schedulers that a message names."""


@dataclass(frozen=True, slots=True)
class ManagedScheduler:
    action: Action | None = None  # None if it is up to date, or must not be written
    findings: tuple[Finding, ...] = ()  # errors, and settings without effect
    foreign: bool = False  # whether another client created an object of its name


def managed_scheduler(
    snapshot: Snapshot, control_plane: EffectiveControlPlane, facts: Facts
) -> ManagedScheduler:
    """Keep the SecondaryScheduler in its desired state.

    Without a valid configuration, the object does not change.
    """
    name = facts.managed_scheduler
    current = snapshot.secondaries.schedulers.get(name)
    if current is not None and not is_ours(current):
        return ManagedScheduler(findings=(_foreign(name),), foreign=True)
    findings = [*settings_without_effect(control_plane), *_former(snapshot)]
    if not facts.managed_namespace:
        message = (
            "the operator may run schedulers in no namespace; set SECONDARY_NAMESPACES of its "
            "Deployment (Helm: secondarySchedulers.namespaces)"
        )
        findings.append(_error("NoNamespace", f"SecondaryScheduler/{name}", message))
        return ManagedScheduler(findings=tuple(findings))
    if control_plane.composition.blocking or (current and is_being_deleted(current)):
        return ManagedScheduler(None, tuple(findings))
    before = users_fields(snapshot) if current is None else mapping(current.get("spec"))
    spec = managed_spec(control_plane, facts, before)
    objects, settings = control_plane.composition.inputs.objects, control_plane.settings
    own = settings.spec if settings is not None else None
    recorded = record(objects.scheduler, objects.kubescheduler, {}, {}, own)
    recorded = recorded if len(recorded.encode()) <= RECORD_BYTES else ""
    notes = {names.ACCEPTED_SETTINGS_ANNOTATION: recorded}
    action = _write(snapshot, current, name, spec, notes)
    return ManagedScheduler(action, tuple(findings))


def accepted_by(snapshot: Snapshot) -> AcceptedSettings | None:
    """The settings that it was written with; None if their record is lost."""
    name = snapshot.settings.managed_scheduler
    current = snapshot.secondaries.schedulers.get(name)
    if current is None or not is_ours(current):
        return AcceptedSettings()
    inputs = read_inputs(annotation(current, names.ACCEPTED_SETTINGS_ANNOTATION))
    if inputs is None:
        return None
    image = str(mapping(current.get("status")).get("image") or "")
    return AcceptedSettings(1, inputs, image, recorded_in=f'SecondaryScheduler "{name}"')


def managed_name(snapshot: Snapshot) -> str:
    """Its name; empty if the operator has not made it, or the platform has static Pods."""
    name = snapshot.settings.managed_scheduler
    current = snapshot.secondaries.schedulers.get(name)
    ours = current is not None and is_ours(current)
    return name if ours and not snapshot.platform.owns_static_pods else ""


def users_fields(snapshot: Snapshot) -> dict[str, Any]:
    """What users set in it: in the object, or in the record of the last one of its name."""
    name = snapshot.settings.managed_scheduler
    current = snapshot.secondaries.schedulers.get(name)
    if current is not None and is_ours(current):
        fields = mapping(current.get("spec"))
    else:
        recorded = mapping(snapshot.status.get(USERS_RECORD))
        fields = recorded if recorded.get("name") == name else {}
    return {key: fields[key] for key in USERS_FIELDS if key in fields}


def remove_scheduler(snapshot: Snapshot) -> tuple[Action, ...]:
    """Delete it, with everything that belongs to it; one of another client stays."""
    name = managed_name(snapshot)
    current = snapshot.secondaries.schedulers.get(name)
    if current is None or is_being_deleted(current):
        return ()
    message = f"Deleted SecondaryScheduler/{name}: it is Removed"
    if kept := ", ".join(f"spec.{key}" for key in users_fields(snapshot)):
        message += f"; its {kept} will be set again if it is Managed again"
    event = Event("SecondarySchedulerDeleted", message)
    return (Delete(SECONDARY_SCHEDULERS, current, (event,)),)


def _write(
    snapshot: Snapshot,
    current: Object | None,
    name: str,
    spec: Mapping[str, Any],
    notes: Mapping[str, str],
) -> Action | None:
    if current is None:
        made = _owned(new_object(SECONDARY_SCHEDULERS, name, annotations=notes), snapshot)
        created = create(SECONDARY_SCHEDULERS, {**made, "spec": dict(spec)}, exclusive=True)
        if kept := ", ".join(f"spec.{key}" for key in USERS_FIELDS if key in spec):
            message = f"Set {kept} of SecondaryScheduler/{name} as users had set it before"
            created = replace(created, events=(*created.events, Event("SettingsRestored", message)))
        return created
    before, noted = mapping(current.get("spec")), _owned(annotated(current, notes), snapshot)
    if spec == before and noted == current:
        return None
    changed = sorted(key for key in {*before, *spec} if before.get(key) != spec.get(key))
    event = Event(
        "SecondarySchedulerUpdated", f"Updated SecondaryScheduler/{name}: {', '.join(changed)}"
    )
    events = (event,) if changed else ()
    return Replace(SECONDARY_SCHEDULERS, {**noted, "spec": spec}, events=events)


def _owned(obj: Object, snapshot: Snapshot) -> Object:
    """The object with its owners: KubeScheduler, and the definition of its own kind.

    The first one shows in the trees of tools what it is made of. The second one exists for as long
    as the object can: with it, the garbage collector only removes a reference to a KubeScheduler
    that was deleted, and the scheduler keeps running. So the first one is never alone.
    """
    metadata = obj["metadata"]
    found = list(entries(metadata.get("ownerReferences")))
    known = {one.get("uid") for one in found if _names(one, _DEFINITION)}
    uid = snapshot.secondary_kind_uid or "".join(sorted(filter(None, known))[:1])
    owner = snapshot.kubescheduler or {"metadata": {}}
    if uid and is_being_deleted(owner):
        return obj  # the garbage collector removes the reference
    owners = [one for one in found if not (_names(one, _OWNER) or _names(one, _DEFINITION))]
    if uid and uid_of(owner):
        owners.append(KUBE_SCHEDULERS.owner(_OWNER.name, uid_of(owner), controller=False))
        owners.append(CUSTOM_RESOURCE_DEFINITIONS.owner(_DEFINITION.name, uid, controller=False))
    if owners == found:
        return obj
    return {**obj, "metadata": {**metadata, "ownerReferences": owners}}


def _names(reference: Mapping[str, Any], ref: ObjectRef) -> bool:
    kind, api_version = ref.resource.kind, str(reference.get("apiVersion"))
    of_kind = reference.get("kind") == kind and api_version.startswith(f"{ref.resource.group}/")
    return of_kind and reference.get("name") == ref.name


def _former(snapshot: Snapshot) -> Iterator[Finding]:
    """Findings about schedulers with an earlier MANAGED_SCHEDULER, which Pods may still select."""
    current = snapshot.settings.managed_scheduler
    for name, obj in sorted(snapshot.secondaries.schedulers.items()):
        if name != current and is_ours(obj) and not is_being_deleted(obj):
            message = (
                f'the operator made this object before MANAGED_SCHEDULER became "{current}", so no '
                "setting of Scheduler and KubeScheduler reaches it; when no Pod has the "
                f"schedulerName any more: kubectl delete secondaryscheduler {name}, or keep it as "
                f"your own: kubectl label secondaryscheduler {name} {names.MANAGED_BY_LABEL}-"
            )
            path = f"SecondaryScheduler/{name}"
            yield Finding(names.INEFFECTIVE_SETTINGS, "FormerName", path, message, blocking=False)


def _foreign(name: str) -> Finding:
    message = (
        "another client made this object, so the operator does not change it, and the settings of "
        "Scheduler and KubeScheduler have no effect; delete it, or set MANAGED_SCHEDULER of the "
        "operator's Deployment (Helm: managedScheduler) to another name, or hand it over: kubectl "
        f"label secondaryscheduler {name} {names.MANAGED_BY_LABEL}={names.PROGRAM}"
    )
    return _error("NotOurs", f"SecondaryScheduler/{name}", message)


def _error(reason: str, path: str, message: str) -> Finding:
    return Finding(names.TARGET_CONFIG_DEGRADED, reason, path, message, blocking=True)


# --- the conditions of KubeScheduler -----------------------------------------------------------


def who_manages(snapshot: Snapshot) -> str:
    decided = snapshot.decision
    return (decided.used if decided else Recognition(snapshot.platform)).summary


def platform_condition(snapshot: Snapshot) -> tuple[Condition, ...]:
    """Whether detection now finds another platform than the one in use, and which is used."""
    decided = snapshot.decision
    if decided is None:
        return ()
    if decided.disagreement:
        text = decided.disagreement
        return (Condition(names.PLATFORM_CHANGED, "True", "DetectionDiffers", text),)
    platform, reason = decided.platform, decided.used.reason
    who = "" if platform.owns_static_pods else f": {decided.used.summary}"
    message = f"platform {platform.name}{who} ({reason})"
    if decided.open and decided.unanswered:
        message += f"; the provider's name is unknown, because {'; '.join(decided.unanswered)}"
    return (Condition(names.PLATFORM_CHANGED, "False", AS_EXPECTED, message),)


def _alive(snapshot: Snapshot) -> dict[str, Object]:
    schedulers = sorted(snapshot.secondaries.schedulers.items())
    return {name: obj for name, obj in schedulers if not is_being_deleted(obj)}


def removal_conditions(snapshot: Snapshot) -> tuple[Condition, ...]:
    """The conditions while it is being removed, and afterwards; other schedulers stay."""
    own, moving = managed_name(snapshot), names.SCHEDULERS_PROGRESSING
    others = {name: obj for name, obj in _alive(snapshot).items() if name != own}
    if own:
        message = f'SecondaryScheduler "{own}" is being deleted'
        progress = Condition(moving, "True", "Removing", message)
    else:
        name = snapshot.settings.managed_scheduler
        message = f'SecondaryScheduler "{name}" of the operator is removed'
        if others:
            message += f"; those of users stay: {_shown(list(others))}"
        progress = Condition(moving, "False", "Removed", message)
    available = (_available(snapshot, others),) if others else ()
    return (progress, *available, skew_condition(snapshot, others))


def scheduler_conditions(snapshot: Snapshot) -> tuple[Condition, ...]:
    schedulers = _alive(snapshot)
    return (
        _available(snapshot, schedulers),
        _progressing(schedulers),
        skew_condition(snapshot, schedulers),
    )


def _available(snapshot: Snapshot, schedulers: Mapping[str, Object]) -> Condition:
    type_, who = names.SCHEDULERS_AVAILABLE, who_manages(snapshot)
    if not schedulers:
        message = f"{who}; there is no SecondaryScheduler"
        return Condition(type_, "False", "NoScheduler", message)
    bad = [
        f'SecondaryScheduler "{name}" does not schedule: {_message(available)}'
        for name, obj in schedulers.items()
        if (available := _condition(obj, names.AVAILABLE)).get("status") != "True"
    ]
    if bad:
        return Condition(type_, "False", "SchedulerNotAvailable", f"{who}; {aggregate(bad)}")
    return Condition(type_, "True", AS_EXPECTED, f"{who}; {_listed(snapshot, schedulers)}")


def _listed(snapshot: Snapshot, schedulers: Mapping[str, Object]) -> str:
    own, profile = managed_name(snapshot), _running_profile(snapshot)
    texts = [f"{n} (profile {profile})" if n == own and profile else n for n in schedulers]
    verb = "schedules" if len(schedulers) == 1 else "schedule"
    return f"{_shown(texts)} {verb}"


def _shown(texts: Sequence[str]) -> str:
    more = [f"{len(texts) - _SHOWN} more"] if len(texts) > _SHOWN else []
    return ", ".join([*texts[:_SHOWN], *more])


def _running_profile(snapshot: Snapshot) -> str:
    """The profile that every Ready Pod of it runs; empty if they differ or it is unknown.

    The ConfigMap that a Pod runs has a record of the settings that it was made of.
    """
    objects = snapshot.secondaries.objects.get(managed_name(snapshot), {})
    hashes = {
        label(pod, names.CONFIG_HASH_LABEL)
        for pod in objects.get(PODS, {}).values()
        if is_ready(pod)
    }
    profiles = set()
    for config_map in objects.get(CONFIG_MAPS, {}).values():
        if label(config_map, names.CONFIG_HASH_LABEL) in hashes:
            inputs = read_inputs(annotation(config_map, names.ACCEPTED_SETTINGS_ANNOTATION))
            used = str(inputs.scheduler.get("profile") or DEFAULT_PROFILE) if inputs else ""
            profiles.add(used)
    return profiles.pop() if len(profiles) == 1 and len(hashes) == 1 else ""


def _progressing(schedulers: Mapping[str, Object]) -> Condition:
    moving = [
        (str(progress.get("reason") or "RollingOut"), f"{name}: {_message(progress)}")
        for name, obj in schedulers.items()
        if (progress := _condition(obj, names.PROGRESSING)).get("status") == "True"
        and progress.get("reason") not in (HELD, SIMULATING)  # which are in conditions of their own
    ]
    return problem_condition(names.SCHEDULERS_PROGRESSING, moving)


def _condition(obj: Object, type_: str) -> Mapping[str, Any]:
    return condition_in(mapping(obj.get("status")), type_)


def _message(condition: Mapping[str, Any]) -> str:
    return str(condition.get("message") or condition.get("reason") or "it has no status yet")


def skew_condition(snapshot: Snapshot, schedulers: Mapping[str, Object]) -> Condition:
    type_ = names.VERSION_SKEW
    problems = []
    for name, obj in schedulers.items():
        for image in images_that_run(obj):
            with suppress(ValueError):
                version, server = Version.of_image(image), Version.parse(snapshot.server_version)
                if problem := version_skew(version, server):
                    problems.append(("NotSupported", f"{name}: {problem}"))
    if problems:
        return problem_condition(type_, problems)
    message = f"the API server is {snapshot.server_version}"
    if snapshot.newer_version:
        message += (
            f"; some API servers are {snapshot.newer_version} already, and schedulers follow when "
            "none is older"
        )
    return Condition(type_, "False", AS_EXPECTED, message)


def managed_status(snapshot: Snapshot, conditions: Sequence[Condition]) -> dict[str, Any]:
    schedulers = snapshot.secondaries.schedulers.values()
    status = new_status(
        snapshot,
        conditions,
        without=STATIC_POD_CONDITIONS,
        **observed_generations(snapshot),
        nodeStatuses=[],
        readyReplicas=sum(
            int(mapping(obj.get("status")).get("readyReplicas") or 0) for obj in schedulers
        ),
        version=snapshot.settings.operator_version,
    )
    status.pop(USERS_RECORD, None)
    if fields := users_fields(snapshot):
        status[USERS_RECORD] = {"name": snapshot.settings.managed_scheduler, **fields}
    return status
