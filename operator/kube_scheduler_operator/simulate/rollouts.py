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


@dataclass(frozen=True, slots=True)
class UnfinishedRollout:
    deployment: str  # namespace/name
    old: tuple[Object, ...]  # its pods of other versions of the template, on nodes


def rollout_of(world: World, pod: Mapping[str, Any]) -> UnfinishedRollout | None:
    """Return the rollout of which a pod is a new one; None: it has no old ones."""
    namespace, own = pod["metadata"]["namespace"], controller_of(pod) or {}
    replica_set = world.get(REPLICA_SETS, str(own.get("name")), namespace)
    if own.get("kind") != REPLICA_SETS.kind or replica_set is None:
        return None
    owner = owner_of(replica_set)
    if not owner.startswith(f"{DEPLOYMENT}/"):
        return None
    others = {
        f"{REPLICA_SETS.kind}/{other['metadata']['name']}"
        for other in world.all(REPLICA_SETS)
        if other["metadata"]["namespace"] == namespace
        and owner_of(other) == owner
        and other["metadata"]["name"] != own.get("name")
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
