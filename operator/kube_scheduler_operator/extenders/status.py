"""The status of SchedulerExtenders: what became of each, and how its agents are.

The version that was accepted last and the port of the agents are remembered here and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..base import names
from ..base.times import rfc3339
from ..kube.resource import SCHEDULER_EXTENDERS
from ..model.attachment import CONTROL_PLANE, scheduler_of
from ..model.plan import Action, Event, Replace
from ..status.accepted import accepted_condition, accepted_events, remembered
from ..status.conditions import AS_EXPECTED, Condition, condition_in, merge_conditions
from ..status.warnings import warnings_condition
from .entry import agent_of
from .validate import known_port, ready_since

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from ..base.objects import Object
    from .validate import ExtenderVerdict

KIND: Final = "SchedulerExtender"
NOT_CALLED: Final = "NotCalledYet"
NOT_READY: Final = "AgentsNotReady"
NOT_ACCEPTED: Final = "NotAccepted"
NOT_MANAGED: Final = "NotManaged"
FAILING: Final = "AgentsFailing"


@dataclass(frozen=True, slots=True)
class AgentHealth:
    """How the agents of one SchedulerExtender are.

    Attributes:
        namespace: where they run.
        workload: what runs them, such as `DaemonSet/extender-safe`.
        desired: how many there should be.
        ready: how many answer and know the cluster.
        complete: whether all are Ready that can be expected to, and are what they should be.
        trouble: why the others are not, if that is no matter of time; empty: nothing is wrong.
    """

    namespace: str = ""
    workload: str = ""
    desired: int = 0
    ready: int = 0
    complete: bool = False
    trouble: str = ""


def report_extenders(
    objects: Mapping[str, Object],
    verdicts: Iterable[ExtenderVerdict],
    agents: Mapping[str, AgentHealth],
    now: datetime,
) -> tuple[Action, ...]:
    """The writes that make the objects say what became of them; none where they say it already."""
    writes = []
    for verdict in verdicts:
        obj = objects[verdict.name]
        status = extender_status(obj, verdict, agents.get(verdict.name), now)
        if status != (obj.get("status") or {}):
            events = (*accepted_events(KIND, obj, status), *_events(obj, status))
            writes.append(Replace(SCHEDULER_EXTENDERS, {**obj, "status": status}, "status", events))
    return tuple(writes)


def extender_status(
    obj: Object, verdict: ExtenderVerdict, health: AgentHealth | None, now: datetime
) -> dict[str, Any]:
    """The status that an object should have."""
    before: Mapping[str, Any] = obj.get("status") or {}
    generation = int(obj["metadata"].get("generation") or 0)
    status = remembered(before, generation, verdict.spec if verdict.accepted else None)
    if verdict.entry is not None:
        status["endpoint"] = verdict.entry["urlPrefix"]
    if verdict.port:
        status["agent"] = _agent(obj, verdict, health, now)
    owner = f"{KIND}/{verdict.name} "
    conditions = [
        accepted_condition(verdict, before, owner),
        _available(verdict, health),
        _degraded(health),
        warnings_condition(names.WARNINGS, verdict.warnings, owner),
    ]
    status["conditions"] = merge_conditions(before.get("conditions") or (), conditions, now)
    return status


def _agent(
    obj: Object, verdict: ExtenderVerdict, health: AgentHealth | None, now: datetime
) -> dict[str, Any]:
    found: dict[str, Any] = {"port": verdict.port}
    control_plane = scheduler_of(verdict.spec or {}) == CONTROL_PLANE
    since = ready_since(obj) if known_port(obj) == verdict.port and control_plane else ""
    if not since and control_plane and health is not None and health.complete:
        since = rfc3339(now)
    if since:
        found["readySince"] = since
    if health is not None:
        found["namespace"] = health.namespace
        found["workload"] = health.workload
        found["desired"] = health.desired
        found["ready"] = health.ready
    return found


def _available(verdict: ExtenderVerdict, health: AgentHealth | None) -> Condition:
    if verdict.spec is None:
        return Condition(names.AVAILABLE, "False", NOT_ACCEPTED, "no version of it can run")
    if agent_of(verdict.spec) is None:
        message = (
            "the operator does not run it; whether it answers is in the log of kube-scheduler, and "
            "in the events of pods if it is not ignorable"
        )
        return Condition(names.AVAILABLE, "Unknown", NOT_MANAGED, message)
    if health is None or health.ready < max(health.desired, 1):
        count = f"{health.ready} of {health.desired}" if health is not None else "none of the"
        message = f"{count} agents are Ready"
        return Condition(names.AVAILABLE, "False", NOT_READY, message)
    if verdict.entry is None:
        message = "the scheduler is told to call it once all agents have been Ready"
        return Condition(names.AVAILABLE, "False", NOT_CALLED, message)
    return Condition(names.AVAILABLE, "True", AS_EXPECTED)


def _degraded(health: AgentHealth | None) -> Condition:
    if health is None or not health.trouble:
        return Condition(names.DEGRADED, "False", AS_EXPECTED)
    return Condition(names.DEGRADED, "True", FAILING, health.trouble)


def _events(obj: Object, status: Mapping[str, Any]) -> tuple[Event, ...]:
    """One line when agents begin to fail, or fail otherwise, and when they are well again."""
    before = condition_in(obj.get("status") or {}, names.DEGRADED)
    now = condition_in(status, names.DEGRADED)
    same = now.get("status") == before.get("status", "False")
    if same and now.get("message") == before.get("message"):
        return ()
    name = obj["metadata"]["name"]
    if now.get("status") != "True":
        return (Event("SchedulerExtenderRecovered", f"Agents of {KIND} {name} are well again"),)
    return (Event("SchedulerExtenderDegraded", f"{KIND} {name}: {now['message']}", "Warning"),)
