"""Why a group of pods waits, which of them fit together, and what would help.

Each statement was tried: the real kube-scheduler gets the group as it is, then with a minCount of 1
and without preemption, which shows the pods that fit at the same time, and then with each change.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_MESSAGE
from .constraint import Rank
from .decisions import NOT_TRIED, PodDecision
from .diagnosis import Diagnosis, Fix
from .group_diagnosis import GroupExplanation
from .kinds import IMPOSSIBLE, Object, pod_name
from .pod_groups import (
    NEVER,
    GroupName,
    PodGroup,
    changed_group,
    find_group,
    forbid_preemption,
    gates_hold_groups,
    unenforced,
    unread,
)
from .probes import profile_named, without_preemption
from .run import Run, RunOptions, gates_of, serving
from .why import explain
from .world import World

_MUTABLE_FROM: Final = 37
"""The minor version from which minCount of an existing group can be changed."""
_MOST_COPIES: Final = 500
"""Pods beside those of a group that are tried: its minCount may be any number."""
_PERMIT: Final = "it fits, and waits until minCount Pods of its group do"


async def explain_group(
    world: World, options: RunOptions, group: GroupName, focus: str = ""
) -> GroupExplanation:
    """Explain a group; of its pods that do not fit, that of the name `focus`."""
    gates = gates_of(options)
    waiting = find_group(world, group, gates).waiting
    scheduler = str(waiting[0]["spec"].get("schedulerName") or "") if waiting else ""
    answer = GroupExplanation(group.title, group.namespace, group.name, group.part, scheduler)
    service = serving(options, scheduler) if waiting else None
    if service is not None:
        answer.problem = service.problem
        gates = gates_of(service.options) if service.options is not None else gates
    found = find_group(world, group, gates)
    _describe(found, answer)
    answer.unread = unread(gates, group)
    if answer.unread or not found.exists or service is None or service.options is None:
        return answer
    answer.gates_hold = bool(found.gated) and gates_hold_groups(gates)
    answer.unenforced = unenforced(gates, profile_named(service.options, scheduler))
    trial = _Trial(world, service.options, found, mutable=gates.version.minor >= _MUTABLE_FROM)
    await trial.explain(answer, focus)
    return answer


def _describe(group: PodGroup, answer: GroupExplanation) -> None:
    answer.exists, answer.min_count, answer.lacks = group.exists, group.min_count, group.lacks
    answer.topology, answer.composite = group.topology, group.root
    answer.running = {pod_name(pod): pod["spec"]["nodeName"] for pod in group.running}
    answer.waiting = [pod_name(pod) for pod in group.waiting]
    answer.gated = [pod_name(pod) for pod in group.gated]


class _Trial:
    """The runs for one group; `mutable` is whether its minCount can be changed."""

    def __init__(
        self, world: World, options: RunOptions, group: PodGroup, *, mutable: bool
    ) -> None:
        self._world, self._options, self._group = world, options, group
        self._mutable = mutable
        self._own = {pod_name(pod) for pod in group.waiting}

    async def explain(self, answer: GroupExplanation, focus: str) -> None:
        lacks = answer.lacks and not answer.unenforced
        if not lacks:
            decisions, answer.victims = await self._place(self._world)
            answer.placed = _placed(decisions)
            answer.pending = _pending(decisions)
        if answer.placed:
            if answer.pending and not answer.victims:
                answer.blocking = await self._blocking(answer.placed, answer.pending, focus)
            return
        decisions, _ = await self._place(
            changed_group(self._world, self._group.name, min_count=1), alone=True
        )
        answer.together = _placed(decisions)
        answer.apart = {
            name: without_preemption(reason) for name, reason in _pending(decisions).items()
        }
        if answer.apart:
            answer.blocking = await self._blocking(answer.together, answer.apart, focus)
        if not answer.unenforced:
            answer.fixes = await self._fixes(answer)

    async def _place(
        self, world: World, *, alone: bool = False, added: Sequence[Object] = ()
    ) -> tuple[dict[str, PodDecision], list[str]]:
        """Return the decisions about the waiting pods of the group, and the preempted pods.

        With `alone`, without preemption and scheduling gates; with `added`, beside more pods.
        """
        pods = copy.deepcopy([*self._group.waiting, *added, *self._group.others])
        if alone:
            world = world.copy()
            forbid_preemption(world, self._group)
            for pod in pods:
                pod["spec"]["preemptionPolicy"] = NEVER
                pod["spec"].pop("schedulingGates", None)
        async with Run(world, self._options) as run:
            decisions = await run.schedule(pods)
            victims = list(dict.fromkeys(name for name, _ in run.preempted))
        own = {name: decision for name, decision in decisions.items() if name in self._own}
        return own, victims

    async def _blocking(
        self, fitting: Mapping[str, str], pending: Mapping[str, str], focus: str
    ) -> Diagnosis:
        """Explain a pod that does not fit, once the others are where they fit."""
        apart = [pod for pod in self._group.waiting if pod_name(pod) in pending]
        pod = next((pod for pod in apart if pod["metadata"]["name"] == focus), apart[0])
        world = self._world.copy()
        for other in self._group.waiting:
            if node := fitting.get(pod_name(other)):
                placed = copy.deepcopy(other)
                placed["spec"]["nodeName"] = node
                placed["status"].pop("nominatedNodeName", None)
                world.add(placed)
        explanation = await explain(world, pod, self._options)
        explanation.preemption = []  # which is the group's
        return explanation

    async def _fixes(self, answer: GroupExplanation) -> list[Fix]:
        """Return the changes of the group itself with which pods of it are placed."""
        fixes = []
        fitting = len(answer.running) + len(answer.together)
        name = self._group.name
        if answer.together and fitting < self._group.min_count:
            changed = changed_group(self._world, name, min_count=fitting)
            verb = "set" if self._mutable else f"create {name.object} again with"
            text = f"{verb} minCount {fitting} instead of {self._group.min_count}"
            if (fix := await self._tried(changed, text)) is not None:
                fixes.append(replace(fix, object=name.object, field=name.min_count_field))
        if 0 < answer.lacks <= _MOST_COPIES:
            pods = "Pod" if answer.lacks == 1 else "Pods"
            like = answer.waiting[0]
            text = f"create {answer.lacks} more {pods} of the group, like {like}"
            added = list(self._copies(answer.lacks))
            if (fix := await self._tried(self._world, text, added)) is not None:
                fixes.insert(0, fix)
        if self._group.topology and not answer.lacks:
            text = (
                f"create {name.object} again without schedulingConstraints: its Pods need not be "
                f"in one domain of {', '.join(self._group.topology)} then"
            )
            fix = await self._tried(changed_group(self._world, name, topology=False), text)
            fixes += [fix] if fix is not None else []
        return fixes

    def _copies(self, count: int) -> Iterator[Object]:
        """Yield pods like the first one that waits."""
        for number in range(count):
            pod = copy.deepcopy(self._group.waiting[0])
            name = f"{IMPOSSIBLE}member-{number}"
            pod["metadata"] |= {"name": name, "uid": name}
            yield pod

    async def _tried(self, changed: World, text: str, added: Sequence[Object] = ()) -> Fix | None:
        decisions, _ = await self._place(changed, alone=True, added=added)
        nodes = tuple(sorted(set(_placed(decisions).values())))
        return Fix(text, nodes, rank=Rank.RULE) if nodes else None


def _placed(decisions: Mapping[str, PodDecision]) -> dict[str, str]:
    return {name: decision.node for name, decision in decisions.items() if decision.node}


def _pending(decisions: Mapping[str, PodDecision]) -> dict[str, str]:
    """Return why the other pods have no node, in the words of kube-scheduler where it has any."""
    return {name: _reason(decision) for name, decision in decisions.items() if not decision.node}


def _reason(decision: PodDecision) -> str:
    if decision.reason == NOT_TRIED:
        # To 1.35, a pod waits on its node for the others, and has no condition.
        return _PERMIT if decision.nominated else "kube-scheduler does not try it"
    return foreign(decision.message or decision.reason, FOREIGN_MESSAGE)
