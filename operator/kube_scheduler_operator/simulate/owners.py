"""Finds the workload of a pod, and the pods of workloads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..base.limits import FOREIGN_NAME
from ..base.objects import controller_of, mapping
from .kinds import PODS, REPLICA_SETS, TEMPLATE_HASH, Object
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


def workload_of(world: World, pod: Mapping[str, Any]) -> str:
    """Return what a user edits to change a pod, as Kind/name: its controller, or its Deployment.

    A ReplicaSet that is not in the world shows its Deployment by its name, which is that of the
    Deployment with the hash in the label of the pod.
    """
    owner, metadata = owner_of(pod), pod["metadata"]
    kind, _, name = owner.partition("/")
    if kind != REPLICA_SETS.kind:
        return owner
    if found := world.get(REPLICA_SETS, name, metadata["namespace"]):
        return owner_of(found)
    deployment, _, hashed = name.rpartition("-")
    known = deployment and mapping(metadata.get("labels")).get(TEMPLATE_HASH) == hashed
    return f"{_DEPLOYMENT}/{deployment}" if known else owner


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
    namespace = pod["metadata"]["namespace"]
    kind, _, name = workload_of(world, pod).partition("/")
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
        if where == namespace and _is_of(world, pod := entry.object(), owners):
            ends = not entry.node and "deletionTimestamp" in pod["metadata"]
            created = str(pod["metadata"]["creationTimestamp"])
            pods.append((ends, bool(entry.node), created, pod))
    return [pod for *_, pod in sorted(pods, key=lambda row: row[:3])]


def _is_of(world: World, pod: Object, owners: set[str]) -> bool:
    """Return whether one of these controls a pod, or its ReplicaSet that is not in the world."""
    return owner_of(pod) in owners or workload_of(world, pod) in owners


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
    return owners | {
        f"{REPLICA_SETS.kind}/{replica_set['metadata']['name']}"
        for replica_set in world.all(REPLICA_SETS)
        if replica_set["metadata"]["namespace"] == namespace and owner_of(replica_set) in owners
    }
