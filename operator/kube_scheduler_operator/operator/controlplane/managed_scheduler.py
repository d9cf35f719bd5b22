"""The SecondaryScheduler that has the settings of Scheduler and KubeScheduler "cluster".

Where the provider runs the control plane's scheduler, this one is in its place: profile, log level
and overrides are the same fields as on every other platform. Users set only the fields that the
operator leaves to them (USERS_FIELDS in config/effective/managed.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...base import names
from ...base.findings import Finding
from ...base.objects import Object, annotation, is_being_deleted, mapping
from ...config.effective.control_plane.accepted_settings import AcceptedSettings
from ...config.effective.control_plane.recorded_inputs import read_inputs, record
from ...config.effective.control_plane.scheduler import EffectiveControlPlane
from ...config.effective.facts import Facts
from ...config.effective.managed import managed_spec, settings_without_effect
from ...config.effective.pipeline import is_ours
from ...kube.resource import SECONDARY_SCHEDULERS
from ..model.apply import create, new_object
from ..model.plan import Action, Delete, Event, Replace
from ..model.snapshot import Snapshot

RECORD_BYTES: Final = 128 * 1024
"""The longest record of settings; all annotations of an object may have 256 KiB."""


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
    spec = managed_spec(control_plane, facts, mapping(mapping(current).get("spec")))
    objects, settings = control_plane.composition.inputs.objects, control_plane.settings
    own = settings.spec if settings is not None else None
    recorded = record(objects.scheduler, objects.kubescheduler, {}, {}, own)
    recorded = recorded if len(recorded.encode()) <= RECORD_BYTES else ""
    return ManagedScheduler(_write(current, name, spec, recorded), tuple(findings))


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


def remove_scheduler(snapshot: Snapshot) -> tuple[Action, ...]:
    """Delete it, with everything that belongs to it; one of another client stays."""
    name = snapshot.settings.managed_scheduler
    current = snapshot.secondaries.schedulers.get(name)
    if current is None or not is_ours(current) or is_being_deleted(current):
        return ()
    event = Event("SecondarySchedulerDeleted", f"Deleted SecondaryScheduler/{name}: it is Removed")
    return (Delete(SECONDARY_SCHEDULERS, current, (event,)),)


def _write(
    current: Object | None, name: str, spec: Mapping[str, Any], settings: str
) -> Action | None:
    notes = {names.ACCEPTED_SETTINGS_ANNOTATION: settings}
    if current is None:
        made = new_object(SECONDARY_SCHEDULERS, name, annotations=notes)
        return create(SECONDARY_SCHEDULERS, {**made, "spec": dict(spec)}, exclusive=True)
    before, metadata = mapping(current.get("spec")), current["metadata"]
    noted = {**metadata, "annotations": {**(metadata.get("annotations") or {}), **notes}}
    if spec == before and noted == metadata:
        return None
    changed = sorted(key for key in {*before, *spec} if before.get(key) != spec.get(key))
    event = Event(
        "SecondarySchedulerUpdated", f"Updated SecondaryScheduler/{name}: {', '.join(changed)}"
    )
    obj = {**current, "metadata": noted, "spec": spec}
    return Replace(SECONDARY_SCHEDULERS, obj, events=(event,) if changed else ())


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
