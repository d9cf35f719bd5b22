"""Conditions of KubeScheduler where the provider runs the control plane's scheduler.

The statuses of SecondarySchedulers have the details.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from ...base import names
from ...base.objects import Object, is_being_deleted, mapping
from ...base.recognition import Recognition
from ...config.language.merging.presets import DEFAULT_PROFILE
from ...config.language.versions import Version, version_skew
from ..model.snapshot import Snapshot
from ..status.conditions import (
    AS_EXPECTED,
    Condition,
    aggregate,
    condition_in,
    problem_condition,
)
from .status import observed_status

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

_SHOWN: Final = 5
"""The number of schedulers that a message names."""


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
        message += f"; the provider's name is unknown, because {decided.unanswered}"
    return (Condition(names.PLATFORM_CHANGED, "False", AS_EXPECTED, message),)


def scheduler_conditions(snapshot: Snapshot) -> tuple[Condition, ...]:
    schedulers = {
        name: obj
        for name, obj in sorted(snapshot.secondaries.schedulers.items())
        if not is_being_deleted(obj)
    }
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
    own = snapshot.settings.managed_scheduler
    profile = mapping(mapping(snapshot.scheduler).get("spec")).get("profile") or DEFAULT_PROFILE
    texts = [f"{name} (profile {profile})" if name == own else name for name in schedulers]
    if len(texts) > _SHOWN:
        texts = [*texts[:_SHOWN], f"{len(texts) - _SHOWN} more"]
    verb = "schedules" if len(schedulers) == 1 else "schedule"
    return f"{', '.join(texts)} {verb}"


def _progressing(schedulers: Mapping[str, Object]) -> Condition:
    moving = [
        (str(progress.get("reason") or "RollingOut"), f"{name}: {_message(progress)}")
        for name, obj in schedulers.items()
        if (progress := _condition(obj, names.PROGRESSING)).get("status") == "True"
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
        image = str(mapping(obj.get("status")).get("image") or "")
        with suppress(ValueError):
            problem = version_skew(Version.of_image(image), Version.parse(snapshot.server_version))
            if problem:
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
    return observed_status(
        snapshot,
        conditions,
        without=STATIC_POD_CONDITIONS,
        nodeStatuses=[],
        readyReplicas=sum(
            int(mapping(obj.get("status")).get("readyReplicas") or 0) for obj in schedulers
        ),
        version=snapshot.settings.operator_version,
    )
