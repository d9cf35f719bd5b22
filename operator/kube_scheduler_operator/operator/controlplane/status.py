"""The status of KubeScheduler, and the events of its changes."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, Final

from ...base.revision_number import revision_number
from ...kube.resource import KUBE_SCHEDULERS
from ..model.plan import Action, Event
from ..model.snapshot import Snapshot
from ..status.conditions import Condition, merge_conditions
from ..status.generations import observed_generations
from ..status.object_status import condition_events, status_write
from .rollout.node_statuses import write_node_status
from .rollout.observe import Situation
from .rollout.rollout_result import RolloutResult

NOTHING_ROLLED_OUT: Final = RolloutResult()


def new_status(
    snapshot: Snapshot,
    conditions: Sequence[Condition],
    *,
    without: Container[str] = (),
    **fields: Any,
) -> dict[str, Any]:
    """The status with these fields and conditions; all else, but conditions `without`, stays."""
    before = snapshot.status
    old = [raw for raw in before.get("conditions") or () if raw["type"] not in without]
    merged = merge_conditions(old, conditions, snapshot.now)
    return {**before, **fields, "conditions": merged}


def observed_status(
    snapshot: Snapshot,
    conditions: Sequence[Condition],
    *,
    without: Container[str] = (),
    **fields: Any,
) -> dict[str, Any]:
    """The same after everything in the specs was observed."""
    generations = observed_generations(snapshot.status, snapshot.kubescheduler, snapshot.scheduler)
    return new_status(snapshot, conditions, without=without, **generations, **fields)


def status_of(
    situation: Situation, result: RolloutResult, conditions: Sequence[Condition]
) -> dict[str, Any]:
    snapshot, latest = situation.snapshot, situation.revised.latest
    status = observed_status(
        snapshot,
        conditions,
        nodeStatuses=[write_node_status(node) for node in result.node_statuses],
        readyReplicas=sum(pod.ready for pod in situation.observation.operands.values()),
        version=snapshot.settings.operator_version,
    )
    before_number = snapshot.status.get("latestAvailableRevision")
    if before_number and not revision_number(before_number):
        # The API does not let a number decrease: the field is removed, and written again later.
        status.pop("latestAvailableRevision")
    elif latest:
        status["latestAvailableRevision"] = latest
    return status


def in_order(
    snapshot: Snapshot,
    work: tuple[Action, ...],
    conditions: Sequence[Condition],
    status: Mapping[str, Any],
    result: RolloutResult = NOTHING_ROLLED_OUT,
    observing: tuple[Action, ...] = (),
) -> tuple[Action, ...]:
    """Order the work, then the status, which names only what exists, then what depends on it.

    After a failed reconcile, and while a delayed write ends plans early, the new conditions alone
    precede the work.
    """
    if snapshot.last_error or snapshot.futile_writes:
        error = write_status(snapshot, new_status(snapshot, conditions))
        if error:
            return (*error, *work)
    written = write_status(snapshot, status, *result.events)
    return (*work, *written, *result.afterwards, *observing)


def write_status(
    snapshot: Snapshot, status: Mapping[str, Any], *events: Event
) -> tuple[Action, ...]:
    """The write of KubeScheduler's status; empty if it is up to date."""
    changed = condition_events(
        snapshot.status, status, "OperatorStatusChanged", lambda type_: type_.endswith("Degraded")
    )
    return status_write(KUBE_SCHEDULERS, snapshot.kubescheduler or {}, status, (*events, *changed))
