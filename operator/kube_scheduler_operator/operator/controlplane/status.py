"""The status of KubeScheduler, and the events of its changes."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Final

from ...base import names
from ...base.objects import mapping
from ...base.revision_number import revision_number
from ...kube.resource import KUBE_SCHEDULERS, SCHEDULERS
from ..model.plan import Action, Event
from ..model.snapshot import Snapshot
from ..status.conditions import Condition, merge_conditions
from ..status.object_status import condition_events, status_write
from .rollout.node_statuses import NODE_UID, NodeStatus, write_node_status
from .rollout.rollout_step import RolloutStep
from .upgrade_check import requested_upgrade

_KEY: Final[Mapping[str, str]] = {
    "group": SCHEDULERS.group,
    "resource": SCHEDULERS.plural,
    "namespace": "",
    "name": names.CLUSTER,
}
"""Identifies the Scheduler among the generations."""


def new_status(
    snapshot: Snapshot,
    conditions: Sequence[Condition],
    *,
    without: Container[str] = (),
    **fields: Any,
) -> dict[str, Any]:
    """The status with these fields and conditions; all else, but conditions `without`, stays."""
    before = snapshot.status
    gone = withdrawn(snapshot)
    known = before.get("conditions") or ()
    old = [raw for raw in known if raw["type"] not in without and raw["type"] not in gone]
    merged = merge_conditions(old, conditions, snapshot.now)
    return {**before, **fields, "conditions": merged}


def withdrawn(snapshot: Snapshot) -> frozenset[str]:
    """The conditions that exist on request only, and are not requested."""
    if snapshot.operator_settings is None or requested_upgrade(snapshot) is not None:
        return frozenset()
    return frozenset({names.UPGRADE_CHECK_PASSED})


def not_observed(
    snapshot: Snapshot, reported: Sequence[Condition], without: Container[str] = ()
) -> tuple[Condition, ...]:
    """The conditions that are neither `reported` nor withdrawn, as no longer observed."""
    management = snapshot.management
    known = {condition.type for condition in reported} | withdrawn(snapshot)
    return tuple(
        Condition(type_, "Unknown", management.state, f"not observed: {management}")
        for raw in snapshot.status.get("conditions") or ()
        if (type_ := raw["type"]) not in known and type_ not in without
    )


def status_of(step: RolloutStep, conditions: Sequence[Condition]) -> dict[str, Any]:
    snapshot, latest = step.snapshot, step.revised.latest
    status = new_status(
        snapshot,
        conditions,
        **observed_generations(snapshot),
        nodeStatuses=write_node_statuses(snapshot, step.node_statuses),
        readyReplicas=sum(pod.ready for pod in step.observation.operands.values()),
        version=snapshot.settings.operator_version,
    )
    before_number = snapshot.status.get("latestAvailableRevision")
    if before_number and not revision_number(before_number):
        # The API does not let a number decrease: the field is removed, and written again later.
        status.pop("latestAvailableRevision")
    elif latest:
        status["latestAvailableRevision"] = latest
    return status


def write_node_statuses(
    snapshot: Snapshot, node_statuses: Iterable[NodeStatus]
) -> list[dict[str, Any]]:
    """Return the elements for the API, with the uid of each node if its definition stores that.

    OpenShift added nodeUID in 2026. Its own operator writes it where the definition has it.
    """
    written = [write_node_status(status) for status in node_statuses]
    stored = snapshot.status.get("nodeStatuses") or ()
    if snapshot.platform.brings_definitions and not any(raw.get(NODE_UID) for raw in stored):
        written = [{k: v for k, v in raw.items() if k != NODE_UID} for raw in written]
    return written


def in_order(
    snapshot: Snapshot,
    work: tuple[Action, ...],
    conditions: Sequence[Condition],
    status: Mapping[str, Any],
    events: tuple[Event, ...] = (),
    afterwards: tuple[Action, ...] = (),
) -> tuple[Action, ...]:
    """Order the work, then the status, which names only what exists, then what comes `afterwards`.

    After a failed reconcile, and while a delayed write ends plans early, the new conditions alone
    precede the work.
    """
    if snapshot.last_error or snapshot.futile_writes:
        error = write_status(snapshot, new_status(snapshot, conditions))
        if error:
            return (*error, *work)
    return (*work, *write_status(snapshot, status, *events), *afterwards)


def write_status(
    snapshot: Snapshot, status: Mapping[str, Any], *events: Event
) -> tuple[Action, ...]:
    """The write of KubeScheduler's status; empty if it is up to date."""
    changed = condition_events(
        snapshot.status, status, "OperatorStatusChanged", lambda type_: type_.endswith("Degraded")
    )
    return status_write(KUBE_SCHEDULERS, snapshot.kubescheduler or {}, status, (*events, *changed))


# --- the generations of KubeScheduler and Scheduler that it is about ---------------------------


def observed_generations(snapshot: Snapshot) -> dict[str, Any]:
    """The fields of the status after everything in the specs was observed."""
    known = snapshot.status.get("generations")
    return {
        "observedGeneration": _generation(snapshot.kubescheduler or {}),
        "generations": merge_generations(known, snapshot.scheduler),
    }


def merge_generations(old: Any, scheduler: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """The list with the Scheduler's generation; entries of other clients are kept."""
    others = [dict(entry) for entry in _entries(old) if not _is_own(entry)]
    if scheduler is None:
        return others
    return [*others, {**_KEY, "lastGeneration": _generation(scheduler)}]


def is_scheduler_observed(
    kubescheduler: Mapping[str, Any], scheduler: Mapping[str, Any] | None
) -> bool:
    """Whether the status is about this Scheduler; True if an earlier release wrote the status."""
    entries = _entries(mapping(kubescheduler.get("status")).get("generations"))
    own = next(filter(_is_own, entries), None)
    if scheduler is None or own is None:
        return True
    return bool(own.get("lastGeneration") == _generation(scheduler))


def _entries(value: Any) -> list[Mapping[str, Any]]:
    return [entry for entry in value or () if isinstance(entry, Mapping)]


def _is_own(entry: Mapping[str, Any]) -> bool:
    return all((entry.get(key) or "") == value for key, value in _KEY.items())


def _generation(obj: Mapping[str, Any]) -> int:
    return int(mapping(obj.get("metadata")).get("generation") or 0)
