"""The SecondaryScheduler that has the settings of Scheduler and KubeScheduler.

It replaces the control plane's scheduler where the provider runs that scheduler. SchedulerProfiles
and SchedulerExtenders without `spec.scheduler` belong to it: they are validated as if they named
it, and reported as their users wrote them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from ...base import names
from ...base.findings import Finding, format_path
from ...base.go_values import without_nulls
from ...base.objects import Object, mapping
from ..language.feature_gates import FLAG as FEATURE_GATES
from ..language.feature_gates import parse_gates
from ..language.flags import ELECTION_FLAGS
from ..language.schema import DEFAULT_SCHEDULER
from .attachment import (
    CONTROL_PLANE,
    PROFILE,
    SPEC,
    ValidationResult,
    last_accepted,
    name_of,
    scheduler_of,
)
from .control_plane.base_configuration import Base
from .control_plane.overrides import ARGUMENTS, ROOT, SERVING_FLAGS
from .control_plane.scheduler import EffectiveControlPlane
from .facts import Facts
from .objects import Objects
from .profiles.validate import ProfileResult
from .secondary.compose import CONNECTION, ELECTION, RESERVED, SETTINGS
from .secondary.request import DEFAULT_RESOURCES

REPLICAS: Final = 2
USERS_FIELDS: Final = ("assign",)
"""Fields of its spec that belong to users."""

RENAMED: Final = "SchedulerNameReplaced"

Result = TypeVar("Result", bound=ValidationResult)


def managed_spec(
    control_plane: EffectiveControlPlane, facts: Facts, before: Mapping[str, Any]
) -> dict[str, Any]:
    """Return its spec with the settings; `before` is its current spec, empty without one."""
    base, spec = control_plane.composition.base, control_plane.composition.inputs.spec
    config = mapping(control_plane.composition.config)
    settings = {key: config[key] for key in SETTINGS if key in config}
    settings["clientConnection"] = {
        key: value
        for key, value in mapping(settings.get("clientConnection")).items()
        if key in CONNECTION
    }
    settings["leaderElection"] = _timings(base)
    gates = parse_gates(base.flags.get(FEATURE_GATES, ()))
    pods = control_plane.pods
    managed = {
        # It cannot be changed: another one means another scheduler.
        "namespace": before.get("namespace") or facts.managed_namespace,
        "replicas": REPLICAS,
        "logLevel": spec.get("logLevel") or "Normal",
        "config": without_nulls({key: value for key, value in settings.items() if value != {}}),
        "profiles": _profiles(config, facts.managed_scheduler),
        "featureGates": dict(gates),
        "extraArguments": _arguments(base),
        "forceRedeploymentReason": str(spec.get("forceRedeploymentReason") or ""),
        "resources": pods.resources_over(DEFAULT_RESOURCES) if pods.resources else {},
        "priorityClassName": pods.priority_class_name,
        # An older image than the default one, while the settings are not valid for the default.
        "image": control_plane.image if control_plane.image != facts.image else "",
    }
    users = {key: before[key] for key in USERS_FIELDS if key in before}
    return {**{key: value for key, value in managed.items() if value not in ({}, [], "")}, **users}


def settings_without_effect(control_plane: EffectiveControlPlane) -> Iterator[Finding]:
    """Warn about flags that a SecondaryScheduler cannot have."""
    for flag, values in control_plane.composition.base.overrides.arguments.items():
        why = RESERVED.get(flag, "")
        if values and why and flag != FEATURE_GATES:
            path = format_path((*ROOT, ARGUMENTS, flag))
            message = f"this flag has no effect on this platform: {why}; remove it"
            yield Finding(names.INEFFECTIVE_SETTINGS, "NotSupported", path, message, blocking=False)


def _profiles(config: Mapping[str, Any], name: str) -> list[Any]:
    """Rename default-scheduler's profile, whose name the provider serves, and put it first."""
    renamed = [
        {**profile, "schedulerName": name}
        if (profile.get("schedulerName") or DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER
        else profile
        for profile in config.get("profiles") or ()
    ]
    return sorted(renamed, key=lambda profile: profile["schedulerName"] != name)


def _timings(base: Base) -> dict[str, Any]:
    """Return the timings that users set in a field or a flag; flags take precedence."""
    election = mapping(base.overrides.config.get("leaderElection"))
    timings = {key: election[key] for key in ELECTION_FLAGS if election.get(key)}
    for key, flag in ELECTION_FLAGS.items():
        if values := base.overrides.arguments.get(flag):
            timings[key] = values[-1]
    return timings


def _arguments(base: Base) -> dict[str, str]:
    """Return users' flags and those of the TLS profile; a SecondaryScheduler sets the others."""
    users = (*base.overrides.arguments, *SERVING_FLAGS.values())
    return {
        flag: ",".join(values)
        for flag, values in sorted(base.flags.items())
        if flag in users and values and flag not in RESERVED and not flag.startswith(ELECTION)
    }


def moved_objects(objects: Objects, name: str) -> Objects:
    """Move the control plane's SchedulerProfiles and SchedulerExtenders to a SecondaryScheduler."""
    return replace(
        objects,
        profiles=_moved(objects.profiles, name, DEFAULT_SCHEDULER),
        extenders=_moved(objects.extenders, name),
    )


def _moved(
    objects: tuple[Object, ...] | None, scheduler: str, default: str = ""
) -> tuple[Object, ...] | None:
    """The objects as objects of `scheduler`; the schedulerName `default` becomes its name."""
    return (
        None if objects is None else tuple(_redirected(obj, scheduler, default) for obj in objects)
    )


def _redirected(obj: Object, scheduler: str, default: str) -> Object:
    spec, accepted = mapping(obj.get("spec")), last_accepted(obj)
    changed = {**obj, "spec": _redirected_spec(name_of(obj), spec, scheduler, default)}
    if accepted is not None:
        moved = _redirected_spec(name_of(obj), accepted, scheduler, default)
        changed["status"] = {**mapping(obj.get("status")), "accepted": moved}
    return changed


def _redirected_spec(
    name: str, spec: Mapping[str, Any], scheduler: str, default: str
) -> Mapping[str, Any]:
    if scheduler_of(spec) != CONTROL_PLANE:
        return spec
    moved = {**spec, "scheduler": scheduler}
    if default and (spec.get("schedulerName") or name) == default:
        moved["schedulerName"] = scheduler
    return moved


def as_written(result: Result, objects: Mapping[str, Object]) -> Result:
    """The result for an object that was moved, with the spec as its users wrote it."""
    if result.spec is None:
        return result
    obj = objects[result.name]
    written = obj.get("spec") if result.root == SPEC else last_accepted(obj)
    return replace(result, spec=mapping(written))


def profile_as_written(
    result: ProfileResult, objects: Mapping[str, Object], scheduler: str
) -> ProfileResult:
    """The same for a profile, with a note if it has another name here."""
    written = as_written(result, objects)
    if written.spec is None or written.scheduler_name != DEFAULT_SCHEDULER:
        return written
    if result.scheduler_name != scheduler:
        return written
    message = (
        f'the provider\'s scheduler serves "{DEFAULT_SCHEDULER}", so this is the first profile of '
        f'SecondaryScheduler "{scheduler}"; Pods select it with spec.schedulerName "{scheduler}"'
    )
    where = f"{PROFILE.kind}/{result.name} {SPEC}.schedulerName"
    note = Finding(names.WARNINGS, RENAMED, where, message, blocking=False)
    return replace(written, serves=scheduler, warnings=(*written.warnings, note))
