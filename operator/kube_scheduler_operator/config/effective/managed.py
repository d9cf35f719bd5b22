"""The spec of the SecondaryScheduler that has the settings of Scheduler and KubeScheduler.

It replaces the control plane's scheduler where the provider runs that scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from ...base import names
from ...base.findings import Finding, format_path
from ...base.go_values import without_nulls
from ...base.objects import Object, mapping
from ..language.feature_gates import FLAG as FEATURE_GATES
from ..language.feature_gates import parse_gates
from ..language.schema import DEFAULT_SCHEDULER
from .attachment import name_of
from .control_plane.base_configuration import Base
from .control_plane.overrides import ARGUMENTS, ROOT, SERVING_FLAGS
from .control_plane.scheduler import EffectiveControlPlane
from .objects import Objects
from .redirect import redirected
from .secondary.compose import CONNECTION, ELECTION, RESERVED, SETTINGS
from .secondary.request import DEFAULT_RESOURCES

REPLICAS: Final = 2

_ELECTION_FLAGS: Final = {
    "leader-elect-lease-duration": "leaseDuration",
    "leader-elect-renew-deadline": "renewDeadline",
    "leader-elect-retry-period": "retryPeriod",
}


def managed_spec(control_plane: EffectiveControlPlane, name: str, namespace: str) -> dict[str, Any]:
    """Return the fields of the spec that the operator sets."""
    base, inputs = control_plane.base, control_plane.inputs
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
    spec = {
        "namespace": namespace,
        "replicas": REPLICAS,
        "logLevel": inputs.spec.get("logLevel") or "Normal",
        "config": without_nulls({key: value for key, value in settings.items() if value != {}}),
        "profiles": _profiles(config, name),
        "featureGates": dict(gates),
        "extraArguments": _arguments(base),
        "forceRedeploymentReason": str(inputs.spec.get("forceRedeploymentReason") or ""),
        "resources": pods.resources_over(DEFAULT_RESOURCES) if pods.resources else {},
        "priorityClassName": pods.priority_class_name,
    }
    return {key: value for key, value in spec.items() if value not in ({}, [], "")}


def settings_without_effect(control_plane: EffectiveControlPlane) -> Iterator[Finding]:
    """Warn about flags that a SecondaryScheduler cannot have."""
    for flag, values in control_plane.base.overrides.arguments.items():
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
    timings = {key: election[key] for key in _ELECTION_FLAGS.values() if election.get(key)}
    for flag, key in _ELECTION_FLAGS.items():
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
    objects: tuple[Object, ...] | None, name: str, default: str = ""
) -> tuple[Object, ...] | None:
    named = None if objects is None else {name_of(obj): obj for obj in objects}
    moved = redirected(named, name, default)
    return None if moved is None else tuple(moved.values())
