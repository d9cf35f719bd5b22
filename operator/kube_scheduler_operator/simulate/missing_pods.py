"""Finds the missing pods of workloads, which the API server refuses."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from .kinds import CONTROLLERS, LIMIT_RANGES, PODS, REPLICA_FAILURE, REPLICA_SETS, pod_name
from .owners import owner_of
from .quotas import makes_room, used_up
from .refusals import remedy
from .rollouts import ENDING_FIRST, rollout_to
from .world import World

_FORBIDDEN: Final = re.compile(r'^(?:[\w-]+ )?"[^"]*" is (?:forbidden|invalid): ')
"""The API server's prefix: the name of a pod that does not exist."""


@dataclass(frozen=True, slots=True)
class MissingPods:
    """Pods that the API server does not let a controller create."""

    owner: str  # the workload as Kind/name
    namespace: str
    count: int  # how many pods are missing; at least 1
    cause: str  # the reason of the API server
    fix: str  # the remedy, in the imperative; empty if the cause is not known


def missing_pods(world: World, namespace: str | None = None) -> list[MissingPods]:
    """Return the pods of a namespace, or of all (None), that are not created; most of them first.

    ReplicaSets, and so Deployments, and ReplicationControllers report this in their status; other
    workloads do so only in events. The pods themselves are counted, because a status is written
    later than its pods are created.
    """
    existing = Counter(_active_pods(world))
    missing: list[MissingPods] = []
    for resource in (REPLICA_SETS, CONTROLLERS):
        for obj in world.all(resource):
            where, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
            if namespace in (None, where):
                missing += _missing(world, obj, existing[where, f"{resource.kind}/{name}"])
    return sorted(missing, key=lambda pods: (-pods.count, pods.namespace, pods.owner))


def _active_pods(world: World) -> Iterator[tuple[str, str]]:
    """Yield namespace and controller of the pods that a ReplicaSet counts.

    It counts neither deleted ones nor ended ones; a world holds none that have ended.
    """
    for (where, _), entry in world.objects[PODS].items():
        pod = entry.object()
        if not pod["metadata"].get("deletionTimestamp"):
            yield where, owner_of(pod)


def _missing(world: World, obj: Mapping[str, Any], existing: int) -> Iterator[MissingPods]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    count = int(spec.get("replicas", 1)) - existing
    for condition in status.get("conditions") or ():
        if condition.get("type") == REPLICA_FAILURE and condition.get("status") == "True":
            cause = _FORBIDDEN.sub("", str(condition.get("message") or condition.get("reason")))
            if count > 0:
                namespace = obj["metadata"]["namespace"]
                ranges = [one for one in world.all(LIMIT_RANGES) if _is_in(namespace, one)]
                fix = remedy(cause, namespace, used_up(world, namespace), ranges)
                earlier = _ending_old_pods(world, obj, cause)
                fix = "; or ".join(filter(None, (earlier, fix)))
                yield MissingPods(owner_of(obj), namespace, count, cause, fix)


def _is_in(namespace: str, obj: Mapping[str, Any]) -> bool:
    return str(obj["metadata"]["namespace"]) == namespace


def _ending_old_pods(world: World, replica_set: Mapping[str, Any], cause: str) -> str:
    """Return how the end of an old pod makes room in a quota; empty if it does not."""
    rollout = rollout_to(world, replica_set) if replica_set["kind"] == REPLICA_SETS.kind else None
    making = [pod for pod in rollout.old if makes_room(pod["spec"], cause)] if rollout else []
    if rollout is None or not making:
        return ""
    for pod in making:
        if pod["metadata"].get("deletionTimestamp"):  # its end has been asked for already
            return (
                f"let pod {pod_name(pod)} end, which is being deleted and counts in the quota "
                "until it is gone"
            )
    return f"let an old pod end before a new one starts: {ENDING_FIRST} in {rollout.owner}"
