"""The SecondaryScheduler that has the settings of Scheduler and KubeScheduler "cluster".

Where the provider runs the control plane's scheduler, this one is in its place: profile, log level
and overrides are the same fields as on every other platform. Users set nothing in it but what the
operator does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..base import names
from ..base.findings import Finding, format_path
from ..base.objects import Object, annotation, label, mapping
from ..effective.control_plane.accepted_settings import AcceptedSettings
from ..effective.control_plane.base_configuration import Base
from ..effective.control_plane.compose import Composition
from ..effective.control_plane.overrides import ARGUMENTS, ROOT, SERVING_FLAGS
from ..effective.control_plane.recorded_inputs import read_inputs, record
from ..kube.resource import SECONDARY_SCHEDULERS
from ..model.plan import Action, Create, Delete, Event, Replace
from ..model.snapshot import Snapshot
from ..operatorsettings.validate import SettingsResult
from ..schedulerconfig.feature_gates import FLAG as FEATURE_GATES
from ..schedulerconfig.feature_gates import parse_gates
from ..schedulerconfig.go_values import without_nulls
from ..schedulerconfig.schema import DEFAULT_SCHEDULER
from .requested_settings import requested_by

USERS_FIELDS: Final = ("assign",)
"""Fields of its spec that belong to users."""

REPLICAS: Final = 2

RECORD_BYTES: Final = 128 * 1024
"""The longest record of settings; all annotations of an object have at most 256 KiB."""

_ELECTION_FLAGS: Final = {
    "leader-elect-lease-duration": "leaseDuration",
    "leader-elect-renew-deadline": "renewDeadline",
    "leader-elect-retry-period": "retryPeriod",
}


@dataclass(frozen=True, slots=True)
class Permitted:
    """What a SecondaryScheduler may set.

    Attributes:
        settings: the fields of `spec.config`.
        connection: the fields of its `clientConnection`.
        reserved: flags that it may not set, and why.
        resources: the default resources of its container.
    """

    settings: tuple[str, ...]
    connection: tuple[str, ...]
    reserved: Mapping[str, str]
    resources: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ManagedScheduler:
    """The desired SecondaryScheduler.

    Attributes:
        action: the write that brings it up to date; None if it is, or must not be written.
        findings: errors, and settings without effect.
        foreign: whether another client made an object of its name.
    """

    action: Action | None = None
    findings: tuple[Finding, ...] = ()
    foreign: bool = False


def managed_scheduler(
    snapshot: Snapshot,
    base: Base,
    composition: Composition,
    permitted: Permitted,
    operator_settings: SettingsResult | None = None,
    image: str = "",
) -> ManagedScheduler:
    """Keep the SecondaryScheduler in its desired state.

    `snapshot` has the settings in effect; `image` is set if they are not valid for the default one.
    Without a valid configuration it stays as it is.
    """
    name = snapshot.settings.managed_scheduler
    found = snapshot.secondaries.schedulers.get(name)
    if found is not None and not is_ours(found):
        return ManagedScheduler(findings=(_foreign(name),), foreign=True)
    findings = [*_ineffective(base, permitted), *_former(snapshot)]
    namespace = _namespace(snapshot)
    if not namespace:
        message = (
            "the operator may run schedulers in no namespace; set SECONDARY_NAMESPACES of its "
            "Deployment (Helm: secondarySchedulers.namespaces)"
        )
        findings.append(_error("NoNamespace", f"SecondaryScheduler/{name}", message))
        return ManagedScheduler(findings=tuple(findings))
    leaving = "deletionTimestamp" in mapping(mapping(found).get("metadata"))
    if composition.blocking or leaving:
        return ManagedScheduler(None, tuple(findings))
    spec = desired_spec(snapshot, base, composition, permitted, namespace, operator_settings)
    spec |= {"image": image} if image else {}
    own = operator_settings.spec if operator_settings is not None else None
    settings = record(snapshot.scheduler, snapshot.kubescheduler, {}, {}, own)
    settings = settings if len(settings.encode()) <= RECORD_BYTES else ""
    return ManagedScheduler(_write(found, name, spec, settings), tuple(findings))


def accepted_by(snapshot: Snapshot) -> AcceptedSettings | None:
    """The settings that it was written with; None if it has lost their record."""
    name = snapshot.settings.managed_scheduler
    found = snapshot.secondaries.schedulers.get(name)
    if found is None or not is_ours(found):
        return AcceptedSettings()
    inputs = read_inputs(annotation(found, names.ACCEPTED_SETTINGS_ANNOTATION))
    if inputs is None:
        return None
    image = str(mapping(found.get("status")).get("image") or "")
    return AcceptedSettings(1, inputs, image, recorded_in=f'SecondaryScheduler "{name}"')


def desired_spec(
    snapshot: Snapshot,
    base: Base,
    composition: Composition,
    permitted: Permitted,
    namespace: str,
    operator_settings: SettingsResult | None = None,
) -> dict[str, Any]:
    """The operator's fields of its spec."""
    config = mapping(composition.config)
    settings = {key: config[key] for key in permitted.settings if key in config}
    settings["clientConnection"] = {
        key: value
        for key, value in mapping(settings.get("clientConnection")).items()
        if key in permitted.connection
    }
    settings["leaderElection"] = _timings(base)
    gates = parse_gates(base.flags.get(FEATURE_GATES, ()))
    pods = requested_by(operator_settings)
    spec = {
        "namespace": namespace,
        "replicas": REPLICAS,
        "logLevel": snapshot.spec.get("logLevel") or "Normal",
        "config": without_nulls({key: value for key, value in settings.items() if value != {}}),
        "profiles": _profiles(config, snapshot.settings.managed_scheduler),
        "featureGates": dict(gates),
        "extraArguments": _arguments(base, permitted),
        "forceRedeploymentReason": str(snapshot.spec.get("forceRedeploymentReason") or ""),
        "resources": pods.resources_over(permitted.resources) if pods.resources else {},
        "priorityClassName": pods.priority_class_name,
    }
    return {key: value for key, value in spec.items() if value not in ({}, [], "")}


