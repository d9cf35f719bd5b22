"""A pod as policies see it: whose it is, what it asks for, where it is and since when."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from ..base.quantities import CPU, amounts

Amounts = Mapping[str, float]
"""Resource name to amount: cpu in thousandths of a core, everything else in base units."""

_KEPT: Final = 4096
"""So many different sets of requests and of labels are shared between pods; then from new."""

FINISHED: Final = ("Succeeded", "Failed")


class Demand:
    """What a pod asks for; pods that ask for the same share one. Not to be changed.

    Attributes:
        requests: what the scheduler reserves: the sum of the containers or, where it is more, what
            the init containers need at a time, plus the overhead; resources of the pod itself,
            where given, come before those of its containers.
        limits: the same of the limits; a resource that a container does not limit has none.
        containers: (requests, limits) of each container that runs beside the others.
        overhead: what the runtime needs itself.
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
            # Sidecars that started earlier run beside it.
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
        """Whether it asks for the same."""
        # One that was read from JSON and one from protobuf are two.
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
    """Containers, sidecars, and init containers each with the sidecars before it."""
    containers = [_part(each) for each in _objects(spec.get("containers"))]
    sidecars: list[Part] = []
    inits: list[tuple[list[Part], Part]] = []
    for each in _objects(spec.get("initContainers")):
        if each.get("restartPolicy") == "Always":
            sidecars.append(_part(each))
        else:
            inits.append((list(sidecars), _part(each)))
    return containers, sidecars, inits


def _part(container: Mapping[str, Any]) -> Part:
    resources = _mapping(container.get("resources"))
    limits = amounts(resources.get("limits"))
    # The API server fills in a missing request from the limit; a pod from elsewhere may lack it.
    return {**limits, **amounts(resources.get("requests"))}, limits


def _total(parts: list[Part]) -> dict[str, float]:
    total: dict[str, float] = {}
    for requests, _ in parts:
        for name, amount in requests.items():
            total[name] = total.get(name, 0.0) + amount
    return total


def _total_limits(parts: list[Part]) -> dict[str, float]:
    """Of resources that all of them limit: one without a limit has no bound."""
    if not parts:
        return {}
    shared = set.intersection(*(set(limits) for _, limits in parts))
    return {name: sum(limits[name] for _, limits in parts) for name in sorted(shared)}


def _raise_to(total: dict[str, float], least: Mapping[str, float]) -> None:
    for name, amount in least.items():
        total[name] = max(total.get(name, 0.0), amount)


class Pod:
    """One pod; not to be changed.

    Attributes:
        namespace, name, uid: of the pod.
        scheduler_name: who places it.
        node_name: where it is; empty as long as it is nowhere.
        labels: of the pod; may be shared with other pods.
        owner_kind: of its controller, or of its first owner; empty if there is none.
        demand: what it asks for.
        created: seconds since 1970.
        bound: when it was given its node, seconds since 1970; 0 if it has none or nobody says.
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
        """What the scheduler reserves for it."""
        return self.demand.requests

    @property
    def limits(self) -> Amounts:
        """What it may use at most; a resource without a limit is absent."""
        return self.demand.limits

    @property
    def key(self) -> str:
        """What tells it from all others: its uid, or for lack of one where it is called what."""
        return self.uid or f"{self.namespace}/{self.name}"


_demands: dict[str, Demand] = {}
_labels: dict[tuple[Any, ...], Mapping[str, str]] = {}


def read_pod(obj: Mapping[str, Any]) -> Pod:
    """A pod of the API, in JSON or (pod_fields.py) as protobuf has it.

    What is absent or of the wrong type is empty: only an API server's pods are whole.
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
    # Their text is the cheapest thing that tells apart what pods ask for.
    key = str(
        [each.get("resources") for each in _objects(spec.get("containers"))]
        + [spec.get("overhead"), spec.get("resources")]
        + [
            (each.get("resources"), each.get("restartPolicy"))
            for each in _objects(spec.get("initContainers"))
        ]
    )
    demand = _demands.get(key)
    if demand is None:
        if len(_demands) >= _KEPT:
            _demands.clear()
        demand = _demands[key] = Demand(spec)
    return demand


def _shared_labels(labels: Mapping[str, Any]) -> Mapping[str, str]:
    if not labels:
        return _NONE
    key = tuple(labels.items())
    try:
        shared = _labels.get(key)
    except TypeError:  # values that are no strings
        return {str(name): str(value) for name, value in labels.items()}
    if shared is None:
        if len(_labels) >= _KEPT:
            _labels.clear()
        shared = _labels[key] = {str(name): str(value) for name, value in labels.items()}
    return shared


_NONE: Final[Mapping[str, str]] = {}


def _owner_kind(owners: Any) -> str:
    found = _objects(owners)
    for owner in found:
        if owner.get("controller"):
            return str(owner.get("kind") or "")
    return str(found[0].get("kind") or "") if found else ""


def _bound(status: Mapping[str, Any]) -> float:
    for condition in _objects(status.get("conditions")):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "True":
            return seconds(condition.get("lastTransitionTime"))
    return seconds(status.get("startTime"))


def seconds(value: Any) -> float:
    """A time of the API in seconds since 1970; 0 if it is none.

    JSON has text (RFC 3339), protobuf these seconds.
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


def cpu_milli(resources: Amounts) -> float:
    """Thousandths of a core; 0 if none are asked for."""
    return resources.get(CPU, 0.0)
