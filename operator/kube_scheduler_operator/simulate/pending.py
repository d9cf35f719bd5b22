"""All waiting pods by cause, as kube-scheduler sees them now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import ClassVar, Final

from ..base.field_types import named
from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_MESSAGE
from ..base.progress import step
from .claim_bindings import awaited
from .decided_by import DecidedBy
from .decisions import failed_attempt
from .diagnosis import (
    BINDING,
    FAILED,
    GATED,
    GROUP,
    IDLE,
    NOT_SERVED,
    NOT_SIMULATED,
    QUEUED,
    UNSCHEDULABLE,
    Diagnosis,
    outcome_of_fitting,
)
from .extenders import seeing
from .fix import Fix
from .kinds import Object, pod_name
from .missing_pods import MissingPods
from .new_nodes import ComingNode, NewNode
from .other_schedulers import where_to_look
from .owners import workload_of
from .pending_groups import unread_groups, waits_of_groups
from .pod_groups import group_name
from .preemption import nomination
from .probes import acceptances
from .run_options import RunOptions, gates_of, serving
from .scheduling_gates import removers
from .selector_constraints import NO_LABELS, demanded_labels
from .shared_runs import SharedRuns
from .why import explain_in
from .why_group import explain_group_with
from .world import UNKNOWN_TIME, World

EXPLAINED: Final = (UNSCHEDULABLE, GROUP)


@dataclass(slots=True)
class WaitingGroup:
    """Pods that wait for the same reason."""

    DERIVED: ClassVar = ("fix", "new_nodes", "coming_nodes")

    kind: str  # an outcome of diagnosis.py
    cause: str  # in one line
    since: str  # when the oldest pod was created; empty: unknown
    owners: list[str]  # what a user edits to change the pods, as Kind/name
    pods: list[str]  # namespace/name, oldest first
    unread: list[str] = named("unreadGroups", default_factory=list)  # of pods, and why, if any is
    tried: bool = False  # whether changes were tried
    group_fixes: list[Fix] = field(default_factory=list)  # changes of the PodGroup of the oldest
    # of the oldest one, or of the pod that its PodGroup waits for; None: not tried, or none waits
    diagnosis: Diagnosis | None = None

    @property
    def fix(self) -> str | None:
        """The first change with which the oldest pod fits; None: not tried, or none helps."""
        fixes = [*self.group_fixes, *(self.diagnosis.fixes if self.diagnosis else ())]
        return next((fix.text for fix in fixes), None)

    @property
    def new_nodes(self) -> list[NewNode]:
        return self.diagnosis.new_nodes if self.diagnosis else []

    @property
    def coming_nodes(self) -> list[ComingNode]:
        return self.diagnosis.coming_nodes if self.diagnosis else []


@dataclass(frozen=True, slots=True)
class WaitingPods:
    """All that wait in a namespace or a cluster."""

    groups: list[WaitingGroup]
    missing: list[MissingPods]  # that the API server does not let workloads create
    decided_by: DecidedBy | None
    notes: list[str]  # limits of the answer


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
    by_cause: dict[tuple[str, str], list[Object]] = {}

    def put(kind: str, text: str, pod: Object) -> None:
        by_cause.setdefault((kind, foreign(text, FOREIGN_MESSAGE)), []).append(pod)

    tried: list[Object] = []
    for pod in pods:
        gates = [str(gate.get("name")) for gate in pod["spec"].get("schedulingGates") or ()]
        name = pod["spec"]["schedulerName"]
        if gates:
            who = "; ".join(removers(pod, gates))
            many = "s" * (len(gates) > 1)
            put(GATED, f"has the scheduling gate{many} {', '.join(gates)}; {who}", pod)
        elif (service := serving(options, name)).options is None:
            problem = service.problem + where_to_look(pod, world.groups)
            put(NOT_SIMULATED if service.exists else NOT_SERVED, problem, pod)
        else:
            tried.append(pod)
    of_groups = await waits_of_groups(world, options, tried)
    async with SharedRuns(tried) as runs:
        accepted = await acceptances(world, options, tried, runs.run)
        read_gates = cache(partial(gates_of, options))
        for pod, acceptance in zip(tried, accepted, strict=True):
            if cause := of_groups.causes.get(pod_name(pod)):
                put(GROUP, cause, pod)
            elif acceptance:
                idle_now = (idle or {}).get(pod["spec"]["schedulerName"], "")
                waits = awaited(pod, world, read_gates)
                put(*_fitting(pod, options, idle_now, waits), pod)
            else:
                texts = (_demanding(text, pod) for text in sorted(acceptance.reasons))
                own = filter(None, (nomination(world, pod), *texts))
                put(UNSCHEDULABLE, "; ".join(own), pod)
        groups = [_group(world, options, *key, pods) for key, pods in by_cause.items()]
        groups.sort(key=lambda group: (-len(group.pods), group.since))
        explained = in_turn(group for group in groups if group.kind in EXPLAINED)[:fixes]
        for number, group in enumerate(explained, 1):
            pod = by_cause[group.kind, group.cause][0]
            group.tried = True
            name = group_name(pod) if group.kind == GROUP else None
            with step("trying what helps", len(explained), "causes", done=number):
                if name is None:
                    group.diagnosis = await explain_in(runs.run, world, pod, options)
                    continue
                known = of_groups.together.get(name)
                whole = await explain_group_with(world, options, name, together=known)
                group.group_fixes, group.diagnosis = whole.group.fixes, whole.blocking
    return groups


def _group(
    world: World, options: RunOptions, kind: str, cause: str, pods: Sequence[Object]
) -> WaitingGroup:
    since = str(pods[0]["metadata"].get("creationTimestamp", ""))
    owners = list(dict.fromkeys(workload_of(world, pod) for pod in pods))
    names = list(map(pod_name, pods))
    since = "" if since == UNKNOWN_TIME else since
    return WaitingGroup(kind, cause, since, owners, names, unread_groups(options, pods))


def _demanding(reason: str, pod: Object) -> str:
    """Add the labels that a pod demands to a reason for which those are the cause."""
    demanded = demanded_labels(pod["spec"]) if NO_LABELS in reason else ""
    return f"{reason} ({demanded})" if demanded else reason


def in_turn(groups: Iterable[WaitingGroup]) -> list[WaitingGroup]:
    """Sort groups so that each namespace has one after the other: none crowds out another."""
    turns: Counter[str] = Counter()
    ordered = []
    for group in groups:
        namespace, _, _ = group.pods[0].partition("/")
        ordered.append((turns[namespace], group))
        turns[namespace] += 1
    return [group for _, group in sorted(ordered, key=lambda item: item[0])]


def _fitting(
    pod: Object, options: RunOptions, idle: str, binding: Sequence[str]
) -> tuple[str, str]:
    """Return the kind and the cause of a pod that fits.

    `idle` is why nothing schedules it, `binding` what its scheduler waits for.
    """
    error = failed_attempt(pod)
    outcome = outcome_of_fitting(idle, error, binding)
    causes = {
        BINDING: f"fits; {'; '.join(binding)}",
        IDLE: f"fits; {idle}",
        FAILED: f"fits, but its last attempt ended with an error: {error}",
        QUEUED: f"fits: it is in the queue, or backs off{_unless(pod, options)}",
    }
    return outcome, causes[outcome]


def _unless(pod: Object, options: RunOptions) -> str:
    """Name the extenders that may reject a pod although it fits."""
    service = serving(options, pod["spec"]["schedulerName"])
    left_out = seeing(service.options.left_out, pod) if service.options is not None else ()
    return f", unless {' or '.join(left_out)} rejects it, which is left out" if left_out else ""
