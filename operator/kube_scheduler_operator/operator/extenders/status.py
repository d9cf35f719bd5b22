"""The status of SchedulerExtenders, the only record of last accepted versions and agents' ports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ...base import names
from ...base.objects import Object, mapping
from ...base.times import rfc3339
from ...config.effective.attachment import CONTROL_PLANE, scheduler_of
from ...config.effective.extenders.entry import agent_of
from ...config.effective.extenders.validate import ExtenderResult, known_port, ready_since
from ...kube.resource import SCHEDULER_EXTENDERS
from ..model.plan import Action, Event
from ..status.accepted import WAITING, accepted_status, accepted_write, state_of
from ..status.conditions import AS_EXPECTED, Condition, condition_in
from ..status.in_use import InUse

KIND: Final = "SchedulerExtender"
NOT_CALLED: Final = "NotCalledYet"
NOT_READY: Final = "AgentsNotReady"
NOT_ACCEPTED: Final = "NotAccepted"
NOT_MANAGED: Final = names.REASON_NOT_MANAGED
FAILING: Final = "AgentsFailing"


@dataclass(frozen=True, slots=True)
class AgentHealth:
    namespace: str = ""
    workload: str = ""  # such as `DaemonSet/extender-safe`
    desired: int = 0
    ready: int = 0
    complete: bool = False  # whether all agents on reachable nodes are Ready and up to date
    # why the others are not Ready; empty if nothing is wrong or they may still start
    trouble: str = ""


def report_extenders(
    objects: Mapping[str, Object],
    results: Iterable[ExtenderResult],
    agents: Mapping[str, AgentHealth],
    in_use: Mapping[str, InUse],
    now: datetime,
) -> tuple[Action, ...]:
    """Write the statuses that changed; `in_use` has what each scheduler runs, as far as known."""
    writes: list[Action] = []
    for result in results:
        obj = objects[result.name]
        runs = in_use.get(scheduler_of(mapping(obj.get("spec"))))
        status = _status(obj, result, agents.get(result.name), runs, now)
        writes += accepted_write(SCHEDULER_EXTENDERS, obj, status, *_events(obj, status))
    return tuple(writes)


def _status(
    obj: Object,
    result: ExtenderResult,
    health: AgentHealth | None,
    runs: InUse | None,
    now: datetime,
) -> dict[str, Any]:
    further = (_available(result, health), _degraded(health))
    scheduler = _scheduler(result, runs) if runs is not None else None
    status = accepted_status(SCHEDULER_EXTENDERS, obj, result, now, scheduler, further)
    if result.entry is not None:
        status["endpoint"] = result.entry["urlPrefix"]
    if result.port:
        status["agent"] = _agent(obj, result, health, now)
    return status


def _scheduler(result: ExtenderResult, runs: InUse) -> tuple[Condition, ...]:
    if state_of(result) == WAITING:
        return runs.behind
    return runs.extender(result.name, str((result.entry or {}).get("urlPrefix") or ""))


def _agent(
    obj: Object, result: ExtenderResult, health: AgentHealth | None, now: datetime
) -> dict[str, Any]:
    status: dict[str, Any] = {"port": result.port}
    control_plane = scheduler_of(result.spec or {}) == CONTROL_PLANE
    since = ready_since(obj) if known_port(obj) == result.port and control_plane else ""
    if not since and control_plane and health is not None and health.complete:
        since = rfc3339(now)
    if since:
        status["readySince"] = since
    if health is not None:
        status["namespace"] = health.namespace
        status["workload"] = health.workload
        status["desired"] = health.desired
        status["ready"] = health.ready
    return status


def _available(result: ExtenderResult, health: AgentHealth | None) -> Condition:
    if result.spec is None:
        return Condition(names.AVAILABLE, "False", NOT_ACCEPTED, "no version of it can be used")
    if agent_of(result.spec) is None:
        message = (
            "the operator does not run this extender; see kube-scheduler's log for failed calls, "
            "and the events of Pods if it is not ignorable"
        )
        return Condition(names.AVAILABLE, "Unknown", NOT_MANAGED, message)
    if health is None or health.ready < max(health.desired, 1):
        count = f"{health.ready} of {health.desired}" if health is not None else "none of the"
        message = f"{count} agents are Ready"
        return Condition(names.AVAILABLE, "False", NOT_READY, message)
    if result.entry is None:
        message = "the scheduler calls it after all agents have been Ready"
        return Condition(names.AVAILABLE, "False", NOT_CALLED, message)
    return Condition(names.AVAILABLE, "True", AS_EXPECTED)


def _degraded(health: AgentHealth | None) -> Condition:
    if health is None or not health.trouble:
        return Condition(names.DEGRADED, "False", AS_EXPECTED)
    return Condition(names.DEGRADED, "True", FAILING, health.trouble)


def _events(obj: Object, status: Mapping[str, Any]) -> tuple[Event, ...]:
    """Send an event when agents start to fail, fail with another error, or recover."""
    before = condition_in(obj.get("status") or {}, names.DEGRADED)
    now = condition_in(status, names.DEGRADED)
    statuses = {before.get("status", "False"), now.get("status")}
    same = len(statuses) == 1 and now.get("message") == before.get("message")
    if same or now.get("status") == "Unknown" or "True" not in statuses:
        return ()
    name = obj["metadata"]["name"]
    if now.get("status") != "True":
        return (Event("SchedulerExtenderRecovered", f"Agents of {KIND} {name} have recovered"),)
    return (Event("SchedulerExtenderDegraded", f"{KIND} {name}: {now['message']}", "Warning"),)
