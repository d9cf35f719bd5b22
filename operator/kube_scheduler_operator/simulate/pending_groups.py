"""Why groups of waiting pods are not placed, many of them with few runs of kube-scheduler."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from .decisions import NOT_TRIED, PodDecision
from .kinds import Object, pod_name
from .pod_groups import (
    NEVER,
    GroupName,
    PodGroup,
    changed_group,
    find_group,
    forbid_preemption,
    gates_hold_groups,
    group_name,
    unenforced,
    unread,
)
from .probes import profile_named, without_preemption
from .run import Run
from .run_options import RunOptions, gates_of, serving
from .world import World

_MOST_NOTES: Final = 3
_WAIT_ON_NODES: Final = 35
"""The minor version in which pods wait on their nodes for the others of their group: such a pod
holds its room a moment longer than it exists."""


@dataclass(frozen=True, slots=True)
class GroupWaits:
    # namespace/name of a pod of a group that kube-scheduler reads -> why it is not placed; a pod
    # that is placed with its group is not in it
    causes: dict[str, str] = field(default_factory=dict)
    # the decisions that `explain_group` would get with a minCount of 1
    together: dict[GroupName, Mapping[str, PodDecision]] = field(default_factory=dict)


async def waits_of_groups(world: World, options: RunOptions, pods: Sequence[Object]) -> GroupWaits:
    """Return why pods of groups are not placed. Nothing is preempted.

    Raises:
        SimulationError: kube-scheduler could not be run.
    """
    found = GroupWaits()
    causes = found.causes
    tried: list[PodGroup] = []
    for group in _groups(world, options, pods):
        if cause := _cause_without_run(group, options):
            causes |= dict.fromkeys(map(pod_name, group.waiting), cause)
        else:
            tried.append(group)
    failed = []
    for group, decisions in await _decisions(world, options, tried):
        if not any(decision.node for decision in decisions.values()):
            failed.append(group)
            continue
        for name, decision in decisions.items():
            if not decision.node:
                causes[name] = f"{group.name.title} is placed without it: {_reason(decision)}"
    single = world
    for group in failed:
        single = changed_group(single, group.name, min_count=1)
    for group, decisions in await _decisions(single, options, failed):
        cause = _too_few(group, decisions)
        causes |= dict.fromkeys(map(pod_name, group.waiting), cause)
        if not group.root and not group.gated:  # which are tried with others, or without gates
            found.together[group.name] = decisions
    return found


def _groups(world: World, options: RunOptions, pods: Sequence[Object]) -> list[PodGroup]:
    """Return the groups of these pods that kube-scheduler reads."""
    found = {}
    for pod in pods:
        name = group_name(pod)
        service = serving(options, str(pod["spec"].get("schedulerName") or ""))
        if name is None or name in found or service.options is None:
            continue
        gates = gates_of(service.options)
        if not unread(gates, name):
            found[name] = find_group(world, name, gates)
    return [group for group in found.values() if group.waiting]


def _cause_without_run(group: PodGroup, options: RunOptions) -> str:
    """Return why no pod of a group is tried; empty: they are."""
    title, name = group.name.title, group.waiting[0]["spec"]["schedulerName"]
    service = serving(options, name)
    if not group.exists:
        return f"{title} does not exist, and kube-scheduler tries none of its Pods before it does"
    if service.options is None:
        return ""
    gates = gates_of(service.options)
    if group.lacks and not unenforced(gates, profile_named(service.options, name)):
        return f"{title} has {group.count} of at least {group.min_count} Pods (minCount)"
    if group.gated and gates_hold_groups(gates):
        gated = len(group.gated)
        return f"{title} waits for the scheduling gates of {gated} of its Pods"
    return ""


async def _decisions(
    world: World, options: RunOptions, groups: Sequence[PodGroup]
) -> list[tuple[PodGroup, Mapping[str, PodDecision]]]:
    """Return the decisions about the waiting pods of each group, alone and without preemption."""
    if not groups:
        return []
    world = world.copy()
    decided: list[tuple[PodGroup, Mapping[str, PodDecision]]] = []
    for group in groups:
        forbid_preemption(world, group)
    apart = gates_of(options).version.minor <= _WAIT_ON_NODES
    left = list(groups)
    while left:
        every = [pod for group in left for pod in (*group.waiting, *group.others)]
        async with Run(world, options, every) as run:
            is_used_up = False
            while left and not is_used_up:
                group = left.pop(0)
                pods = copy.deepcopy([*group.waiting, *group.others])
                for pod in pods:
                    pod["spec"]["preemptionPolicy"] = NEVER
                decisions = await run.schedule(pods)
                run.forget(pods)
                own = {pod_name(pod): decisions[pod_name(pod)] for pod in group.waiting}
                decided.append((group, own))
                is_used_up = apart or run.is_taken
    return decided


def untried(world: World, options: RunOptions, pods: Sequence[Object]) -> dict[str, str]:
    """Return why pods of groups are not tried, by namespace/name; `pods` are beside the world.

    They may be new, and groups of the same names may be new with them.
    """
    changed = world.copy()
    for pod in pods:
        changed.add(copy.deepcopy(pod))
    causes: dict[str, str] = {}
    for group in _groups(changed, options, pods):
        if cause := _cause_without_run(group, options):
            causes |= dict.fromkeys(map(pod_name, group.waiting), cause)
    return causes


def unread_groups(options: RunOptions, pods: Sequence[Object]) -> list[str]:
    """Return why kube-scheduler does not look at groups of these pods, a sentence for each."""
    notes: dict[str, None] = {}
    for pod in pods:
        name = group_name(pod)
        service = serving(options, str(pod["spec"].get("schedulerName") or ""))
        if name is None or service.options is None:
            continue
        if why := unread(gates_of(service.options), name):
            notes[f"{name.title}: {why}"] = None
    return list(notes)[:_MOST_NOTES]


def _too_few(group: PodGroup, decisions: Mapping[str, PodDecision]) -> str:
    apart = [decision for decision in decisions.values() if not decision.node]
    count = len(group.running) + len(decisions) - len(apart)
    text = f"{count} of {group.count} Pods of {group.name.title} can be placed at the same time"
    need = f", and {group.min_count} have to" if group.min_count else ""
    reason = f": {_reason(apart[0])}" if apart else ""
    return f"{text}{need}{reason}"


def _reason(decision: PodDecision) -> str:
    if decision.reason == NOT_TRIED:
        return "kube-scheduler does not try it"
    return without_preemption(decision.message) or decision.reason
