"""Pods as policies use them: owner, resources, node and time of binding."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from datetime import datetime
from heapq import nsmallest
from itertools import islice
from typing import Any, Final

from ...base.bounded_cache import BoundedCache
from ...base.limits import FOREIGN_NAME
from ...base.objects import mapping
from ...base.quantities import CPU, EPHEMERAL_STORAGE, MEMORY, amounts

Amounts = Mapping[str, float]
"""Resource name to amount: CPU in millicores, all others in base units."""

_CACHE_ENTRIES, _CACHE_CHARACTERS = 4096, 2 * 1024 * 1024
"""Size of the caches of requests and of labels; a full cache is emptied."""

_LARGEST_CACHED: Final = 4096
"""Characters of requests or labels that Pods share; one Pod may have a megabyte of each."""

MOST_RESOURCES: Final = 32
"""Resources that are kept of a Pod with larger requests; the API server accepts 40,000."""

MOST_LABELS: Final = 256
"""Labels that are kept of a Pod; the API server accepts 15,000."""

_PER_LABEL: Final = 16
"""Characters that a label counts besides its own: its objects need memory, too."""

FINISHED: Final = ("Succeeded", "Failed")


class Demand:
    """The immutable resources of a Pod, shared by Pods with the same resources."""

    __slots__ = ("containers", "limits", "overhead", "requests")

    def __init__(self, spec: Mapping[str, Any]) -> None:
        containers = [_part(container) for container in _objects(spec.get("containers"))]
        inits = _InitContainers(_objects(spec.get("initContainers")))
        running = containers + inits.sidecars
        self.containers = tuple(running)  # (requests, limits) of those that run concurrently
        self.overhead: Amounts = amounts(spec.get("overhead"))  # of the container runtime
        pod = mapping(spec.get("resources"))
        requests, limits = _total(running), _total_limits(running)
        _raise_to(requests, inits.requests)
        _raise_to(limits, inits.limits)
        requests |= amounts(pod.get("requests"))
        limits |= amounts(pod.get("limits"))
        for name, amount in self.overhead.items():
            requests[name] = requests.get(name, 0.0) + amount
            if name in limits:
                limits[name] += amount
        # The amounts that the scheduler reserves: the sum over containers or, if greater, the
        # largest requirement of the init containers, plus the overhead. Pod-level resources
        # override those of containers.
        self.requests: Amounts = requests
        # Likewise; absent for a resource that some container does not limit.
        self.limits: Amounts = limits

    def in_short(self) -> Demand:
        """Return it with its containers as one, and with MOST_RESOURCES resources.

        A Pod has up to a megabyte of both, and as many Pods are kept as a tenant creates.
        """
        kept = nsmallest(MOST_RESOURCES, self.requests.keys() | self.limits.keys(), key=_rank)
        containers = list(self.containers)

        def short(resources: Amounts) -> Amounts:
            return {name: resources[name] for name in kept if name in resources}

        demand = Demand({})
        demand.containers = ((short(_total(containers)), short(_total_limits(containers))),)
        demand.overhead = short(self.overhead)
        demand.requests, demand.limits = short(self.requests), short(self.limits)
        return demand

    def same(self, other: Demand) -> bool:
        # Those read from JSON and from protobuf are different objects.
        return self is other or (
            self.containers == other.containers
            and self.overhead == other.overhead
            and self.requests == other.requests
            and self.limits == other.limits
        )


Part = tuple[Amounts, Amounts]


class _InitContainers:
    """What init containers need, each with the sidecars that started before it.

    The time is linear in the resources of all: a Pod may have thousands of sidecars and, after
    them, as many init containers.
    """

    __slots__ = ("_added", "_before", "_limited", "limits", "requests", "sidecars")

    def __init__(self, containers: Iterable[Mapping[str, Any]]) -> None:
        self.sidecars: list[Part] = []
        self.requests: dict[str, float] = {}  # the largest while an init container runs
        self.limits: dict[str, float] = {}  # likewise, of what all limit which run then
        self._before: dict[str, float] = {}  # the requests of the sidecars so far
        self._added: set[str] = set()  # of these, what no init container ran beside alone
        self._limited: dict[str, float] = {}  # the limits of the sidecars so far
        for container in containers:
            if container.get("restartPolicy") == "Always":
                self._start(_part(container))
            else:
                self._run(_part(container))

    def _start(self, sidecar: Part) -> None:
        requests, limits = sidecar
        for name, amount in requests.items():
            self._before[name] = self._before.get(name, 0.0) + amount
        self._added.update(requests)
        self._limited = (
            {
                name: amount + limits[name]
                for name, amount in self._limited.items()
                if name in limits
            }
            if self.sidecars
            else dict(limits)
        )
        self.sidecars.append(sidecar)

    def _run(self, init: Part) -> None:
        requests, limits = init
        before = self._before
        _raise_to(self.requests, {name: before[name] for name in self._added - requests.keys()})
        _raise_to(
            self.requests, {name: before.get(name, 0.0) + requests[name] for name in requests}
        )
        self._added.intersection_update(requests)
        if self.sidecars:
            known = self._limited
            limits = {name: known[name] + limits[name] for name in limits if name in known}
        _raise_to(self.limits, limits)


def _part(container: Mapping[str, Any]) -> Part:
    resources = mapping(container.get("resources"))
    limits = amounts(resources.get("limits"))
    # The API server defaults a missing request to the limit; other sources of Pods may not.
    return {**limits, **amounts(resources.get("requests"))}, limits


def _total(parts: list[Part]) -> dict[str, float]:
    total: dict[str, float] = {}
    for requests, _ in parts:
        for name, amount in requests.items():
            total[name] = total.get(name, 0.0) + amount
    return total


def _total_limits(parts: list[Part]) -> dict[str, float]:
    """Return the sums for resources that all containers limit."""
    if not parts:
        return {}
    shared = set.intersection(*(set(limits) for _, limits in parts))
    return {name: sum(limits[name] for _, limits in parts) for name in sorted(shared)}


def _rank(resource: str) -> tuple[bool, bool, str]:
    """Sort resources of all nodes first, then those of Kubernetes, then all others."""
    common = (CPU, MEMORY, EPHEMERAL_STORAGE)
    return resource not in common, "/" in resource, resource


def _raise_to(total: dict[str, float], least: Mapping[str, float]) -> None:
    for name, amount in least.items():
        total[name] = max(total.get(name, 0.0), amount)


class Pod:
    __slots__ = (
        "assumed", "bound", "created", "demand", "labels", "name", "namespace", "node_name",
        "owner_kind", "phase", "scheduler_name", "uid",
    )  # fmt: skip

    namespace: str
    name: str
    uid: str
    scheduler_name: str
    node_name: str  # empty if it is not bound
    labels: Mapping[str, str]  # shared with other Pods
    owner_kind: str  # kind of its controller, or of its first owner; empty without owners
    demand: Demand
    created: float  # seconds since 1970
    bound: float  # seconds since 1970; 0 if it is not bound or the time is unknown
    phase: str
    assumed: bool  # whether its node is the one expected for it, before its binding is observed

    @property
    def requests(self) -> Amounts:
        """The amounts that the scheduler reserves."""
        return self.demand.requests

    @property
    def limits(self) -> Amounts:
        """A resource without a limit is absent."""
        return self.demand.limits

    @property
    def key(self) -> str:
        """A unique key: the UID or, without one, namespace and name."""
        return self.uid or f"{self.namespace}/{self.name}"


_demands: BoundedCache[str, Demand] = BoundedCache(
    _CACHE_ENTRIES, _CACHE_CHARACTERS, _LARGEST_CACHED
)
_labels: BoundedCache[tuple[Any, ...], Mapping[str, str]] = BoundedCache(
    _CACHE_ENTRIES, _CACHE_CHARACTERS, _LARGEST_CACHED
)


def read_pod(obj: Mapping[str, Any]) -> Pod:
    """Return a Pod from the API's JSON or protobuf (pod_fields.py).

    Absent fields and fields of the wrong type are empty.
    """
    metadata = mapping(obj.get("metadata"))
    spec = mapping(obj.get("spec"))
    status = mapping(obj.get("status"))
    pod = Pod()
    pod.namespace = str(metadata.get("namespace") or "")
    pod.name = str(metadata.get("name") or metadata.get("generateName") or "")
    pod.uid = str(metadata.get("uid") or "")
    pod.scheduler_name = _short(spec.get("schedulerName") or "default-scheduler")
    pod.node_name = str(spec.get("nodeName") or "")
    pod.labels = _shared_labels(mapping(metadata.get("labels")))
    pod.owner_kind = _owner_kind(metadata.get("ownerReferences"))
    pod.demand = _shared_demand(spec)
    pod.created = seconds(metadata.get("creationTimestamp"))
    pod.bound = _bound(status) or pod.created if pod.node_name else 0.0
    pod.phase = str(status.get("phase") or "Pending")
    pod.assumed = False
    return pod


def _short(text: Any) -> str:
    """Return a name whose length the API server does not limit; no longer one is in use."""
    return str(text)[: FOREIGN_NAME + 1]


def assumed_pod(pod: Pod, node_name: str, now: float) -> Pod:
    """Return a Pod as it is when it has been bound to a node."""
    assumed = copy.copy(pod)
    assumed.node_name, assumed.bound, assumed.assumed = node_name, now, True
    return assumed


def pod_key(obj: Mapping[str, Any]) -> str:
    """Return `Pod.key`, of an object of which at least the metadata is known."""
    metadata = obj["metadata"]
    return metadata.get("uid") or f"{metadata.get('namespace') or ''}/{metadata['name']}"


def _shared_demand(spec: Mapping[str, Any]) -> Demand:
    # The string form is the cheapest key for resources.
    key = str(
        [container.get("resources") for container in _objects(spec.get("containers"))]
        + [spec.get("overhead"), spec.get("resources")]
        + [
            (container.get("resources"), container.get("restartPolicy"))
            for container in _objects(spec.get("initContainers"))
        ]
    )
    demand = _demands.get(key)
    if demand is None:
        demand = Demand(spec)
        if len(key) > _LARGEST_CACHED:
            demand = demand.in_short()
        _demands.keep(key, demand, len(key))
    return demand


def _shared_labels(labels: Mapping[str, Any]) -> Mapping[str, str]:
    if not labels:
        return _NONE
    key = tuple(islice(labels.items(), MOST_LABELS))
    try:
        shared = _labels.get(key)
    except TypeError:  # values that are not strings
        return {str(name): str(value) for name, value in key}
    if shared is None:
        shared = {str(name): str(value) for name, value in key}
        size = sum(len(name) + len(value) + _PER_LABEL for name, value in shared.items())
        _labels.keep(key, shared, size)
    return shared


_NONE: Final[Mapping[str, str]] = {}


def _owner_kind(owners: Any) -> str:
    references = _objects(owners)
    for owner in references:
        if owner.get("controller"):
            return _short(owner.get("kind") or "")
    return _short(references[0].get("kind") or "") if references else ""


def _bound(status: Mapping[str, Any]) -> float:
    for condition in _objects(status.get("conditions")):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "True":
            return seconds(condition.get("lastTransitionTime"))
    return seconds(status.get("startTime"))


def seconds(value: Any) -> float:
    """Return a timestamp of the API in seconds since 1970; 0 if invalid.

    JSON has RFC 3339 strings, protobuf has seconds.
    """
    try:
        if isinstance(value, int):
            return float(value)
        if not isinstance(value, str) or not value:
            return 0.0
        time = datetime.fromisoformat(value)
    except (ValueError, OverflowError):
        return 0.0
    return time.timestamp() if time.tzinfo else 0.0


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
