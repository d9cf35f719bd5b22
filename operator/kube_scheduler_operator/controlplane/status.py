"""The status of KubeScheduler: what it says of a pass, and the events when that changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..base.objects import Object
from ..kube.resource import KUBE_SCHEDULERS
from ..model.plan import Action, Event, Replace
from ..model.snapshot import Snapshot
from ..status.conditions import Condition, merge_conditions
from .revision.revise import Revised
from .rollout.node_statuses import write_entry
from .rollout.result import Stepped


def status_of(
    snapshot: Snapshot, revised: Revised, stepped: Stepped, conditions: Sequence[Condition]
) -> dict[str, Any]:
    """The status as it should be."""
    before = snapshot.status
    status = dict(before)
    if revised.latest:
        status["latestAvailableRevision"] = revised.latest
    status["nodeStatuses"] = [write_entry(entry) for entry in stepped.entries]
    status["readyReplicas"] = sum(pod.ready for pod in stepped.operands.values())
    status["observedGeneration"] = (snapshot.kubescheduler or {})["metadata"].get("generation", 0)
    status["version"] = snapshot.settings.operator_version
    old = before.get("conditions") or ()
    status["conditions"] = merge_conditions(old, conditions, snapshot.now)
    return status


def removal_status(
    snapshot: Snapshot, stepped: Stepped, conditions: Sequence[Condition]
) -> dict[str, Any]:
    """The status on the way out: what is left to do on nodes; the rest stays as it was."""
    old = snapshot.status.get("conditions") or ()
    return {
        **snapshot.status,
        "observedGeneration": (snapshot.kubescheduler or {})["metadata"].get("generation", 0),
        "nodeStatuses": [write_entry(entry) for entry in stepped.entries],
        "conditions": merge_conditions(old, conditions, snapshot.now),
    }


def complaint(snapshot: Snapshot, conditions: Sequence[Condition]) -> tuple[Action, ...]:
    """The write that says what is wrong and promises nothing; none if nothing is, or it is said."""
    if not snapshot.trouble:
        return ()
    before = snapshot.status
    old = before.get("conditions") or ()
    return write_status(
        snapshot, {**before, "conditions": merge_conditions(old, conditions, snapshot.now)}
    )


def write_status(
    snapshot: Snapshot, status: Mapping[str, Any], *events: Event
) -> tuple[Action, ...]:
    """The write of KubeScheduler's status, if that changes it."""
    before = snapshot.status
    if status == before:
        return ()
    events = (*events, *_condition_events(before, status))
    obj = {**(snapshot.kubescheduler or {}), "status": status}
    return (Replace(KUBE_SCHEDULERS, obj, "status", events),)


def _condition_events(before: Object, after: Object) -> tuple[Event, ...]:
    """One line for every condition that turned bad or good again."""
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
