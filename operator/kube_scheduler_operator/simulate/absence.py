"""Kinds of which a world has nothing, because the files lack them or the user may not list them.

That an object of them does not exist is not known then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..kube.resource import Resource
from .kinds import (
    CLAIM_TEMPLATES,
    CLAIMS,
    CSI_CAPACITIES,
    CSI_DRIVERS,
    CSI_NODES,
    DEVICE_CLASSES,
    KINDS,
    PODS,
    REPLICA_SETS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    STORAGE_CLASSES,
    VOLUMES,
)
from .world import World

_STORAGE: Final = (CLAIMS, VOLUMES, STORAGE_CLASSES, CSI_NODES, CSI_DRIVERS, CSI_CAPACITIES)
_DEVICES: Final = (RESOURCE_CLAIMS, CLAIM_TEMPLATES, RESOURCE_SLICES, DEVICE_CLASSES)
_REFERENCES: Final = (
    (b'"persistentVolumeClaim"', CLAIMS, _STORAGE),
    (b'"resourceClaims"', RESOURCE_CLAIMS, _DEVICES),
    (b'"kind":"ReplicaSet"', REPLICA_SETS, (REPLICA_SETS,)),
)
"""What a Pod has that refers to a kind, and what has to be read with it."""


def unread_in_files(world: World) -> dict[Resource, str]:
    """Return the kinds of which the files of a world have nothing, with the sentence."""
    return {
        resource: f"the files have no {resource.kind}"
        for resource in KINDS
        if not world.objects[resource]
    }


def lacking(world: World) -> Iterator[str]:
    """Yield, as one note, the kinds that the files lack and to which the Pods in them refer."""
    entries = world.objects[PODS].values()
    pods = [entry.content for entry in entries]
    waiting = [entry.content for entry in entries if not entry.node]
    kinds: list[str] = []
    plurals: list[str] = []
    for words, resource, needed in _REFERENCES:
        # A ReplicaSet matters to what is not created and to what a rollout replaces.
        having = waiting if resource is REPLICA_SETS else pods
        if resource in world.unread and any(words in content for content in having):
            kinds.append(resource.kind)
            plurals += (each.plural for each in needed if each in world.unread)
    if kinds:
        *first, last = kinds
        named = f"{', '.join(first)} or {last}" if first else last
        yield (
            f"the files have no {named}, to which Pods refer: kubectl get {','.join(plurals)} "
            "-A -o yaml prints what is missing"
        )


def absent(world: World, resource: Resource, what: str, helps: str) -> tuple[str, str]:
    """Return (that an object does not exist, what helps), or that this is not known.

    `what` is the object as a part of the sentence, and `helps` what helps if it does not exist.
    """
    if why := world.unread.get(resource):
        return (
            f"{what} is not known: {why}",
            f"see whether it exists (kubectl get {resource.plural} -A), or {helps}",
        )
    return f"{what} does not exist", helps
