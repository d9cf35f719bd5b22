"""The effect of another configuration on running and waiting pods.

Pods that differ only in their names are tried once. A running pod is tried as a new one, with its
own place free again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson

from ..base.objects import controller_of
from ..kube.resource import KUBE_SCHEDULERS
from .configuration import profiles_of
from .extenders import SimulatedExtender
from .kinds import PODS, Object, pod_name
from .probes import acceptances
from .run import RunOptions
from .scenario import is_daemon
from .world import World

MOST_KINDS: Final = 2000
"""Kinds of pods that are tried; one takes some 30 ms."""


@dataclass(frozen=True, slots=True)
class AlikePods:
    """Pods that differ only in their names."""

    pods: tuple[str, ...]  # namespace/name
    first: Object  # the one that is tried; if it has a node, all have one


@dataclass(slots=True)
class EditEffect:
    # reason -> running pods that have a place today and would have none as new pods
    lost: dict[str, list[str]] = field(default_factory=dict)
    elsewhere: int = 0  # number of running pods that would be placed, but not on their node
    # reason -> waiting pods that fit today and would not
    newly_waiting: dict[str, list[str]] = field(default_factory=dict)
    # waiting pods that do not fit today and would
    newly_fitting: list[str] = field(default_factory=list)
    tried: int = 0
    left_out: int = 0  # number of pods that were not tried, because there are too many kinds

    def sentences(self) -> Iterator[str]:
        for running, losses in ((True, self.lost), (False, self.newly_waiting)):
            for reason, pods in sorted(losses.items(), key=lambda item: -len(item[1])):
                state = "running" if running else "waiting"
                number = f"{len(pods)} {state} {'pod' if len(pods) == 1 else 'pods'}"
                rest = f", … and {len(pods) - 3} more" if len(pods) > 3 else ""
                yield (
                    f"{number} could no longer be placed: {reason} ({', '.join(pods[:3])}{rest})"
                )
        if self.newly_fitting:
            count = len(self.newly_fitting)
            yield f"{count} waiting {'pod' if count == 1 else 'pods'} could be placed"
        if self.elsewhere:
            yield (
                f"{self.elsewhere} running pods could not be placed on their node again, but on "
                "others"
            )
        if not (self.lost or self.newly_waiting or self.newly_fitting or self.elsewhere):
            yield f"each of {self.tried} pods can be placed as today"
        if self.left_out:
            yield f"{self.left_out} more pods were not tried"


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
    all_groups = alike(world, {profile["schedulerName"] for profile in profiles_of(options.config)})
    effect = EditEffect(left_out=sum(len(group.pods) for group in all_groups[MOST_KINDS:]))
    groups = all_groups[:MOST_KINDS]
    firsts = [group.first for group in groups]
    old, new = [await acceptances(world, rules, firsts) for rules in (options, after)]
    for group, was, would in zip(groups, old, new, strict=True):
        effect.tried += len(group.pods)
        node = group.first["spec"].get("nodeName")
        if was.nodes and not would.nodes:
            losses = effect.lost if node else effect.newly_waiting
            losses.setdefault("; ".join(would.reasons), []).extend(group.pods)
        elif would.nodes and not was.nodes and not node:
            effect.newly_fitting += group.pods
        elif node in was.nodes and node not in would.nodes:
            effect.elsewhere += len(group.pods)
    return effect


def alike(world: World, served: set[str]) -> list[AlikePods]:
    """Return the pods that these schedulers place, without gated ones, the most first."""
    by_content: dict[bytes, tuple[Object, list[str]]] = {}
    for entry in world.objects[PODS].values():
        pod = entry.object()
        spec, metadata = pod["spec"], pod["metadata"]
        if spec["schedulerName"] not in served or spec.get("schedulingGates"):
            continue
        if is_daemon(pod) or (controller_of(pod) or {}).get("kind") == KUBE_SCHEDULERS.kind:
            continue  # made for a node; guards are the operator's own
        own = {key: value for key, value in spec.items() if key != "nodeName"}
        kind = [metadata["namespace"], metadata.get("labels"), own, bool(entry.node)]
        key = orjson.dumps(kind, option=orjson.OPT_SORT_KEYS)
        _, names = by_content.setdefault(key, (pod, []))
        names.append(pod_name(pod))
    groups = [AlikePods(tuple(names), first) for first, names in by_content.values()]
    return sorted(groups, key=lambda group: -len(group.pods))
