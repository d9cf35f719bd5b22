"""Shared expectations: what a plan writes, and what conditions report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import KUBE_SCHEDULERS, Resource
from kube_scheduler_operator.operator.model.plan import Action, Plan, Replace

Condition = tuple[str, str, str]
"""Status, reason and message."""


def writes(actions: Iterable[Action]) -> list[str]:
    """Actions as `create ConfigMap config`."""
    return [
        f"{type(action).__name__.lower()} {action.resource.kind} {action.obj['metadata']['name']}"
        for action in actions
    ]


def expect_writes(actions: Iterable[Action], *expected: str) -> None:
    """Exactly these writes, in this order."""
    assert writes(actions) == list(expected)


def expect_no_writes(plan: Plan) -> None:
    """The cluster is as the operator would make it."""
    assert writes([*plan.actions, *plan.reports]) == []
    assert not plan.write_sets


def written_statuses(actions: Iterable[Action], resource: Resource) -> dict[str, Any]:
    """The statuses that are written to objects of a resource, by name."""
    found: dict[str, Any] = {}
    for action in actions:
        match action:
            case Replace(subresource="status") if action.resource == resource:
                found[action.obj["metadata"]["name"]] = action.obj["status"]
    return found


def status_of_kubescheduler(plan: Plan) -> Mapping[str, Any]:
    """The status that the plan writes to KubeScheduler, before anything else of that object."""
    for action in plan.actions:
        if action.resource == KUBE_SCHEDULERS and isinstance(action, Replace):
            assert action.subresource == "status"
            found: Mapping[str, Any] = action.obj["status"]
            return found
    raise AssertionError("no status is written")


def condition_in(conditions: Iterable[Mapping[str, Any]], type_: str) -> Condition:
    """The one condition of a type."""
    found = [one for one in conditions if one["type"] == type_]
    assert len(found) == 1, f"{len(found)} conditions of type {type_}"
    return found[0]["status"], found[0].get("reason", ""), found[0].get("message", "")


def condition_of(obj: Mapping[str, Any], type_: str) -> Condition:
    """A condition of an object as (status, reason, message); empty texts where it has none."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    if all(condition["type"] != type_ for condition in conditions):
        return "", "", ""
    return condition_in(conditions, type_)


def has_conditions(obj: Mapping[str, Any], **statuses: str) -> bool:
    """Whether an object has conditions with these statuses, by type."""
    return all(condition_of(obj, type_)[0] == status for type_, status in statuses.items())


def is_ready(obj: Mapping[str, Any]) -> bool:
    """Whether a Pod or a Node is Ready."""
    return has_conditions(obj, Ready="True")


def expect_condition(
    conditions: Iterable[Mapping[str, Any]],
    type_: str,
    status: str,
    reason: str | None = None,
    *parts_of_message: str,
) -> None:
    """A condition has this status and reason, and these parts in its message."""
    found = condition_in(conditions, type_)
    assert found[0] == status, found
    assert reason is None or found[1] == reason, found
    assert [part for part in parts_of_message if part not in found[2]] == [], found


def findings(source: Any, *fields: str) -> list[Any]:
    """These fields, as a tuple, of each finding of a composition, a validation or a report."""
    return [attrgetter(*fields)(finding) for finding in source.findings]


def expect_accepted(status: Mapping[str, Any]) -> None:
    """The spec of a user's object is in use."""
    assert condition_in(status["conditions"], names.ACCEPTED) == ("True", "Accepted", "")


def expect_forgotten(status: Mapping[str, Any], **kept: Any) -> None:
    """Nothing is left of the status but `kept`, and that the object is not in use."""
    conditions = {one["type"]: one for one in status["conditions"]}
    assert set(conditions) == {names.READY, names.RECONCILING, names.STALLED}
    expect_condition(status["conditions"], names.READY, "Unknown", "Removed", "not in use")
    fields = ("conditions", "observedGeneration")
    assert {key: value for key, value in status.items() if key not in fields} == kept


def expect_rejected(status: Mapping[str, Any], reason: str, *parts_of_message: str) -> None:
    """The spec of a user's object is not in use."""
    expect_condition(status["conditions"], names.ACCEPTED, "False", reason, *parts_of_message)
