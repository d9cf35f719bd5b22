"""What kube-scheduler's preemption does for a pod, in sentences, and whose room it waits for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_NAME, FOREIGN_REASON
from ..config.language.versions import Version
from ..kube.label_selector import matches, requirements
from .decisions import UNSCHEDULABLE, PodDecision
from .kinds import BUDGETS, PODS, Object, pod_name
from .leaving import LeavingPod, described
from .nominations import nominated
from .probes import reasons
from .spread_constraints import EMPTY_SELECTS_ALL
from .world import World

_BEGINS: Final = "preemption: "
_NEVER: Final = "not eligible due to preemptionPolicy=Never"
_NO_VICTIMS: Final = "No preemption victims found for incoming pod"
_NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
_NAMED: Final = 3


def victims_on(world: World, node: str, pod: Object) -> list[LeavingPod]:
    """Return the pods on a node that terminate and that a pod may have preempted."""
    if not node:
        return []
    priority = priority_of(pod)
    return [
        described(other, world)
        for entry in world.objects[PODS].values()
        if entry.node == node and b'"deletionTimestamp"' in entry.content
        if priority_of(other := entry.object()) < priority
    ]


def priority_of(pod: Mapping[str, Any]) -> int:
    return int(pod["spec"].get("priority") or 0)


def sentences(
    world: World,
    pod: Object,
    decision: PodDecision,
    victims: Sequence[LeavingPod],
    version: Version | None = None,
) -> Iterator[str]:
    """Describe what preemption does for a pod that fits on no node now.

    `victims` are those that terminate on the node to which it is nominated, and `version` is that
    of the kube-scheduler that decided.
    """
    before = nominated(pod)
    node = decision.nominated or before
    if decision.preempted:
        count = len(decision.preempted)
        yield (
            f"kube-scheduler would preempt {count} {'pod' if count == 1 else 'pods'} with a lower "
            f"priority on {decision.node or node}: {', '.join(decision.preempted)}."
        )
        every = version is not None and version >= EMPTY_SELECTS_ALL
        yield from _budgets(world, decision.preempted, every=every)
    elif node and victims:
        verb = "is" if before == node else "would be"
        yield f"It {verb} nominated to node {node} and {_waits(victims)}."
    elif before and not decision.node:
        yield f"It is nominated to node {before}: kube-scheduler keeps room for it there."
    elif decision.reason == UNSCHEDULABLE:
        yield from _no_help(pod, decision.message)


def nomination(world: World, pod: Object) -> str:
    """Return, for a waiting pod, that it is nominated and what it waits for; empty if it is not."""
    node = nominated(pod)
    victims = victims_on(world, node, pod)
    return f"is nominated to node {node}{' and ' * bool(victims)}{_waits(victims)}" if node else ""


def _waits(victims: Sequence[LeavingPod]) -> str:
    if not victims:
        return ""
    named = "; ".join(map(end_of, victims[:_NAMED]))
    more = f"; … and {len(victims) - _NAMED} more" if len(victims) > _NAMED else ""
    pods = "a pod" if len(victims) == 1 else "pods"
    return f"waits for {pods} with a lower priority there: {named}{more}"


def _no_help(pod: Object, message: str) -> Iterator[str]:
    _, found, why = message.partition(_BEGINS)
    if not found:
        return  # no plugin of the profile preempts, or this is not known
    if why.startswith(_NEVER):
        name = foreign(str(pod["spec"].get("priorityClassName") or ""), FOREIGN_NAME)
        origin = f" (PriorityClass {name})" if name else ""
        yield f"Preemption is not tried: its preemptionPolicy is Never{origin}."
        return
    counted = Counter({text: count for count, text in reasons(why)})
    if set(counted) == {_NO_VICTIMS}:
        yield (
            "Preemption does not help: no pod with a lower priority would make room for it; its "
            f"priority is {priority_of(pod)}."
        )
        return
    if set(counted) == {_NOT_HELPFUL}:
        yield "Preemption does not help: without other pods, the same would exclude the nodes."
        return
    parts = [_part(text, count) for text, count in counted.most_common(_NAMED)]
    if parts:
        yield f"Preemption does not help: {'; '.join(parts)}."


def _part(reason: str, count: int) -> str:
    nodes = f"on {count} {'node' if count == 1 else 'nodes'}"
    if reason == _NO_VICTIMS:
        return f"{nodes}, no pod has a lower priority"
    if reason == _NOT_HELPFUL:
        return f"{nodes}, the cause is the same without other pods"
    shown = foreign(reason, FOREIGN_REASON)
    return f"{nodes}, it would not fit even without all pods of a lower priority ({shown})"


def _budgets(world: World, preempted: Sequence[str], *, every: bool) -> Iterator[str]:
    """Name the budgets that allow fewer disruptions: kube-scheduler breaks them if it must.

    `every`: whether an empty selector covers every pod; else it covers none, unlike for evictions
    (`filterPodsWithPDBViolation`).
    """
    gone = {name: world.get(PODS, *reversed(name.split("/", 1))) for name in preempted}
    for budget in world.all(BUDGETS):
        covered = [name for name, pod in gone.items() if pod and _covers(budget, pod, every=every)]
        allowed = int((budget.get("status") or {}).get("disruptionsAllowed") or 0)
        if len(covered) > max(allowed, 0):
            yield (
                f"That breaks PodDisruptionBudget {pod_name(budget)}: it covers {len(covered)} of "
                f"them and allows {allowed} disruption{'s' * (allowed != 1)}."
            )


def _covers(budget: Mapping[str, Any], pod: Mapping[str, Any], *, every: bool) -> bool:
    selector = (budget.get("spec") or {}).get("selector")
    return (
        (next(requirements(selector), None) is not None or (every and selector is not None))
        and budget["metadata"]["namespace"] == pod["metadata"]["namespace"]
        and pod["metadata"]["name"] not in ((budget.get("status") or {}).get("disruptedPods") or {})
        and matches(selector, pod["metadata"].get("labels") or {})
    )


def end_of(pod: LeavingPod) -> str:
    """Describe the end of a pod that terminates."""
    since = f" terminates since {pod.since}" if pod.since else " terminates"
    if pod.finalizers:
        return f"{pod.pod}{since} and stays until {_finalizers(pod)} removed"
    if not pod.node_is_ready:
        return f"{pod.pod}{since}, but node {pod.node} is not Ready and ends no pod"
    return f"{pod.pod}{since}"


def _finalizers(pod: LeavingPod) -> str:
    many = len(pod.finalizers) > 1
    return f"its finalizer{'s' * many} {', '.join(pod.finalizers)} {'are' if many else 'is'}"


def unblocking(pod: LeavingPod) -> str:
    """Return how a pod ends that hangs."""
    if pod.finalizers:
        many = "s" * (len(pod.finalizers) > 1)
        names = ", ".join(pod.finalizers)
        return (
            f"let the controller of finalizer{many} {names} finish, or remove the "
            f"finalizer{many} of Pod {pod.pod}"
        )
    return f"repair node {pod.node}, or delete it if it is gone: Pod {pod.pod} then ends"
