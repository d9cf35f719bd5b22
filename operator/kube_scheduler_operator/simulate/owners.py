"""Finds the workload of a pod, and the pods of workloads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..base.limits import FOREIGN_NAME
from ..base.objects import controller_of
from .kinds import PODS, REPLICA_SETS, Object
from .world import EndedPod, World

_DEPLOYMENT: Final = "Deployment"


def owner_of(obj: Mapping[str, Any]) -> str:
    """Return the controller of an object as Kind/name, or the object itself."""
    owner = controller_of(obj)
    if owner is None:
        return f"{obj['kind']}/{obj['metadata']['name']}"
    # The API server limits neither of them.
    kind, name = (str(owner.get(key))[: FOREIGN_NAME + 1] for key in ("kind", "name"))
    return f"{kind}/{name}"


_TEMPLATES: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (_DEPLOYMENT, "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController"),
        "spec.template.",
    ),
    "Pod": "",
}
"""Where the objects of Kubernetes have the template of a pod."""


def edited_object(world: World, pod: Mapping[str, Any]) -> tuple[str, str]:
    """Return (Kind namespace/name of the object whose owner edits this pod, its path of the pod).

    Of an object whose fields are not known, the pod itself is returned: its fields show what to
    change there.
    """
    namespace, owner = pod["metadata"]["namespace"], owner_of(pod)
    kind, _, name = owner.partition("/")
    if kind == REPLICA_SETS.kind and (found := world.get(REPLICA_SETS, name, namespace)):
        kind, _, name = owner_of(found).partition("/")
    if kind not in _TEMPLATES:
        kind, name = PODS.kind, pod["metadata"]["name"]
    return f"{kind} {namespace}/{name}", _TEMPLATES[kind]


def pods_of(world: World, kind: str, namespace: str, name: str) -> list[Object]:
    """Return the pods of a workload: those that wait first, each group by age.

    Those without a node that terminate come last: kube-scheduler does not try them.
    """
    owners = _controllers(world, kind, namespace, name)
    pods = []
    for (where, _), entry in world.objects[PODS].items():
        if where == namespace and owner_of(pod := entry.object()) in owners:
            ends = not entry.node and "deletionTimestamp" in pod["metadata"]
            created = str(pod["metadata"]["creationTimestamp"])
            pods.append((ends, bool(entry.node), created, pod))
    return [pod for *_, pod in sorted(pods, key=lambda row: row[:3])]


def ended_pods_of(world: World, kind: str, namespace: str, name: str) -> dict[str, EndedPod]:
    """Return the pods of a workload that have ended, by name."""
    owners = _controllers(world, kind, namespace, name)
    return {
        pod: ended
        for (where, pod), ended in sorted(world.ended.items())
        if where == namespace and ended.owner in owners
    }


def _controllers(world: World, kind: str, namespace: str, name: str) -> set[str]:
    """Return who controls the pods of a workload, as Kind/name: itself or its ReplicaSets."""
    owners = {f"{kind}/{name}"}
    if kind != _DEPLOYMENT:
        return owners
    return {
        f"{REPLICA_SETS.kind}/{replica_set['metadata']['name']}"
        for replica_set in world.all(REPLICA_SETS)
        if replica_set["metadata"]["namespace"] == namespace and owner_of(replica_set) in owners
    }
