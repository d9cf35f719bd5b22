"""The old pods of a workload whose new pod waits: a rollout keeps them until new ones are ready.

Sources: the controllers of Deployments (rolling.go) and of DaemonSets (update.go) of Kubernetes
1.35: with maxSurge 0, an old pod ends before a new one is created.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..base.objects import controller_of, entries, mapping
from .kinds import DAEMON_SETS, PODS, REPLICA_SETS, Object
from .node_rules import NAME, REQUIRED
from .owners import owner_of
from .world import World

DEPLOYMENT: Final = "Deployment"
_REVISION: Final = "controller-revision-hash"
"""The label by which the pods of a DaemonSet differ between versions of its template."""
_FIELDS: Final = {
    DEPLOYMENT: "spec.strategy.rollingUpdate",
    DAEMON_SETS.kind: "spec.updateStrategy.rollingUpdate",
}
ENDING_FIRST: Final = "set maxSurge to 0 and maxUnavailable to 1"
"""An old pod ends before a new one starts."""


@dataclass(frozen=True, slots=True)
class UnfinishedRollout:
    kind: str  # of its workload
    name: str  # namespace/name
    # its pods of other versions of the template, on nodes; of a DaemonSet, on that of the new one
    old: tuple[Object, ...]

    @property
    def owner(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def field(self) -> str:
        """The field with maxSurge and maxUnavailable."""
        return _FIELDS[self.kind]


def rollout_of(world: World, pod: Mapping[str, Any]) -> UnfinishedRollout | None:
    """Return the rollout of which a pod is a new one; None: it has no old ones."""
    own = controller_of(pod) or {}
    if own.get("kind") == DAEMON_SETS.kind:
        return _of_daemon_set(world, pod)
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
    return UnfinishedRollout(DEPLOYMENT, deployment, old) if old else None


def _of_daemon_set(world: World, pod: Mapping[str, Any]) -> UnfinishedRollout | None:
    """Return the rollout of a DaemonSet that has an old pod on the node of the new one."""
    owner, namespace = owner_of(pod), pod["metadata"]["namespace"]
    affinity = mapping(mapping(pod["spec"].get("affinity")).get("nodeAffinity"))
    terms = map(mapping, entries(mapping(affinity.get(REQUIRED)).get("nodeSelectorTerms")))
    fields = [mapping(one) for term in terms for one in entries(term.get("matchFields"))]
    nodes = {str(value) for one in fields if one.get("key") == NAME
             for value in entries(one.get("values"))}  # fmt: skip
    revision = mapping(pod["metadata"].get("labels")).get(_REVISION)
    old = tuple(
        found
        for (where, _), entry in world.objects[PODS].items()
        if where == namespace
        and entry.node in nodes
        and owner_of(found := entry.object()) == owner
        and mapping(found["metadata"].get("labels")).get(_REVISION) != revision
    )
    name = f"{namespace}/{owner.partition('/')[2]}"
    return UnfinishedRollout(DAEMON_SETS.kind, name, old) if old and revision else None
