"""Why a group of pods waits, which of them fit together, and what would help.

Each statement was tried: the real kube-scheduler gets the group as it is, then with a minCount of 1
and without preemption, which shows the pods that fit at the same time, and then with each change.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_MESSAGE
from .constraint import Rank
from .decisions import NOT_TRIED, PodDecision
from .diagnosis import Diagnosis, GroupDiagnosis
from .edits import edits
from .fix import Fix
from .group_diagnosis import GroupDecision, GroupExplanation, GroupPlacement
from .kinds import Object, pod_name
from .more_pods import copies, creation
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
from .run import Run
from .run_options import RunOptions, gates_of, serving
from .why import explain
from .world import World

_MUTABLE_FROM: Final = 37
"""The minor version from which minCount of an existing group can be changed."""
_MOST_COPIES: Final = 500
"""Pods beside those of a group that are tried: its minCount may be any number."""
_PERMIT: Final = "it fits, and waits until minCount Pods of its group do"


async def explain_group(
    world: World, options: RunOptions, group: GroupName, focus: str = ""
) -> GroupDiagnosis:
    """Explain a group; of its pods that do not fit, that of the name `focus`."""
    return await explain_group_with(world, options, group, focus)


async def explain_group_with(
    world: World,
    options: RunOptions,
    group: GroupName,
    focus: str = "",
    together: Mapping[str, PodDecision] | None = None,
) -> GroupDiagnosis:
    """Explain a group; the decisions with a minCount of 1 may be known, by namespace/name."""
    gates = gates_of(options)
    waiting = find_group(world, group, gates).waiting
    scheduler = str(waiting[0]["spec"].get("schedulerName") or "") if waiting else ""
    answer = GroupExplanation(group.title, group.namespace, group.name, group.part, scheduler)
    whole = GroupDiagnosis(answer)
    service = serving(options, scheduler) if waiting else None
    if service is not None:
        answer.problem = service.problem
        gates = gates_of(service.options) if service.options is not None else gates
    found = find_group(world, group, gates)
    _describe(found, answer)
    answer.unread = unread(gates, group)
    if answer.unread or not found.exists or service is None or service.options is None:
        return whole
    answer.gates_hold = bool(found.gated) and gates_hold_groups(gates)
    answer.unenforced = unenforced(gates, profile_named(service.options, scheduler))
    trial = _Trial(world, service.options, found, mutable=gates.version.minor >= _MUTABLE_FROM)
    await trial.explain(whole, focus, together)
    return whole


def _describe(group: PodGroup, answer: GroupExplanation) -> None:
    answer.exists, answer.min_count, answer.missing = group.exists, group.min_count, group.lacks
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

    async def explain(
        self, whole: GroupDiagnosis, focus: str, together: Mapping[str, PodDecision] | None
    ) -> None:
        answer = whole.group
        if not answer.missing or answer.unenforced:
            decisions, victims = await self._place(self._world)
            answer.decision = GroupDecision(_placed(decisions), _pending(decisions), victims)
        now = answer.decision
        if now.placed:
            if now.pending and not now.preempted:
                whole.blocking = await self._blocking(now, focus)
        else:
            if together is None:
                lower = changed_group(self._world, self._group.name, min_count=1)
                together, _ = await self._place(lower, alone=True)
            apart = {name: without_preemption(text) for name, text in _pending(together).items()}
            answer.together = GroupPlacement(_placed(together), apart)
            if apart:
                whole.blocking = await self._blocking(answer.together, focus)
            if not answer.unenforced:
                answer.fixes = await self._fixes(answer)
        answer.blocking_pod = whole.blocking.pod if whole.blocking is not None else ""

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
        async with Run(world, self._options, pods) as run:
            decisions = await run.schedule(pods)
            victims = list(dict.fromkeys(name for name, _ in run.preempted))
        own = {name: decision for name, decision in decisions.items() if name in self._own}
        return own, victims

    async def _blocking(self, found: GroupPlacement, focus: str) -> Diagnosis:
        """Explain a pod that does not fit, once the others are where they fit."""
        apart = [pod for pod in self._group.waiting if pod_name(pod) in found.pending]
        # One that is not simulated has no causes.
        apart.sort(key=lambda pod: not self._is_simulated(pod))
        pod = next((pod for pod in apart if pod["metadata"]["name"] == focus), apart[0])
        world = self._world.copy()
        for other in self._group.waiting:
            if node := found.placed.get(pod_name(other)):
                placed = copy.deepcopy(other)
                placed["spec"]["nodeName"] = node
                placed["status"].pop("nominatedNodeName", None)
                world.add(placed)
        explanation = await explain(world, pod, self._options)
        explanation.preemption = []  # which is the group's
        return explanation

    def _is_simulated(self, pod: Object) -> bool:
        return serving(self._options, pod["spec"].get("schedulerName") or "").options is not None

    async def _fixes(self, answer: GroupExplanation) -> list[Fix]:
        """Return the changes of the group itself with which pods of it are placed."""
        fixes = []
        if 0 < answer.missing <= _MOST_COPIES:
            fixes.append(await self._with_more_pods(answer.missing))
        fitting = len(answer.running) + len(answer.together.placed)
        if answer.together.placed and fitting < answer.min_count:
            fixes.append(await self._with_min_count(fitting))
        if answer.topology and not answer.missing:
            fixes.append(await self._without_topology())
        return [fix for fix in fixes if fix is not None]

    async def _with_more_pods(self, count: int) -> Fix | None:
        like = self._group.waiting[0]
        added = copies(self._world, like, count)
        pods = "Pod" if count == 1 else "Pods"
        text = f"create {count} more {pods} of the group, like {pod_name(like)}"
        patch = creation(self._world, like, added)
        return await self._tried(self._world, Fix(text, (), rank=Rank.MEND, patch=patch), added)

    async def _with_min_count(self, count: int) -> Fix | None:
        name = self._group.name
        verb = "set" if self._mutable else f"create {name.object} again with"
        text = f"{verb} minCount {count} instead of {self._group.min_count}"
        changed = changed_group(self._world, name, min_count=count)
        return await self._changed(changed, text, Rank.RULE, name.min_count_field)

    async def _without_topology(self) -> Fix | None:
        name = self._group.name
        text = (
            f"create {name.object} again without schedulingConstraints: its Pods need not be in "
            f"one domain of {', '.join(self._group.topology)} then"
        )
        changed = changed_group(self._world, name, topology=False)
        return await self._changed(changed, text, Rank.DROP, name.topology_field)

    async def _changed(self, world: World, text: str, rank: Rank, field: str) -> Fix | None:
        """Try the object of the group as it is in a changed world."""
        name = self._group.name
        objects = (one.get(name.kind, name.name, name.namespace) for one in (self._world, world))
        before, after = (obj or {} for obj in objects)
        patch = edits(name.object, "", before, after)
        fix = Fix(text, (), rank=rank, object=name.object, field=field, patch=patch)
        return await self._tried(world, fix)

    async def _tried(self, world: World, fix: Fix, added: Sequence[Object] = ()) -> Fix | None:
        """Return a change with the nodes where pods of the group fit then; None: none does."""
        decisions, _ = await self._place(world, alone=True, added=added)
        nodes = tuple(sorted(set(_placed(decisions).values())))
        return replace(fix, nodes=nodes) if nodes else None


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
