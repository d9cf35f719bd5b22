"""The effect of another configuration on running and waiting pods.

Pods that differ only in their names, and run on one node, are tried once; which pods stand for
others on more nodes is that of `Replicas`. A running pod is tried as a new one, with its own place
free again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

import orjson

from ..base.foreign_text import foreign
from ..config.language.plugins.effective_plugins import effective_plugins
from .configuration import profiles_of
from .extenders import SimulatedExtender
from .kinds import NODES, PODS, Object, pod_name
from .probes import Acceptance, Accepted, acceptances, accepted_by_family
from .replicas import Replicas
from .run_options import RunOptions, gates_of
from .scenario import belongs_to_node
from .world import World

MOST_KINDS: Final = 2000
"""Kinds of pods that are tried; one takes some 30 ms. Pods that are tried together are one kind."""
MOST_UNPLACED: Final = 100
"""Kinds of running pods that fit nowhere today whose filters are tried one by one."""
NOT_TRIED: Final = ("preEnqueue", "postFilter", "reserve", "permit", "preBind", "bind")
"""Extension points that decide whether a pod gets a node, and that no probe reaches."""
_SHOWN: Final = 3
_REASON: Final = 300
"""Characters of a reason in a sentence; the operator keeps 2,000 of all sentences."""


@dataclass(frozen=True, slots=True)
class AlikePods:
    """Pods that differ only in their names, or stand for each other."""

    pods: tuple[str, ...]  # namespace/name
    first: Object  # the one that is tried
    kind: bytes  # the same for those that are tried together

    @property
    def namespace(self) -> str:
        return str(self.first["metadata"]["namespace"])

    @property
    def node(self) -> str:
        return str(self.first["spec"].get("nodeName") or "")


@dataclass(frozen=True, slots=True)
class Loss:
    """Pods that could no longer be placed, for one reason."""

    reason: str
    pods: list[str]  # namespace/name


@dataclass(slots=True)
class EditEffect:
    DERIVED: ClassVar = ("worse", "is_known")

    # running pods that have a place today and would have none as new pods
    lost: list[Loss] = field(default_factory=list)
    # running pods that would be placed, but not on their node
    elsewhere: list[str] = field(default_factory=list)
    # waiting pods that fit today and would not
    newly_waiting: list[Loss] = field(default_factory=list)
    # waiting pods that do not fit today and would
    newly_fitting: list[str] = field(default_factory=list)
    tried: int = 0
    # running pods that fit nowhere today, for which the edit may add an obstacle
    unplaced: list[str] = field(default_factory=list)
    # namespace -> number of pods that were not tried, because there are too many kinds
    left_out: dict[str, int] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)  # what the edit changes that no probe reaches
    # kind of pods that are never tried -> namespace/name
    omitted: dict[str, list[str]] = field(default_factory=dict)

    @property
    def worse(self) -> bool:
        return bool(self.lost or self.newly_waiting)

    @property
    def is_known(self) -> bool:
        """Whether all that the edit may change was tried."""
        return not (self.unplaced or self.left_out or self.changed)

    def sentences(self, before: str = "today", change: str = "the edit") -> Iterator[str]:
        """Yield the effect of a change; `before` is when pods were placed without it."""
        yield from self.known(before)
        yield from self.unknown(change)

    def known(self, before: str = "today") -> Iterator[str]:
        """Yield what was tried."""
        for running, losses in ((True, self.lost), (False, self.newly_waiting)):
            for loss in sorted(losses, key=lambda loss: -len(loss.pods)):
                number = _number(len(loss.pods), "running" if running else "waiting")
                shown = foreign(loss.reason, _REASON)
                yield f"{number} could no longer be placed: {shown} ({_named(loss.pods)})"
        if self.newly_fitting:
            yield f"{_number(len(self.newly_fitting), 'waiting')} could be placed"
        if self.elsewhere:
            number = _number(len(self.elsewhere), "running")
            yield (
                f"{number} could not be placed on their node again, but on others "
                f"({_named(self.elsewhere)})"
            )
        if not (self.worse or self.newly_fitting or self.elsewhere):
            count = self.tried - len(self.unplaced)
            who = f"each of {count} pods" if count > 1 else "1 pod"
            yield (
                f"{who} can be placed, or cannot, as {before}"
                if count
                else "there is no pod to place"
            )

    def unknown(self, change: str = "the edit") -> Iterator[str]:
        """Yield what the change may do that was not tried."""
        if self.unplaced:
            yield (
                f"{_number(len(self.unplaced), 'running')} without a place today may lose nodes to "
                f"{change} ({_named(self.unplaced)})"
            )
        if self.left_out:
            most = sorted(self.left_out.items(), key=lambda item: (-item[1], item[0]))
            where = _named([f"{namespace}: {count}" for namespace, count in most])
            yield (
                f"{sum(self.left_out.values())} pods were not tried, because there are more than "
                f"{MOST_KINDS} kinds of them (by namespace: {where})"
            )
        if self.changed:
            yield f"no simulation tries {', '.join(self.changed)}"

    def omissions(self) -> Iterator[str]:
        """Yield, as one sentence, the pods that are never tried."""
        kinds = [
            f"{len(pods)} {_pods(len(pods))} {kind} ({_named(pods)})"
            for kind, pods in sorted(self.omitted.items())
        ]
        if kinds:
            yield f"not tried: {', '.join(kinds)}"


def _number(count: int, state: str) -> str:
    return f"{count} {state} {_pods(count)}"


def _pods(count: int) -> str:
    return "pod" if count == 1 else "pods"


def _named(names: Sequence[str]) -> str:
    more = f", … and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


async def edit_effect(
    world: World,
    options: RunOptions,
    config: dict[str, Any],
    flags: list[str],
    extenders: list[SimulatedExtender],
) -> EditEffect:
    """Try the pods of a world with two configurations.

    `options` are those of today; the other arguments are those after the edit.
    """
    after = replace(options, config=config, flags=flags, extenders=tuple(extenders))
    return await effect_of(world, options, after)


async def effect_of(world: World, options: RunOptions, after: RunOptions) -> EditEffect:
    """Try the pods of a world with the options of today and with others.

    Raises:
        SimulationError: a kube-scheduler could not be run.
    """
    served = {profile["schedulerName"] for profile in profiles_of(options.config)}
    groups, others = chosen(alike(world, served, Replicas(world, options, after)))
    effect = EditEffect(changed=list(_changed(options, after)), omitted=omitted_pods(world, served))
    for group in others:
        effect.left_out[group.namespace] = effect.left_out.get(group.namespace, 0) + len(group.pods)
    firsts = [group.first for group in groups]
    old, new = [await acceptances(world, rules, firsts) for rules in (options, after)]
    nowhere: dict[bytes, list[AlikePods]] = {}
    for group, was, would in zip(groups, old, new, strict=True):
        _compare(effect, group, was, would)
        if group.node and not was and not would:
            nowhere.setdefault(group.kind, []).append(group)
    hindered = await _hindered(world, options, after, [groups[0] for groups in nowhere.values()])
    kinds = (nowhere[first.kind] for first in hindered)
    effect.unplaced = [name for groups in kinds for group in groups for name in group.pods]
    return effect


def _compare(effect: EditEffect, group: AlikePods, was: Acceptance, would: Acceptance) -> None:
    effect.tried += len(group.pods)
    node = group.node
    if was and not would:
        losses = effect.lost if node else effect.newly_waiting
        reason = "; ".join(would.reasons)
        if not any(loss.reason == reason for loss in losses):
            losses.append(Loss(reason, []))
        next(loss for loss in losses if loss.reason == reason).pods.extend(group.pods)
    elif would and not was and not node:
        effect.newly_fitting += group.pods
    elif node in was and node not in would:
        effect.elsewhere += group.pods


async def _hindered(
    world: World, options: RunOptions, after: RunOptions, nowhere: Sequence[AlikePods]
) -> list[AlikePods]:
    """Return the pods without a place today for which some filter accepts fewer nodes after.

    Today's obstacle, such as a full node, hides those that the edit adds. So each family of filters
    is tried alone; of pods that are too many for that, nothing is known.
    """
    tried = nowhere[:MOST_UNPLACED]
    firsts = [group.first for group in tried]
    old, new = [await accepted_by_family(world, rules, firsts) for rules in (options, after)]
    nodes = frozenset(name for _, name in world.objects[NODES])
    hindered = [
        group
        for group, was, would in zip(tried, old, new, strict=True)
        if was is None or would is None or _is_narrower(would, was, nodes)
    ]
    return [*hindered, *nowhere[MOST_UNPLACED:]]


def _is_narrower(would: Accepted, was: Accepted, nodes: frozenset[str]) -> bool:
    """Whether a family accepts fewer nodes; one that did not exist before accepted all."""
    return any(was.get(family, nodes) - accepted for family, accepted in would.items())


def _changed(before: RunOptions, after: RunOptions) -> Iterator[str]:
    """Name the plugins that differ at extension points that no probe reaches."""
    old, new = _not_tried(before), _not_tried(after)
    for name in sorted(old.keys() & new.keys()):
        for place in sorted(old[name].keys() | new[name].keys()):
            if old[name].get(place) != new[name].get(place):
                yield f"the plugins of profile {name} at {place}"


def _not_tried(options: RunOptions) -> dict[str, Mapping[str, Sequence[str]]]:
    """Profile -> extension point -> plugins; those of unknown extension points may be at any."""
    gates = gates_of(options)
    plugins: dict[str, Mapping[str, Sequence[str]]] = {}
    for profile in profiles_of(options.config):
        effective = effective_plugins(profile, gates)
        points = {
            point: [plugin.name for plugin in effective.points.get(point, ())]
            for point in NOT_TRIED
        }
        plugins[profile["schedulerName"]] = {**points, "unknown points": effective.unknown}
    return plugins


def alike(world: World, served: set[str], replicas: Replicas) -> list[AlikePods]:
    """Return the pods that these schedulers place, without those that are never tried."""
    found: dict[tuple[bytes, str], tuple[Object, list[str]]] = {}
    for entry in world.objects[PODS].values():
        pod = entry.object()
        spec, metadata = pod["spec"], pod["metadata"]
        if _omission(pod, served):
            continue
        own = {key: value for key, value in spec.items() if key != "nodeName"}
        place = [bool(entry.node), replicas.place(pod)]
        content = [metadata["namespace"], metadata.get("labels"), own, place]
        kind = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
        node = "" if replicas.stand_for_each_other(pod) else entry.node
        _, names = found.setdefault((kind, node), (pod, []))
        names.append(pod_name(pod))
    return [AlikePods(tuple(names), first, kind) for (kind, _), (first, names) in found.items()]


def omitted_pods(world: World, served: set[str]) -> dict[str, list[str]]:
    """Return the pods that are not tried, by kind."""
    found: dict[str, list[str]] = {}
    for pod in world.all(PODS):
        if kind := _omission(pod, served):
            found.setdefault(kind, []).append(pod_name(pod))
    return found


def _omission(pod: Object, served: set[str]) -> str:
    """Return of which kind of pods it is that is not tried; empty: it is tried."""
    if pod["spec"]["schedulerName"] not in served:
        return "of other schedulers"
    if "deletionTimestamp" in pod["metadata"]:
        return "being deleted"
    if pod["spec"].get("schedulingGates"):
        return "with scheduling gates"
    return "of DaemonSets or without a scheduler" if belongs_to_node(pod) else ""


def chosen(groups: Sequence[AlikePods]) -> tuple[list[AlikePods], list[AlikePods]]:
    """Return (the groups that are tried, the others).

    Each namespace has one kind after the other, its largest first, so that none crowds out another.
    """
    kinds: dict[tuple[str, bytes], list[AlikePods]] = {}
    for group in groups:
        kinds.setdefault((group.namespace, group.kind), []).append(group)
    sizes = {key: sum(len(group.pods) for group in own) for key, own in kinds.items()}
    turns: Counter[str] = Counter()
    ordered = []
    for key in sorted(kinds, key=lambda key: -sizes[key]):
        ordered.append((turns[key[0]], kinds[key]))
        turns[key[0]] += 1
    ordered.sort(key=lambda item: item[0])
    tried = [group for _, own in ordered[:MOST_KINDS] for group in own]
    return tried, [group for _, own in ordered[MOST_KINDS:] for group in own]