def is_ours(obj: Object) -> bool:
    """Whether the operator made a SecondaryScheduler."""
    return label(obj, names.MANAGED_BY_LABEL) == names.PROGRAM


def remove_scheduler(snapshot: Snapshot) -> tuple[Action, ...]:
    """Delete it, with everything that belongs to it; one of another client stays."""
    name = snapshot.settings.managed_scheduler
    found = snapshot.secondaries.schedulers.get(name)
    if found is None or not is_ours(found) or "deletionTimestamp" in found["metadata"]:
        return ()
    event = Event("SecondarySchedulerDeleted", f"Deleted SecondaryScheduler/{name}: it is Removed")
    return (Delete(SECONDARY_SCHEDULERS, found, (event,)),)


def _write(
    found: Object | None, name: str, spec: Mapping[str, Any], settings: str
) -> Action | None:
    notes = {names.ACCEPTED_SETTINGS_ANNOTATION: settings}
    where = f"SecondaryScheduler/{name}"
    if found is None:
        made = {
            "apiVersion": SECONDARY_SCHEDULERS.api_version,
            "kind": SECONDARY_SCHEDULERS.kind,
            "metadata": {"name": name, "labels": dict(names.OWN_LABELS), "annotations": notes},
            "spec": dict(spec),
        }
        event = Event("SecondarySchedulerCreated", f"Created {where} because it was missing")
        return Create(SECONDARY_SCHEDULERS, made, (event,), exclusive=True)
    before = mapping(found.get("spec"))
    after = {**spec, **{key: before[key] for key in USERS_FIELDS if key in before}}
    # The namespace cannot be changed: another one means another scheduler.
    after["namespace"] = before.get("namespace") or spec["namespace"]
    metadata = found["metadata"]
    noted = {**metadata, "annotations": {**(metadata.get("annotations") or {}), **notes}}
    if after == before and noted == metadata:
        return None
    changed = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
    event = Event("SecondarySchedulerUpdated", f"Updated {where}: {', '.join(changed)}")
    obj = {**found, "metadata": noted, "spec": after}
    return Replace(SECONDARY_SCHEDULERS, obj, events=(event,) if changed else ())


def _namespace(snapshot: Snapshot) -> str:
    """The target namespace if schedulers may run there, else the first one where they may."""
    allowed = snapshot.platform.secondary_namespaces(snapshot.settings.secondary_namespaces)
    target = snapshot.platform.target_namespace
    return target if target in allowed else next(iter(allowed), "")


def _profiles(config: Mapping[str, Any], name: str) -> list[Any]:
    """The profiles; the provider serves default-scheduler, so that one is `name`, and the first."""
    renamed = [
        {**profile, "schedulerName": name}
        if (profile.get("schedulerName") or DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER
        else profile
        for profile in config.get("profiles") or ()
    ]
    return sorted(renamed, key=lambda profile: profile["schedulerName"] != name)


def _timings(base: Base) -> dict[str, Any]:
    """The timings that users set, as a field or as a flag; flags win."""
    election = mapping(base.overrides.config.get("leaderElection"))
    timings = {key: election[key] for key in _ELECTION_FLAGS.values() if election.get(key)}
    for flag, key in _ELECTION_FLAGS.items():
        if values := base.overrides.arguments.get(flag):
            timings[key] = values[-1]
    return timings


def _arguments(base: Base, permitted: Permitted) -> dict[str, str]:
    """Users' flags, and those of the TLS profile; the others are the SecondaryScheduler's own."""
    users = (*base.overrides.arguments, *SERVING_FLAGS.values())
    return {
        flag: ",".join(values)
        for flag, values in sorted(base.flags.items())
        if flag in users and values and not _is_reserved(flag, permitted)
    }


def _is_reserved(flag: str, permitted: Permitted) -> bool:
    return flag in permitted.reserved or flag.startswith("leader-elect")


def _ineffective(base: Base, permitted: Permitted) -> Iterator[Finding]:
    for flag, values in base.overrides.arguments.items():
        why = permitted.reserved.get(flag, "")
        if values and why and flag != FEATURE_GATES:
            path = format_path((*ROOT, ARGUMENTS, flag))
            message = f"this flag has no effect on this platform: {why}; remove it"
            yield Finding(names.INEFFECTIVE_SETTINGS, "NotSupported", path, message, blocking=False)


def _former(snapshot: Snapshot) -> Iterator[Finding]:
    """The notes on those that it made under other names, which Pods may still select."""
    current = snapshot.settings.managed_scheduler
    for name, obj in sorted(snapshot.secondaries.schedulers.items()):
        if name != current and is_ours(obj) and "deletionTimestamp" not in obj["metadata"]:
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
