"""The status of one object that users made, when it is written, and what all of a kind come to.

SecondarySchedulers and LoadPolicies have it alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..model.plan import Action, Event, Replace
from .conditions import AS_EXPECTED, Condition, aggregate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..base.objects import Object
    from ..kube.resource import Resource


@dataclass(frozen=True, slots=True)
class Report:
    """A status, and what follows from it.

    Attributes:
        status: as it should be.
        events: for people, when it is written.
        degraded: what the cluster should know to be wrong; empty if nothing is.
        requeue_after: seconds until it may change by itself; None: it does not.
    """

    status: dict[str, Any]
    events: tuple[Event, ...]
    degraded: str
    requeue_after: float | None


def with_status(
    resource: Resource, obj: Object, report: Report, work: Sequence[Action], *, refused: bool
) -> tuple[Action, ...]:
    """Work, then the status if that changes; but what was refused is told before the next try.

    Args:
        resource: the object's kind.
        obj: the object.
        report: its status.
        work: what is to be done for it.
        refused: whether the API refused some of it the last time.
    """
    writes: tuple[Action, ...] = ()
    if report.status != (obj.get("status") or {}):
        writes = (Replace(resource, {**obj, "status": report.status}, "status", report.events),)
    return (*writes, *work) if refused else (*work, *writes)


def objects_condition(type_: str, reason: str, degraded: Mapping[str, str]) -> Condition:
    """The condition of KubeScheduler that says what is wrong with objects of one kind.

    Args:
        type_: its type.
        reason: if anything is wrong.
        degraded: what a line begins with -> what is wrong, a line each; empty if nothing is.
    """
    lines = [
        f"{whose}{line}" for whose, text in degraded.items() if text for line in text.split("\n")
    ]
    if not lines:
        return Condition(type_, "False", AS_EXPECTED)
    return Condition(type_, "True", reason, aggregate(lines))
