"""All waiting pods by cause, as kube-scheduler sees them now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_MESSAGE
from .decisions import ERROR, scheduled_condition
from .diagnosis import Explanation, Fix
from .kinds import Object, pod_name
from .new_nodes import ComingNode, NewNode
from .other_schedulers import where_to_look
from .owners import owner_of
from .pending_groups import waits_of_groups
from .pod_groups import group_name
from .preemption import nomination
from .probes import acceptances
from .run import RunOptions, serving
from .shared_runs import Runs, SharedRuns
from .why import explain_in
from .why_group import explain_group
from .world import UNKNOWN_TIME, World

GATED: Final = "gated"
NOT_SERVED: Final = "no scheduler"
NOT_SIMULATED: Final = "not simulated"
UNSCHEDULABLE: Final = "unschedulable"
FAILED: Final = "failed"
QUEUED: Final = "queued"
IDLE: Final = "idle scheduler"
GROUP: Final = "group"


_EXPLAINED: Final = (UNSCHEDULABLE, GROUP)


@dataclass(slots=True)
class WaitingGroup:
    """Pods that wait for the same reason."""

    kind: str  # one of the constants above
    cause: str  # in one line
    pods: list[Object] = field(default_factory=list)  # oldest first
    # the smallest change with which the oldest one fits; None: not tried, or none helps
    fix: Fix | None = None
    tried: bool = False  # whether changes were tried
    # nodes that do not exist yet, for the oldest one
    new_nodes: list[NewNode] = field(default_factory=list)
    coming_nodes: list[ComingNode] = field(default_factory=list)

    @property
    def since(self) -> str:
        """When the oldest pod was created; empty: unknown."""
        since = str(self.pods[0]["metadata"].get("creationTimestamp", ""))
        return "" if since == UNKNOWN_TIME else since

    @property
    def owners(self) -> list[str]:
        """The controllers of the pods, as Kind/name."""
        return list(dict.fromkeys(owner_of(pod) for pod in self.pods))


async def waiting_groups(
    world: World,
    options: RunOptions,
    namespace: str | None = None,
    fixes: int = 0,
    idle: dict[str, str] | None = None,
) -> list[WaitingGroup]:
    """Return the waiting pods of a namespace, or of all (None), by cause; the largest group first.

    Changes are tried for the first `fixes` groups. `idle` has, for schedulerNames whose scheduler
    is not known to schedule now, the reason.
    """
    pods = [
        pod
        for pod in world.pending()
        if namespace in (None, pod["metadata"]["namespace"])
        and "deletionTimestamp" not in pod["metadata"]
    ]
    groups: dict[tuple[str, str], WaitingGroup] = {}

    def put(kind: str, text: str, pod: Object) -> None:
        cause = foreign(text, FOREIGN_MESSAGE)
        groups.setdefault((kind, cause), WaitingGroup(kind, cause)).pods.append(pod)

    tried: list[Object] = []
    for pod in pods:
        gates = [str(gate.get("name")) for gate in pod["spec"].get("schedulingGates") or ()]
        name = pod["spec"]["schedulerName"]
        if gates:
            put(GATED, f"has the scheduling gates {', '.join(gates)}", pod)
        elif (service := serving(options, name)).options is None:
            problem = service.problem + where_to_look(pod, world.groups)
            put(NOT_SIMULATED if service.exists else NOT_SERVED, problem, pod)
        else:
            tried.append(pod)
    of_groups = await waits_of_groups(world, options, tried)
    async with SharedRuns(tried) as runs:
        accepted = await acceptances(world, options, tried, runs.run)
        for pod, acceptance in zip(tried, accepted, strict=True):
            if cause := of_groups.get(pod_name(pod)):
                put(GROUP, cause, pod)
            elif acceptance.nodes:
                put(
                    *_fitting(pod, options, (idle or {}).get(pod["spec"]["schedulerName"], "")), pod
                )
            else:
                own = filter(None, (nomination(world, pod), *sorted(acceptance.reasons)))
                put(UNSCHEDULABLE, "; ".join(own), pod)
        ordered = sorted(groups.values(), key=lambda group: (-len(group.pods), group.since))
        for group in in_turn(group for group in ordered if group.kind in _EXPLAINED)[:fixes]:
            fixes_of_group, explained = await _explained(runs.run, world, options, group)
            group.tried = True
            if explained is not None:
                fixes_of_group += explained.fixes
                group.new_nodes, group.coming_nodes = explained.new_nodes, explained.coming_nodes
            group.fix = next(iter(fixes_of_group), None)
    return ordered


async def _explained(
    runs: Runs, world: World, options: RunOptions, group: WaitingGroup
) -> tuple[list[Fix], Explanation | None]:
    """Return what helps the PodGroup of the oldest pod, and why that pod, or one of it, waits."""
    pod = group.pods[0]
    name = group_name(pod) if group.kind == GROUP else None
    if name is None:
        return [], await explain_in(runs, world, pod, options)
    own = await explain_group(world, options, name)
    return list(own.fixes), own.blocking


def in_turn(groups: Iterable[WaitingGroup]) -> list[WaitingGroup]:
    """Sort groups so that each namespace has one after the other: none crowds out another."""
    turns: Counter[str] = Counter()
    ordered = []
    for group in groups:
        namespace = str(group.pods[0]["metadata"]["namespace"])
        ordered.append((turns[namespace], group))
        turns[namespace] += 1
    return [group for _, group in sorted(ordered, key=lambda item: item[0])]


def _fitting(pod: Object, options: RunOptions, idle: str) -> tuple[str, str]:
    """Return the kind and the cause of a pod that fits; `idle` is why nothing schedules it."""
    if idle:
        return IDLE, f"fits; {idle}"
    if error := _failed(pod):
        return FAILED, f"fits, but its last attempt ended with an error: {error}"
    return QUEUED, f"fits: it is in the queue, or backs off{_unless(pod, options)}"


def _failed(pod: Object) -> str:
    """Return the error of its scheduler's last attempt; empty if that ended without one."""
    last = scheduled_condition(pod)
    failed = last.get("status") == "False" and last.get("reason") == ERROR
    return str(last.get("message") or "without a message") if failed else ""


def _unless(pod: Object, options: RunOptions) -> str:
    """Name the extenders that may reject a pod although it fits."""
    service = serving(options, pod["spec"]["schedulerName"])
    left_out = service.options.left_out if service.options is not None else ()
    return f", unless {' or '.join(left_out)} rejects it, which is left out" if left_out else ""
