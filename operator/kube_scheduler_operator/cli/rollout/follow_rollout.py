"""Follows a rollout: polls its objects and reports the differences of two states."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ...base import names
from ...base.management import MANAGED, REMOVED, UNMANAGED, management_state
from ...base.objects import mapping
from ...base.platform import Platform
from ...config.effective.attachment import CONTROL_PLANE, is_ours, scheduler_of
from ...kube.api import Api, Object
from ...kube.errors import Forbidden, Unavailable
from ...kube.resource import (
    LEASES,
    OPERATOR_SETTINGS,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SCHEDULERS,
)
from ...operator.controlplane.rollout.node_statuses import (
    NodeStatus,
    describe,
    on_node,
    read_node_status,
    reported_failures,
)
from ...operator.controlplane.status import is_scheduler_observed
from ...operator.extenders.status import NOT_CALLED, NOT_READY
from ...operator.status.conditions import condition_in
from ...operator.status.lease_reading import lease_problem
from ...operator.status.placement_check import HELD, SIMULATING
from ..cluster.operator_objects import (
    find_object,
    find_singleton,
    get_kubescheduler,
    list_by_name,
)
from ..cluster.scheduler_contents import find_scheduler

if TYPE_CHECKING:
    from ...kube.client import ApiClient

INTERVAL: Final = 1.0
"""Seconds between polls."""

CONFIRMATIONS: Final = 3
"""Consecutive polls that must show the end of a rollout: the operator takes a moment to create a
revision for an object that it has observed, or that was deleted."""


class End(Enum):
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RolloutState:
    latest: int  # revision
    goal: int  # the revision that nodes are moved to; 0: none
    nodes: Mapping[str, NodeStatus]  # by name
    waits: Mapping[str, str]  # the condition that each node waits for
    problem: str  # an error that the operator retries, or that it simulates an edit
    end: End | None  # the outcome; None while the rollout is in progress
    message: str  # the details of the outcome
    failed: Collection[str] = ()  # the nodes whose last failure the operator reports
    # objects that will cause another revision, or the operator, and what each one waits for
    pending: Mapping[str, str] = field(default_factory=dict)


# Conditions that prevent a revision or fail it.
_FAILURES = (
    names.OVERRIDES_DEGRADED,
    names.TARGET_CONFIG_DEGRADED,
    names.CONFIG_OBSERVATION_DEGRADED,
    names.PREFLIGHT_DEGRADED,
    names.NODE_INSTALLER_DEGRADED,
)
# Conditions of objects whose edits are not in the revision: it is rolled out without them.
_LEFT_OUT = (
    names.SCHEDULER_PROFILES_DEGRADED,
    names.SCHEDULER_EXTENDERS_DEGRADED,
    names.OPERATOR_SETTINGS_DEGRADED,
)
_HARMLESS_REASONS = ("PolicyRemoved", "FeatureGatesNotFound")


def read_state(
    kubescheduler: Mapping[str, Any],
    scheduler: Mapping[str, Any] | None = None,
    pending: Mapping[str, str] = MappingProxyType({}),
) -> RolloutState:
    """Read the state of the rollout in a KubeScheduler.

    It has no end before the operator has observed the `scheduler`; None: its edits do not matter.
    `pending` has the objects that will cause another revision, and what each one waits for.
    """
    status = kubescheduler.get("status") or {}
    conditions = {c["type"]: c for c in status.get("conditions") or ()}
    entries = {raw["nodeName"]: read_node_status(raw) for raw in status.get("nodeStatuses") or ()}
    progress = conditions.get(names.NODE_INSTALLER_PROGRESSING, {})
    progressing = str(progress.get("message", ""))
    failed = reported_failures(entries.values(), conditions.get(names.NODE_INSTALLER_DEGRADED, {}))
    check = conditions.get(names.PLACEMENT_CHECK_PROGRESSING, {})
    failing = [
        condition
        for condition in (conditions.get(type_, {}) for type_ in _FAILURES)
        if condition.get("status") == "True" and not _is_advice(condition)
    ]
    final = [c for c in failing if _is_final(c)]
    generation = (kubescheduler.get("metadata") or {}).get("generation", 0)
    observed = status.get("observedGeneration", 0) == generation
    observed = observed and is_scheduler_observed(kubescheduler, scheduler)
    management = management_state(kubescheduler)
    end: End | None = None
    message = ""
    if management.state == UNMANAGED:
        end = End.FAILED
        message = f"{management}: no revision is rolled out"
    elif observed and final:
        end, message = End.FAILED, _text(final[0])
        if final[0]["type"] == names.NODE_INSTALLER_DEGRADED and failed:
            # The line of the node has the error.
            message = f"{names.NODE_INSTALLER_DEGRADED}: {describe(tuple(entries.values()), 0)}"
    elif observed and check.get("status") == "True":
        if check.get("reason") == HELD:
            end, message = End.FAILED, str(check.get("message", ""))
    elif observed and progress.get("status") == "False" and not any(
        entry.target for entry in entries.values()
    ):  # fmt: skip
        if progress.get("reason") in ("AllNodesAtLatestRevision", "Removed"):
            if not pending:
                end, message = settled(kubescheduler, progressing)
        elif progress.get("reason") == "RevisionRejected":
            end, message = End.FAILED, progressing
    return RolloutState(
        latest=int(status.get("latestAvailableRevision") or 0),
        goal=_goal(progressing),
        nodes=entries,
        waits=_waits(progressing, list(entries)),
        problem=_problem(failing[0], failed) if failing and not final else _simulating(check),
        end=end,
        message=message,
        failed=frozenset(entry.node for entry in failed),
        pending=pending,
    )


def _simulating(check: Mapping[str, Any]) -> str:
    """Return the message of an edit that is being simulated; empty if none is."""
    simulates = check.get("status") == "True" and check.get("reason") != HELD
    return str(check.get("message", "")) if simulates else ""


def blocking_problem(kubescheduler: Mapping[str, Any]) -> str:
    """Return the error in Scheduler or KubeScheduler that only an edit can resolve; empty: none."""
    conditions = (kubescheduler.get("status") or {}).get("conditions") or ()
    for condition in conditions:
        failing = condition["type"] in _FAILURES and condition.get("status") == "True"
        if failing and not _is_advice(condition) and _is_final(condition):
            return _text(condition)
    return ""


def settled(
    kubescheduler: Mapping[str, Any],
    message: str,
    refused: Mapping[str, str] = MappingProxyType({}),
) -> tuple[End, str]:
    """Return the end of a complete rollout, and its message: whether every object is in it.

    `refused` has the objects of a SecondaryScheduler that are not, and why.
    """
    left_out = [
        _text(condition)
        for condition in (kubescheduler.get("status") or {}).get("conditions") or ()
        if condition["type"] in _LEFT_OUT and condition.get("status") == "True"
    ]
    left_out += [f"{name}: {why}" for name, why in sorted(refused.items())]
    if left_out:
        return End.FAILED, f"{message}, without an object that is refused: {left_out[0]}"
    return End.DONE, message


def _is_advice(condition: Mapping[str, Any]) -> bool:
    """Return whether it blocks no rollout; a reason covers only the first of several messages."""
    alone = "\n" not in str(condition.get("message", ""))
    return alone and condition.get("reason") in _HARMLESS_REASONS


def _is_final(condition: Mapping[str, Any]) -> bool:
    """Return whether only an edit can resolve it; failures on a node are retried."""
    retried = condition["type"] == names.NODE_INSTALLER_DEGRADED
    return not retried or condition.get("reason") == "RevisionFailed"


def _problem(condition: Mapping[str, Any], failed: Sequence[NodeStatus]) -> str:
    """Return an error; empty if it has only failures of nodes, which have lines of their own."""
    rest = str(condition.get("message", ""))
    for entry in failed:
        for error in entry.failed_errors:
            rest = rest.replace(on_node(entry.node, error), "")
    is_repeated = condition["type"] == names.NODE_INSTALLER_DEGRADED and failed and not rest.strip()
    return "" if is_repeated else _text(condition)


def _text(condition: Mapping[str, Any]) -> str:
    return f"{condition['type']}: {condition.get('message') or condition.get('reason', '')}"


def _goal(message: str) -> int:
    """Read N of "moving to revision N; …"; 0 without it."""
    number = message.partition("; ")[0].removeprefix("moving to revision ")
    return int(number) if number.isdecimal() else 0


def _waits(message: str, nodes: Sequence[str]) -> dict[str, str]:
    """Map nodes to what they wait for, from "moving to revision 2; …; NODE: what; NODE: what"."""
    waits: dict[str, str] = {}
    current = ""
    for part in message.split("; "):
        node, colon, condition = part.partition(": ")
        if colon and node in nodes:
            current, waits[node] = node, condition
        elif current:  # the text itself contains a semicolon
            waits[current] += f"; {part}"
    return waits


def report_changes(before: RolloutState | None, after: RolloutState) -> list[str]:
    """Return one line per change in `after`."""
    lines = []
    if before is None or before.latest != after.latest:
        lines.append(f"latest revision: {after.latest or 'none yet'}")
    for name, entry in sorted(after.nodes.items()):
        old = before.nodes.get(name) if before is not None else None
        wait = after.waits.get(name, "")
        goal = entry.target or (after.goal if wait else 0)
        move = f"{entry.current or 'stock'} → {goal}"
        if old is None and not goal:
            lines.append(f"{name}: runs {entry.current or 'no revision yet'}")
        elif old is not None and old.current != entry.current:
            lines.append(f"{name}: runs {entry.current}, was {old.current or 'stock'}")
        if entry.target and (old is None or old.target != entry.target):
            lines.append(f"{name}: {move}: started")
        if wait and (before is None or before.waits.get(name) != wait):
            lines.append(f"{name}: {move}: {wait}")
        known = before is not None and name in before.failed
        lines += _failure(old, entry, counts=name in after.failed and not known)
    lines += _pending_changes(before, after)
    gone = sorted(before.nodes.keys() - after.nodes.keys()) if before is not None else ()
    lines += [f"{name}: removed from the cluster" for name in gone]
    if after.problem and (before is None or before.problem != after.problem):
        lines.append(after.problem)
    return lines


def _failure(old: NodeStatus | None, entry: NodeStatus, *, counts: bool) -> Iterator[str]:
    """Yield a failure since the state before; one from before the watch only if it `counts` now."""
    last = entry.failed_revision, entry.failed_time
    if old is not None and entry.failed_revision and (old.failed_revision, old.failed_time) != last:
        yield entry.failure
    elif counts:
        at = f", at {entry.failed_time}" if entry.failed_time else ""
        yield f"earlier{at}: {entry.failure}"


# --- SecondarySchedulers: a Deployment replaces one Pod after the other --------------------------


@dataclass(frozen=True, slots=True)
class SchedulerRollout:
    configuration: str  # the hash of the content that its Pods run, or are about to
    pods: str  # how many are Ready
    problem: str  # an error that the operator retries
    end: End | None  # the outcome; None while the rollout is in progress
    message: str  # the details of the outcome
    waits: Mapping[str, str] = field(default_factory=dict)  # by the name of the scheduler
    # objects that will cause another rollout, or the operator, and what each one waits for
    pending: Mapping[str, str] = field(default_factory=dict)


def read_scheduler(
    scheduler: Mapping[str, Any],
    kubescheduler: Mapping[str, Any],
    source: Mapping[str, Any] | None = None,
    pending: Mapping[str, str] = MappingProxyType({}),
    left_out: Mapping[str, str] = MappingProxyType({}),
) -> SchedulerRollout:
    """Read the state of a SecondaryScheduler's rollout.

    For ours, errors of KubeScheduler count as well, and it has no end before the operator has
    observed KubeScheduler and `source`, the Scheduler "cluster". `pending` is that of `read_state`,
    `left_out` has the objects that are refused, and why.
    """
    name = str(scheduler["metadata"]["name"])
    status = mapping(scheduler.get("status"))
    progressing = condition_in(status, names.PROGRESSING)
    degraded = condition_in(status, names.DEGRADED)
    check = condition_in(status, names.PLACEMENT_CHECK_PROGRESSING)
    generation = scheduler["metadata"].get("generation", 0)
    observed = status.get("observedGeneration", 0) == generation
    replicas = mapping(scheduler.get("spec")).get("replicas", 1)
    ready = int(status.get("readyReplicas") or 0)
    # During a rollout there is one more Pod.
    pods = f"{ready} Pods are Ready, {replicas} are desired"
    end: End | None = None
    message = ""
    problem, refused = "", ""
    if degraded.get("status") == "True":
        problem = str(degraded.get("message") or degraded.get("reason", ""))
    if is_ours(scheduler):
        management = management_state(kubescheduler)
        if management.state != MANAGED:
            refused = f"{management}: nothing is rolled out"
        refused = refused or blocking_problem(kubescheduler)
        seen = mapping(kubescheduler.get("status")).get("observedGeneration", 0)
        observed = observed and seen == mapping(kubescheduler.get("metadata")).get("generation", 0)
        observed = observed and is_scheduler_observed(kubescheduler, source)
    moves = progressing.get("status") != "False"
    moves = moves and progressing.get("reason") not in (HELD, SIMULATING)
    if observed and (refused or problem) and not moves:
        end, message = End.FAILED, refused or problem
    elif observed and check.get("status") == "True":
        problem = _simulating(check)
        if not problem:
            end, message = End.FAILED, str(check.get("message", ""))
    elif observed and progressing.get("status") == "False" and ready >= replicas and not pending:
        done = f"configuration {status.get('configHash', '')} runs; {pods}"
        end, message = settled(kubescheduler if is_ours(scheduler) else {}, done, left_out)
    wait = str(progressing.get("message") or pods) if moves else pods
    waits = {name: wait} if end is None else {}
    shown = problem if end is None else ""
    running = str(status.get("configHash") or "")
    return SchedulerRollout(running, pods, shown, end, message, waits, pending)


def scheduler_changes(before: SchedulerRollout | None, after: SchedulerRollout) -> list[str]:
    """Return one line per change in `after`."""
    lines = []
    if before is None or before.configuration != after.configuration:
        lines.append(f"configuration: {after.configuration or 'none yet'}")
    if before is None or before.pods != after.pods:
        lines.append(after.pods)
    known_waits = before.waits.values() if before is not None else ()
    lines += [wait for wait in after.waits.values() if wait not in known_waits]
    lines += _pending_changes(before, after)
    if after.problem and (before is None or before.problem != after.problem):
        lines.append(after.problem)
    return [line for line in dict.fromkeys(lines) if line]


# --- either of them ------------------------------------------------------------------------------


async def follow(
    api: ApiClient,
    platform: Platform,
    scheduler: Object | None,
    report: Callable[[str], None],
    seconds: float | None,
) -> int:
    """Follow the rollout of a SecondaryScheduler, or (None) of static Pods, as `watch` does it."""
    if scheduler is None:
        return await watch(
            lambda: control_plane_state(api, platform), report, seconds, report_changes
        )
    name = str(scheduler["metadata"]["name"])
    return await watch(
        lambda: scheduler_state(api, platform, name), report, seconds, scheduler_changes
    )


async def control_plane_state(api: ApiClient, platform: Platform) -> RolloutState:
    """Read the state of the rollout of static Pods."""
    kubescheduler = await get_kubescheduler(api)
    removed = management_state(kubescheduler).state == REMOVED
    # Nothing that is attached to it is observed after its removal.
    attached = {} if removed else await _attached(api, {CONTROL_PLANE})
    pending = await _pending(api, platform, attached)
    return read_state(kubescheduler, await _source(api), pending)


async def scheduler_state(api: ApiClient, platform: Platform, name: str) -> SchedulerRollout:
    """Read the state of the rollout of a SecondaryScheduler."""
    current = await find_scheduler(api, platform, name) or {}
    own = {name, CONTROL_PLANE} if is_ours(current) else {name}
    attached = await _attached(api, own)
    pending, left_out = await _pending(api, platform, attached), _refused(attached)
    source = await _source(api)
    return read_scheduler(current, await get_kubescheduler(api), source, pending, left_out)


async def _attached(api: Api, schedulers: Collection[str]) -> dict[str, Object]:
    """Return the objects of these schedulers, by kind and name.

    Kinds that are not installed, or that the user may not read, are left out.
    """
    attached: dict[str, Object] = {}
    for resource in (SCHEDULER_PROFILES, SCHEDULER_EXTENDERS, OPERATOR_SETTINGS):
        with suppress(Forbidden):
            for name, obj in (await list_by_name(api, resource) or {}).items():
                if scheduler_of(mapping(obj.get("spec"))) in schedulers:
                    attached[f"{resource.kind} {name}"] = obj
    return attached


def _refused(attached: Mapping[str, Object]) -> dict[str, str]:
    """Return the objects whose last edit is not in use, and why."""
    conditions = {
        name: condition_in(mapping(obj.get("status")), names.ACCEPTED)
        for name, obj in attached.items()
    }
    return {
        name: str(condition.get("message") or condition.get("reason", ""))
        for name, condition in conditions.items()
        if condition.get("status") == "False"
    }


async def _pending(
    api: ApiClient, platform: Platform, attached: Mapping[str, Object]
) -> dict[str, str]:
    """Return the attached objects that will cause another rollout, and what each one waits for.

    Without an operator, nothing is rolled out, and its reports are of an earlier time.
    """
    pending: dict[str, str] = {}
    lease = LEASES.named(platform.operator.lease, platform.operator_namespace)
    with suppress(Forbidden):
        observed = await find_object(api, lease)
        place = f"{lease.namespace}/{lease.name}"
        if problem := lease_problem(observed, place, "operator", api.clock.now()):
            pending["operator"] = problem
    return pending | {name: wait for name, obj in attached.items() if (wait := awaited(obj))}


def awaited(obj: Mapping[str, Any]) -> str:
    """Return what an object waits for before it is in a revision; empty: nothing."""
    status = mapping(obj.get("status"))
    if status.get("observedGeneration") != mapping(obj.get("metadata")).get("generation"):
        return "the operator has not observed its last edit"
    available = condition_in(status, names.AVAILABLE)
    degraded = condition_in(status, names.DEGRADED).get("status") == "True"
    # Until its agents were Ready once, no configuration calls it.
    if available.get("reason") in (NOT_CALLED, NOT_READY) and not status.get("endpoint"):
        return "" if degraded else str(available.get("message") or "its agents are not Ready")
    return ""


async def _source(api: Api) -> Object | None:
    """Return the Scheduler "cluster"; None if it does not exist, or the user may not read it."""
    try:
        return await find_singleton(api, SCHEDULERS)
    except Forbidden:
        return None


State = TypeVar("State", RolloutState, SchedulerRollout)


async def watch(
    poll: Callable[[], Awaitable[State]],
    report: Callable[[str], None],
    seconds: float | None,
    changes: Callable[[State | None, State], Sequence[str]],
) -> int:
    """Poll and report changes until the rollout ends; return 0 if it succeeds, else 1.

    `seconds` None: unlimited. `changes` has one line for each change between two states.
    """
    before: State | None = None
    same = 0
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    state = await poll()
                except Unavailable as error:
                    report(f"{error}; retrying")
                    await asyncio.sleep(INTERVAL)
                    continue
                for line in changes(before, state):
                    report(line)
                same = same + 1 if before == state else 1
                if state.end is not None and same >= CONFIRMATIONS:
                    report(f"{state.end.value}: {state.message}")
                    return 0 if state.end is End.DONE else 1
                before = state
                await asyncio.sleep(INTERVAL)
    except TimeoutError:
        waits = {**before.waits, **before.pending} if before is not None else {}
        report(_unfinished(seconds, waits))
        return 1


def _pending_changes(before: State | None, after: State) -> list[str]:
    known = before.pending if before is not None else {}
    return [
        f"{name}: {wait}" for name, wait in sorted(after.pending.items()) if known.get(name) != wait
    ]


def _unfinished(seconds: float | None, waits: Mapping[str, str]) -> str:
    named = [f"{name}: {wait}" for name, wait in sorted(waits.items())]
    return "; ".join([f"not finished after {seconds:g} s", *named])
