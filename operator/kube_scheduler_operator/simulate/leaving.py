"""What leaves room by itself: pods that terminate, and resizes of pods that are in progress.

kube-scheduler counts a pod until it is gone, and of a pod that is resized the largest of what its
spec asks for, what the kubelet has allocated and what the containers have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import orjson

from ..base.bounded_cache import BoundedCache
from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_NAME
from ..base.objects import mapping
from ..base.times import rfc3339, timestamp
from ..scheduling.policies.pods import Demand
from .constraint import containers, different_texts
from .kinds import PODS, RESIZES, Object, pod_name
from .nominations import nominated
from .world import World

_STATUSES: Final = ("initContainerStatuses", "containerStatuses")
_OF_SPEC: Final = ("initContainers", "containers", "overhead", "resources")
_held_before: BoundedCache[bytes, Mapping[str, float]] = BoundedCache(4096, 4 * 2**20, 2**16)
_INFEASIBLE: Final = "Infeasible"
_DEFERRED: Final = "Deferred"
_MOST_AMOUNTS: Final = 3
_LONGEST: Final = 366 * 24 * 3600
"""Seconds of the longest grace period that counts."""


@dataclass(frozen=True, slots=True)
class LeavingPod:
    """A pod that gives up room on a node when its deletion or its resize ends, or holds it there.

    A nominated pod only holds room: it will be on the node.
    """

    pod: str  # namespace/name
    node: str  # empty: of a pod that terminates without one
    terminates: bool  # otherwise it is resized, or is nominated to the node
    nominated: bool = False
    since: str = ""  # when its deletion was requested, RFC 3339; empty: unknown
    finalizers: tuple[str, ...] = ()  # of a pod that terminates: it is not gone before they are
    node_is_ready: bool = True  # otherwise its kubelet ends no pod
    amounts: tuple[str, ...] = ()  # of a resize, what the pod holds and what its spec asks for

    @property
    def hangs(self) -> bool:
        """Whether it does not end by itself."""
        return self.terminates and (bool(self.finalizers) or not self.node_is_ready)


def leaving_pods(world: World) -> list[tuple[Object, LeavingPod]]:
    """Return the pods on nodes that will give up room by themselves, and what is known of it."""
    return list(_leaving(world))


def _leaving(world: World) -> Iterator[tuple[Object, LeavingPod]]:
    for entry in world.objects[PODS].values():
        # Most pods are none of both, and reading all of them takes seconds.
        if not entry.node or not entry.may_leave:
            continue
        pod = entry.object()
        if "deletionTimestamp" in pod["metadata"]:
            yield pod, described(pod, world)
        elif excess := _excess(pod):
            yield pod, LeavingPod(pod_name(pod), entry.node, terminates=False, amounts=excess)


def reserving_pods(world: World, least: int) -> list[tuple[Object, LeavingPod]]:
    """Return the waiting pods of at least this priority for which kube-scheduler keeps room."""
    waiting = (
        entry.object()
        for entry in world.objects[PODS].values()
        if not entry.node and b'"nominatedNodeName"' in entry.content
    )
    return [
        (pod, LeavingPod(pod_name(pod), node, terminates=False, nominated=True))
        for pod in waiting
        if (node := nominated(pod)) and int(pod["spec"].get("priority") or 0) >= least
    ]


def described(pod: Object, world: World) -> LeavingPod:
    """Describe a pod that terminates."""
    metadata, node = pod["metadata"], pod["spec"].get("nodeName") or ""
    names = (foreign(str(name), FOREIGN_NAME) for name in metadata.get("finalizers") or ())
    return LeavingPod(
        pod_name(pod),
        node,
        terminates=True,
        since=_requested(metadata),
        finalizers=tuple(names),
        node_is_ready=not node or _is_ready(world, node),
    )


def _requested(metadata: Mapping[str, Any]) -> str:
    """Return when the deletion was requested: the timestamp is the end of the grace period."""
    end = timestamp(str(metadata.get("deletionTimestamp")))
    grace = metadata.get("deletionGracePeriodSeconds") or 0
    if end is None or not isinstance(grace, int) or not 0 <= grace <= _LONGEST:
        return ""
    return rfc3339(end - timedelta(seconds=grace))


def _is_ready(world: World, name: str) -> bool:
    node = world.node(name) or {}
    conditions = mapping(node.get("status")).get("conditions") or ()
    return all(each.get("status") == "True" for each in conditions if each.get("type") == "Ready")


# --- resizes --------------------------------------------------------------------------------------


def held(pod: Mapping[str, Any]) -> Mapping[str, float]:
    """Return the amounts that kube-scheduler counts of a pod on its node.

    `AggregateContainerRequests` of k8s.io/component-helpers with UseStatusResources.
    """
    spec, status = pod["spec"], mapping(pod.get("status"))
    infeasible = _is_infeasible(pod)
    # Most pods are like others of their workload.
    key = orjson.dumps([*map(spec.get, _OF_SPEC), *map(status.get, _STATUSES), infeasible])
    known = _held_before.get(key)
    if known is None:
        known = _held(spec, _statuses(pod), infeasible)
        _held_before.keep(key, known, len(key))
    return known


def _held(
    spec: Mapping[str, Any], statuses: Mapping[str, Mapping[str, Any]], infeasible: bool
) -> Mapping[str, float]:
    requests = Demand(spec).requests
    if not any(_differs(container, statuses) for container in containers(spec)):
        return requests
    known = [] if infeasible else [requests]
    for fields in (("allocatedResources",), ("resources", "allocatedResources")):
        reported = dict(spec)
        for kind in ("initContainers", "containers"):
            reported[kind] = [
                _as_reported(container, statuses, fields, infeasible)
                for container in spec.get(kind) or ()
            ]
        known.append(Demand(reported).requests)
    names = dict.fromkeys(name for amounts in known for name in amounts)
    return {name: max(amounts.get(name, 0.0) for amounts in known) for name in names}


def _excess(pod: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a pod holds beyond its spec until its resize has ended."""
    if _is_infeasible(pod):
        return ()
    wanted = Demand(pod["spec"]).requests
    excess = {name: amount for name, amount in held(pod).items() if amount > wanted.get(name, 0.0)}
    texts = []
    for name, amount in list(excess.items())[:_MOST_AMOUNTS]:
        has, asks = different_texts(name, amount, wanted.get(name, 0.0))
        texts.append(
            f"it holds {has} of {foreign(name, FOREIGN_NAME)}, and its spec asks for {asks}"
        )
    return tuple(texts)


