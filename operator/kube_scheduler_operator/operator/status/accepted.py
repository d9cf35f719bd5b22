"""The condition Accepted, and its events: whether the current spec of an object is in use.

SchedulerProfiles, SchedulerExtenders and OperatorSettings share all of it, LoadPolicies a part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from ...base import names
from ...base.management import ManagementState
from ...base.objects import Object
from ...config.effective.attachment import ValidationResult
from ...kube.resource import KUBE_SCHEDULERS, Resource
from ..model.plan import Action, Event
from .conditions import (
    Condition,
    RawCondition,
    condition_in,
    merge_conditions,
    warnings_condition,
)
from .object_status import status_write
from .readiness import CHECKED, TYPES, readiness, with_readiness

ACCEPTED: Final = "Accepted"
LAST_ACCEPTED: Final = "LastAcceptedInUse"
NOT_IN_USE: Final = "NotInUse"
REFUSED: Final = "Refused"
WAITING: Final = names.REASON_WAITING
"""Why a version is not in use although it is valid."""
KEPT_BACK: Final = CHECKED.format(KUBE_SCHEDULERS.kind)


def state_of(result: ValidationResult) -> str:
    """The reason of the condition: Accepted, Refused, Waiting, LastAcceptedInUse or NotInUse."""
    if result.accepted:
        return REFUSED if result.findings else ACCEPTED
    if any(finding.reason == WAITING for finding in result.findings):
        return WAITING
    return LAST_ACCEPTED if result.uses_last_accepted else NOT_IN_USE


def remembered(
    before: Mapping[str, Any], generation: int, accepted: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The status fields with the validated generation and the last accepted version.

    `accepted` is the object's spec; None if it is not accepted.
    """
    status: dict[str, Any] = {"observedGeneration": generation}
    if accepted is not None:
        status["acceptedGeneration"] = generation
        status["accepted"] = accepted
    else:
        # Even if it cannot run any more: another version of kube-scheduler may accept it.
        last = ("acceptedGeneration", "accepted")
        status |= {key: before[key] for key in last if key in before}
    return status


def accepted_condition(
    result: ValidationResult, before: Mapping[str, Any], owner: str
) -> Condition:
    """The condition, with `owner`, the prefix of every finding's path, left out."""
    state = state_of(result)
    if state == ACCEPTED:
        return Condition(names.ACCEPTED, "True", ACCEPTED, result.unused)
    if state == WAITING:
        return waiting_condition(before, uses_last_accepted=result.uses_last_accepted)
    errors = "\n".join(finding.text.removeprefix(owner) for finding in result.findings)
    if state == REFUSED:
        return Condition(names.ACCEPTED, "False", REFUSED, errors)
    if result.uses_last_accepted:
        message = f"{accepted_version(before)} stays in use\n{errors}"
        return Condition(names.ACCEPTED, "False", LAST_ACCEPTED, message)
    return Condition(names.ACCEPTED, "False", NOT_IN_USE, f"no version of it can be used\n{errors}")


def waiting_condition(before: Mapping[str, Any], *, uses_last_accepted: bool) -> Condition:
    """The condition while a valid edit waits for the check of placements."""
    stays = f"{accepted_version(before)} stays in use\n" if uses_last_accepted else ""
    return Condition(names.ACCEPTED, "False", WAITING, f"{stays}{KEPT_BACK}")


def accepted_version(before: Mapping[str, Any]) -> str:
    generation = before.get("acceptedGeneration")
    return f"generation {generation}" if generation else "the last accepted version"


def accepted_events(kind: str, obj: Object, status: Mapping[str, Any]) -> tuple[Event, ...]:
    """The event when an object stops being accepted, the cause changes, or it recovers."""
    before = condition_in(obj.get("status") or {}, names.ACCEPTED)
    now = condition_in(status, names.ACCEPTED)
    keys = ("status", "reason", "message")
    name = f"{kind} {obj['metadata']['name']}"
    if now.get("status") == "True":
        if before.get("status") != "False":
            return ()
        return (Event(f"{kind}Accepted", f"{name} is accepted"),)
    if [before.get(key) for key in keys] == [now.get(key) for key in keys]:
        return ()
    return (Event(f"{kind}NotAccepted", f"{name}: {now.get('message', '')}", "Warning"),)


def accepted_status(
    resource: Resource,
    obj: Object,
    result: ValidationResult,
    now: datetime,
    scheduler: Sequence[Condition] | None,
    further: Sequence[Condition] = (),
) -> dict[str, Any]:
    """The status with the conditions Accepted and Warnings, `further` ones, and readiness.

    `scheduler` has the conditions of its scheduler that count for it; None: they are not known.
    """
    before: Mapping[str, Any] = obj.get("status") or {}
    generation = int(obj["metadata"].get("generation") or 0)
    owner = f"{resource.kind}/{result.name} "
    own = (accepted_condition(result, before, owner), *further)
    conditions = (
        *with_readiness(obj, own, scheduler),
        warnings_condition(names.WARNINGS, result.warnings, owner, result.unused),
    )
    merged = merge_conditions(before.get("conditions") or (), conditions, now)
    accepted = result.spec if result.accepted else None
    return {**remembered(before, generation, accepted), "conditions": merged}


def accepted_write(
    resource: Resource, obj: Object, status: Mapping[str, Any], *events: Event
) -> tuple[Action, ...]:
    """The write of such a status; empty if it is up to date."""
    if status == (obj.get("status") or {}):
        return ()
    own = accepted_events(resource.kind, obj, status)
    return status_write(resource, obj, status, (*own, *events))


def unobserved(
    resource: Resource,
    objects: Iterable[Object],
    management: ManagementState,
    now: datetime,
    also: Sequence[str] = (),
) -> tuple[Action, ...]:
    """Report that objects are not observed, because of the state of KubeScheduler.

    The conditions `also` are Unknown as well. Objects that were never observed stay as they are.
    """
    message = f"not observed: {management}"
    unknown = [
        Condition(type_, "Unknown", management.state, message)
        for type_ in dict.fromkeys((names.AVAILABLE, *also))
    ]
    writes: list[Action] = []
    for obj in objects:
        before: Mapping[str, Any] = obj.get("status") or {}
        conditions: Sequence[RawCondition] = before.get("conditions") or ()
        if conditions:
            accepted = (Condition.from_raw(c) for c in conditions if c["type"] == names.ACCEPTED)
            shown = (condition for condition in unknown if condition.type in also)
            reported = (*shown, *readiness((*accepted, *unknown)))
            merged = merge_conditions(conditions, reported, now)
            writes += status_write(resource, obj, {**before, "conditions": merged})
    return tuple(writes)


def forget(
    resource: Resource,
    objects: Mapping[str, Object],
    management: ManagementState,
    now: datetime,
    kept: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[Action, ...]:
    """Clear the statuses of objects except `kept`, and that they are not in use.

    Without a condition, tools would take an object for one that schedules.
    """
    unknown = Condition(names.AVAILABLE, "Unknown", management.state, f"not in use: {management}")
    writes: list[Action] = []
    for _, obj in sorted(objects.items()):
        before = (obj.get("status") or {}).get("conditions") or ()
        known = [raw for raw in before if raw["type"] in TYPES]
        status = {
            **kept,
            "observedGeneration": int(obj["metadata"].get("generation") or 0),
            "conditions": merge_conditions(known, readiness((unknown,)), now),
        }
        writes += status_write(resource, obj, status)
    return tuple(writes)
