"""Pods that a group lacks: those that are tried, and the edits that create them."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from itertools import count, islice
from typing import Final

from .edits import Edit
from .kinds import CONTROLLERS, PODS, REPLICA_SETS, STATEFUL_SETS, Object, pod_name
from .owners import edited_object, owner_of, pods_of
from .rollouts import DEPLOYMENT
from .world import World

_COUNTED: Final = (DEPLOYMENT, *(kind.kind for kind in (CONTROLLERS, REPLICA_SETS, STATEFUL_SETS)))
"""The kinds whose spec.replicas decides how many Pods there are."""
_OF_THE_SERVER: Final = ("uid", "creationTimestamp")
_LONGEST: Final = 240
"""Characters of a name that have room for a number: the API server takes 253."""


def copies(world: World, like: Object, number: int) -> list[Object]:
    """Return new Pods like one that waits, with names that no Pod of the world has."""
    return list(islice(_copies(world, like), number))


def _copies(world: World, like: Object) -> Iterator[Object]:
    namespace, name = like["metadata"]["namespace"], like["metadata"]["name"]
    for number in count(1):
        own = f"{name[:_LONGEST]}-{number}"
        if (namespace, own) not in world.objects[PODS]:
            pod = copy.deepcopy(like)
            pod["metadata"] |= {"name": own, "uid": own}
            pod["status"] = {"phase": "Pending"}
            yield pod


def creation(world: World, like: Object, added: Sequence[Object]) -> tuple[Edit, ...]:
    """Return the edits that create Pods: of the number in the workload of `like`, if it has one."""
    title, _ = edited_object(world, like)
    kind, _, key = title.partition(" ")
    if kind not in _COUNTED:
        return tuple(Edit(f"{PODS.kind} {pod_name(pod)}", to=_manifest(pod)) for pod in added)
    namespace, _, name = key.partition("/")
    owner = owner_of(like).partition("/")[2]
    replica_set = world.get(REPLICA_SETS, owner, namespace) or {"spec": {}}
    before = replica_set["spec"].get("replicas")
    existing = before or len(pods_of(world, kind, namespace, name))
    return (Edit(title, "spec.replicas", before, existing + len(added)),)


def _manifest(pod: Object) -> Object:
    """Return a Pod as a user creates it, as far as a world has its fields."""
    metadata = {
        field: value for field, value in pod["metadata"].items() if field not in _OF_THE_SERVER
    }
    return {"apiVersion": "v1", "kind": PODS.kind, "metadata": metadata, "spec": pod["spec"]}
