"""The status of KubeScheduler, and the events of its changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...base.objects import Object
from ...base.revision_number import revision_number
from ...kube.resource import KUBE_SCHEDULERS
from ..model.plan import Action, Event, Replace
from ..model.snapshot import Snapshot
from ..status.conditions import Condition, merge_conditions
from ..status.generations import observed_generations
from .revision.revise import RevisionResult
from .rollout.node_statuses import write_node_status
from .rollout.observe import Observation
from .rollout.rollout_result import RolloutResult


def status_of(
    snapshot: Snapshot,
    revised: RevisionResult,
    observation: Observation,
    result: RolloutResult,
    conditions: Sequence[Condition],
) -> dict[str, Any]:
    before = snapshot.status
    status = dict(before)
    before_number = before.get("latestAvailableRevision")
    if before_number and not revision_number(before_number):
        # The API does not let a number decrease: the field is removed, and written again later.
        status.pop("latestAvailableRevision")
    elif revised.latest:
        status["latestAvailableRevision"] = revised.latest
    status["nodeStatuses"] = [write_node_status(node) for node in result.node_statuses]
    status["readyReplicas"] = sum(pod.ready for pod in observation.operands.values())
    status |= observed_generations(before, snapshot.kubescheduler, snapshot.scheduler)
    status["version"] = snapshot.settings.operator_version
    old = before.get("conditions") or ()
    status["conditions"] = merge_conditions(old, conditions, snapshot.now)
    return status


def removal_status(
    snapshot: Snapshot, result: RolloutResult, conditions: Sequence[Condition]
) -> dict[str, Any]:
    """The status during a removal: the nodes that are left; all else is unchanged."""
    before = snapshot.status
    old = before.get("conditions") or ()
    return {
        **before,
        **observed_generations(before, snapshot.kubescheduler, snapshot.scheduler),
        "nodeStatuses": [write_node_status(node) for node in result.node_statuses],
        "conditions": merge_conditions(old, conditions, snapshot.now),
    }


def write_error(snapshot: Snapshot, conditions: Sequence[Condition]) -> tuple[Action, ...]:
    """The write of new conditions only; empty if nothing changed.

    It comes first after a failed reconcile, and while a delayed write ends plans early.
    """
    if not snapshot.last_error and not snapshot.futile_writes:
        return ()
    before = snapshot.status
    old = before.get("conditions") or ()
    return write_status(
        snapshot, {**before, "conditions": merge_conditions(old, conditions, snapshot.now)}
    )


def write_status(
    snapshot: Snapshot, status: Mapping[str, Any], *events: Event
) -> tuple[Action, ...]:
    """The write of KubeScheduler's status; empty if it is up to date."""
    before = snapshot.status
    if status == before:
        return ()
    events = (*events, *_condition_events(before, status))
    obj = {**(snapshot.kubescheduler or {}), "status": status}
    return (Replace(KUBE_SCHEDULERS, obj, "status", events),)


def _condition_events(before: Object, after: Object) -> tuple[Event, ...]:
    """One event for every Degraded condition that changed."""
    old = {c["type"]: c for c in before.get("conditions") or ()}
    events = []
    for condition in after["conditions"]:
        kind, status = condition["type"], condition["status"]
        if not kind.endswith("Degraded"):
            continue
        was = old.get(kind, {})
        same = was.get("status", "False") == status and (
            status == "False" or was.get("message") == condition.get("message")
        )
        if same:
            continue
        text = f"{kind} is {status}: {condition.get('message') or condition.get('reason', '')}"
        reason = "OperatorStatusChanged"
        events.append(Event(reason, text, "Warning" if status == "True" else "Normal"))
    return tuple(events)
