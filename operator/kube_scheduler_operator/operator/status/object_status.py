"""What the statuses of all kinds share: their writes, and a summary of errors."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...base import names
from ...base.defects import DEFECT, contained
from ...base.objects import Object, mapping
from ...kube.resource import Resource
from ..model.plan import Action, Event, Replace
from ..model.snapshot import Snapshot
from .conditions import Condition, merge_conditions, problem_condition
from .readiness import readiness


@dataclass(frozen=True, slots=True)
class Report:
    status: dict[str, Any]  # the desired status
    events: tuple[Event, ...]  # sent when it is written
    degraded: str  # the error that KubeScheduler's status reports as well
    requeue_after: float | None  # seconds until the status may change by itself


@dataclass(frozen=True, slots=True)
class ObjectPlan:
    actions: tuple[Action, ...] = ()  # in order, including the write of the status
    degraded: str = ""  # the error that KubeScheduler's status reports as well
    requeue_after: float | None = None


def defect(
    snapshot: Snapshot,
    resource: Resource,
    obj: Object,
    error: Exception,
    without: Container[str] = (),
    further: Sequence[Condition] = (),
) -> ObjectPlan:
    """The plan for an object that an unexpected error stopped: its condition Degraded.

    The rest of its status stays but for the fields `without` and the conditions `further`.
    """
    name = obj["metadata"]["name"]
    text = contained(resource.kind, name, error)
    message = (
        f"the operator cannot process this object: {text}; correct it, or report this with the "
        "operator's log (running Pods are not affected)"
    )
    before = mapping(obj.get("status"))
    degraded = Condition(names.DEGRADED, "True", DEFECT, message)
    conditions = (degraded, *further, *readiness((degraded,)))
    kept = {key: value for key, value in before.items() if key not in without}
    status = {
        **kept,
        "observedGeneration": int(obj["metadata"].get("generation") or 0),
        "conditions": merge_conditions(before.get("conditions") or (), conditions, snapshot.now),
    }
    report = Report(status, (), message, None)
    return with_status(snapshot, resource, obj, report, ())


def status_write(
    resource: Resource, obj: Object, status: Mapping[str, Any], events: Iterable[Event] = ()
) -> tuple[Action, ...]:
    """The write of a status, with its events; empty if it is up to date."""
    if status == (obj.get("status") or {}):
        return ()
    return (Replace(resource, {**obj, "status": status}, "status", tuple(events)),)


def with_status(
    snapshot: Snapshot,
    resource: Resource,
    obj: Object,
    report: Report,
    work: Sequence[Action],
    *,
    first: bool = False,
) -> ObjectPlan:
    """The work, then the status if it changes.

    The status is `first` if the work depends on it, and if the API refused a write.
    """
    refused = resource.named(obj["metadata"]["name"]) in snapshot.write_errors
    writes = status_write(resource, obj, report.status, report.events)
    actions = (*writes, *work) if refused or first else (*work, *writes)
    return ObjectPlan(actions, report.degraded, report.requeue_after)


def condition_events(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    reason: str,
    reported: Callable[[str], bool],
    whose: str = "",
) -> tuple[Event, ...]:
    """An event for each condition, of a type that is reported, that became bad or recovered.

    A Degraded condition also causes one when its message changes; that it is not observed, or is
    observed again, causes none. A condition that was never good causes none: the rollout has not
    started.
    """
    old = {c["type"]: c for c in before.get("conditions") or ()}
    events = []
    for condition in after["conditions"]:
        type_, status = condition["type"], condition["status"]
        was, is_error = old.get(type_, {}), type_.endswith(names.DEGRADED)
        bad = (status == "True") == is_error
        statuses = {was.get("status", "False"), status}
        other_error = bad and is_error and was.get("message") != condition.get("message")
        same = len(statuses) == 1 or (is_error and "True" not in statuses)
        if not reported(type_) or (same and not other_error):
            continue
        text = condition.get("message") or condition.get("reason", "")
        message = f"{whose}{type_} is {status}: {text}"
        events.append(Event(reason, message, "Warning" if bad else "Normal"))
    return tuple(events)


def objects_condition(type_: str, reason: str, degraded: Mapping[str, str]) -> Condition:
    """The condition of KubeScheduler that summarises the errors of all objects of one kind.

    `degraded` maps the prefix of a line to the error; an empty error is omitted.
    """
    return problem_condition(
        type_,
        (
            (reason, f"{whose}{line}")
            for whose, text in degraded.items()
            if text
            for line in text.split("\n")
        ),
    )
