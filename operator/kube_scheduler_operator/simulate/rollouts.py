"""The old pods of a Deployment whose new pod waits: a rollout keeps them until new ones are ready.

Source: the Deployment controller (rolling.go) of Kubernetes 1.35: with maxSurge 0, an old pod ends
before a new one is created.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..base.objects import controller_of
from .kinds import PODS, REPLICA_SETS, Object
from .owners import owner_of
from .world import World

DEPLOYMENT: Final = "Deployment"
FIELD: Final = "spec.strategy.rollingUpdate"
ENDING_FIRST: Final = "set maxSurge to 0 and maxUnavailable to 1"
"""An old pod ends before a new one starts."""


@dataclass(frozen=True, slots=True)
class UnfinishedRollout:
    deployment: str  # namespace/name
    old: tuple[Object, ...]  # its pods of other versions of the template, on nodes


def rollout_of(world: World, pod: Mapping[str, Any]) -> UnfinishedRollout | None:
    """Return the rollout of which a pod is a new one; None: it has no old ones."""
    own = controller_of(pod) or {}
    replica_set = world.get(REPLICA_SETS, str(own.get("name")), pod["metadata"]["namespace"])
    if own.get("kind") != REPLICA_SETS.kind or replica_set is None:
        return None
    return rollout_to(world, replica_set)


def rollout_to(world: World, replica_set: Mapping[str, Any]) -> UnfinishedRollout | None:
    """Return the rollout whose new pods are those of a ReplicaSet; None: there are no old ones."""
    metadata = replica_set["metadata"]
    namespace, owner = metadata["namespace"], owner_of(replica_set)
    if not owner.startswith(f"{DEPLOYMENT}/"):
        return None
    others = {
        f"{REPLICA_SETS.kind}/{other['metadata']['name']}"
        for other in world.all(REPLICA_SETS)
        if other["metadata"]["namespace"] == namespace
        and owner_of(other) == owner
        and other["metadata"]["name"] != metadata["name"]
    }
    if not others:
        return None
    names = [name.partition("/")[2].encode() for name in others]
    old = tuple(
        found
        for (where, _), entry in world.objects[PODS].items()
        if where == namespace
        and entry.node
        and any(name in entry.content for name in names)
        and owner_of(found := entry.object()) in others
    )
    deployment = f"{namespace}/{owner.removeprefix(f'{DEPLOYMENT}/')}"
    return UnfinishedRollout(deployment, old) if old else None