def resized(pod: Object) -> Object:
    """Return a pod as it is after its resize."""
    dropped = (*_STATUSES, "resources", "allocatedResources", "conditions")
    status = {key: value for key, value in pod["status"].items() if key not in dropped}
    return {**pod, "status": status}


def _statuses(pod: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    status = mapping(pod.get("status"))
    return {
        str(entry.get("name")): entry for field in _STATUSES for entry in status.get(field) or ()
    }


def _differs(container: Mapping[str, Any], statuses: Mapping[str, Mapping[str, Any]]) -> bool:
    status = statuses.get(str(container.get("name")), {})
    wanted = mapping(container.get("resources")).get("requests") or {}
    reported = mapping(status.get("resources")).get("requests")
    allocated = status.get("allocatedResources")
    return any(given is not None and given != wanted for given in (reported, allocated))


def _as_reported(
    container: Mapping[str, Any],
    statuses: Mapping[str, Mapping[str, Any]],
    fields: tuple[str, ...],
    infeasible: bool,
) -> Object:
    """Return the container with the first requests that its status has in these fields."""
    status = statuses.get(str(container.get("name")), {})
    for field in fields:
        value = status.get(field)
        requests = mapping(value).get("requests") if field == "resources" else value
        if requests is not None:
            return {**container, "resources": {"requests": requests}}
    return {**container, "resources": {}} if infeasible else dict(container)


def _is_infeasible(pod: Mapping[str, Any]) -> bool:
    return _has_reason(pod, _INFEASIBLE)


def _has_reason(pod: Mapping[str, Any], reason: str) -> bool:
    return any(
        str(condition.get("type")) in RESIZES and condition.get("reason") == reason
        for condition in mapping(pod.get("status")).get("conditions") or ()
    )


def deferred_resizes(world: World) -> list[tuple[Object, Object, str]]:
    """Return the pods that ask for more than their node has left: it keeps that room for them.

    Each comes with the pod as it is without its resize, and with what that would free, in words.
    """
    return list(_deferred(world))


def _deferred(world: World) -> Iterator[tuple[Object, Object, str]]:
    for entry in world.objects[PODS].values():
        if not entry.node or not entry.may_leave:
            continue
        pod = entry.object()
        if not _has_reason(pod, _DEFERRED):
            continue
        kept, asked = _allocated(pod), held(pod)
        has = Demand(kept["spec"]).requests
        freed = [
            f"its node keeps {wanted} of {foreign(name, FOREIGN_NAME)} for it; it has {own}"
            for name, amount in asked.items()
            if amount > has.get(name, 0.0)
            for wanted, own in [different_texts(name, amount, has.get(name, 0.0))]
        ]
        if freed:
            yield pod, kept, " and ".join(freed[:_MOST_AMOUNTS])


def _allocated(pod: Object) -> Object:
    """Return a pod that requests what its containers have."""
    spec, statuses = dict(pod["spec"]), _statuses(pod)
    fields = ("allocatedResources", "resources")
    for kind in ("initContainers", "containers"):
        if spec.get(kind):
            spec[kind] = [_as_reported(one, statuses, fields, False) for one in spec[kind]]
    return resized({**pod, "spec": spec})
