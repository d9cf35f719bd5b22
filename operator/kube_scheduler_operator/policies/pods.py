"""Pods as policies use them: owner, resources, node and time of binding."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from ..base.quantities import amounts

Amounts = Mapping[str, float]
"""Resource name to amount: CPU in millicores, all others in base units."""

_CACHE_SIZE: Final = 4096
"""Size of the caches of requests and labels, which are cleared when full."""

FINISHED: Final = ("Succeeded", "Failed")


class Demand:
    """The immutable resources of a Pod, shared by Pods with the same resources.

    Attributes:
        requests: the amounts that the scheduler reserves: the sum over containers or, if greater,
            the largest requirement of the init containers, plus the overhead. Pod-level resources
            override those of containers.
        limits: likewise for limits; absent for a resource that some container does not limit.
        containers: (requests, limits) of each container that runs concurrently.
        overhead: resources of the container runtime.
    """

    __slots__ = ("containers", "limits", "overhead", "requests")

    def __init__(self, spec: Mapping[str, Any]) -> None:
        containers, sidecars, inits = _containers(spec)
        running = containers + sidecars
        self.containers = tuple(running)
        self.overhead: Amounts = amounts(spec.get("overhead"))
        pod = _mapping(spec.get("resources"))
        requests, limits = _total(running), _total_limits(running)
        for before, init in inits:
            # Sidecars that started earlier run concurrently.
            _raise_to(requests, _total([*before, init]))
            _raise_to(limits, _total_limits([*before, init]))
        requests |= amounts(pod.get("requests"))
        limits |= amounts(pod.get("limits"))
        for name, amount in self.overhead.items():
            requests[name] = requests.get(name, 0.0) + amount
            if name in limits:
                limits[name] += amount
        self.requests: Amounts = requests
        self.limits: Amounts = limits

    def same(self, other: Demand) -> bool:
        """Whether the resources are equal."""
        # Those read from JSON and from protobuf are different objects.
        return self is other or (
            self.containers == other.containers
            and self.overhead == other.overhead
            and self.requests == other.requests
            and self.limits == other.limits
        )


Part = tuple[Amounts, Amounts]


def _containers(
    spec: Mapping[str, Any],
) -> tuple[list[Part], list[Part], list[tuple[list[Part], Part]]]:
    """(containers, sidecars, init containers with the sidecars before each)."""
    containers = [_part(container) for container in _objects(spec.get("containers"))]
    sidecars: list[Part] = []
    inits: list[tuple[list[Part], Part]] = []
    for container in _objects(spec.get("initContainers")):
        if container.get("restartPolicy") == "Always":
            sidecars.append(_part(container))
        else:
            inits.append((list(sidecars), _part(container)))
    return containers, sidecars, inits


def _part(container: Mapping[str, Any]) -> Part:
    resources = _mapping(container.get("resources"))
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
    """The sums for resources that all containers limit."""
    if not parts:
        return {}
    shared = set.intersection(*(set(limits) for _, limits in parts))
    return {name: sum(limits[name] for _, limits in parts) for name in sorted(shared)}


def _raise_to(total: dict[str, float], least: Mapping[str, float]) -> None:
    for name, amount in least.items():
        total[name] = max(total.get(name, 0.0), amount)


class Pod:
    """An immutable Pod.

    Attributes:
        namespace, name, uid: from its metadata.
        scheduler_name: spec.schedulerName.
        node_name: spec.nodeName; empty if it is not bound.
        labels: its labels, a mapping that is shared with other Pods.
        owner_kind: kind of its controller, or of its first owner; empty without owners.
        demand: its resources.
        created: creation time in seconds since 1970.
        bound: time of binding in seconds since 1970; 0 if it is not bound or the time is unknown.
        phase: Pending, Running, Succeeded, Failed or Unknown.
    """

    __slots__ = (
        "bound", "created", "demand", "labels", "name", "namespace", "node_name", "owner_kind",
        "phase", "scheduler_name", "uid",
    )  # fmt: skip

    namespace: str
    name: str
    uid: str
    scheduler_name: str
    node_name: str
    labels: Mapping[str, str]
    owner_kind: str
    demand: Demand
    created: float
    bound: float
    phase: str

    @property
    def requests(self) -> Amounts:
        """The amounts that the scheduler reserves."""
        return self.demand.requests

    @property
    def limits(self) -> Amounts:
        """Its limits; a resource without a limit is absent."""
        return self.demand.limits

    @property
    def key(self) -> str:
        """A unique key: the UID or, without one, namespace and name."""
        return self.uid or f"{self.namespace}/{self.name}"


_demands: dict[str, Demand] = {}
_labels: dict[tuple[Any, ...], Mapping[str, str]] = {}


def read_pod(obj: Mapping[str, Any]) -> Pod:
    """A Pod from the API's JSON or protobuf (pod_fields.py).

    Absent fields and fields of the wrong type are empty.
    """
    metadata = _mapping(obj.get("metadata"))
    spec = _mapping(obj.get("spec"))
    status = _mapping(obj.get("status"))
    pod = Pod()
    pod.namespace = str(metadata.get("namespace") or "")
    pod.name = str(metadata.get("name") or metadata.get("generateName") or "")
    pod.uid = str(metadata.get("uid") or "")
    pod.scheduler_name = str(spec.get("schedulerName") or "default-scheduler")
    pod.node_name = str(spec.get("nodeName") or "")
    pod.labels = _shared_labels(_mapping(metadata.get("labels")))
    pod.owner_kind = _owner_kind(metadata.get("ownerReferences"))
    pod.demand = _shared_demand(spec)
    pod.created = seconds(metadata.get("creationTimestamp"))
    pod.bound = _bound(status) or pod.created if pod.node_name else 0.0
    pod.phase = str(status.get("phase") or "Pending")
    return pod


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
        if len(_demands) >= _CACHE_SIZE:
            _demands.clear()
        demand = _demands[key] = Demand(spec)
    return demand


def _shared_labels(labels: Mapping[str, Any]) -> Mapping[str, str]:
    if not labels:
        return _NONE
    key = tuple(labels.items())
    try:
        shared = _labels.get(key)
    except TypeError:  # values that are not strings
        return {str(name): str(value) for name, value in labels.items()}
    if shared is None:
        if len(_labels) >= _CACHE_SIZE:
            _labels.clear()
        shared = _labels[key] = {str(name): str(value) for name, value in labels.items()}
    return shared


_NONE: Final[Mapping[str, str]] = {}


def _owner_kind(owners: Any) -> str:
    references = _objects(owners)
    for owner in references:
        if owner.get("controller"):
            return str(owner.get("kind") or "")
    return str(references[0].get("kind") or "") if references else ""


def _bound(status: Mapping[str, Any]) -> float:
    for condition in _objects(status.get("conditions")):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "True":
            return seconds(condition.get("lastTransitionTime"))
    return seconds(status.get("startTime"))


def seconds(value: Any) -> float:
    """A timestamp of the API in seconds since 1970; 0 if invalid.

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


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
