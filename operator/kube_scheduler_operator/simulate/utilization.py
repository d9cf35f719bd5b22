"""How full nodes are, by the requests of their pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ..base.quantities import CPU, MEMORY, amounts
from .kinds import PODS
from .leaving import held
from .scenario import belongs_to_node
from .world import Entry, World

_ZONE: Final = "topology.kubernetes.io/zone"
_PODS: Final = "pods"
_DOMINANT: Final = (CPU, MEMORY)


@dataclass(slots=True)
class Utilization:
    # node -> resource -> amount; CPU in millicores, others in base units
    allocatable: dict[str, dict[str, float]] = field(default_factory=dict)
    # node -> resource -> amount
    requests: dict[str, dict[str, float]] = field(default_factory=dict)
    # node -> number of pods that do not belong to the node, such as those of DaemonSets
    pods: dict[str, int] = field(default_factory=dict)
    # node -> its zone; nodes without one are missing
    zones: dict[str, str] = field(default_factory=dict)

    def copy(self) -> Utilization:
        """Return a copy whose requests and pods can be changed."""
        requests = {node: dict(sums) for node, sums in self.requests.items()}
        return Utilization(self.allocatable, requests, dict(self.pods), self.zones)

    def add(self, pod: Mapping[str, Any], node: str, sign: int = 1) -> None:
        """Add a pod to a node, or remove it (`sign` -1)."""
        requests = self.requests.get(node)
        if requests is None:
            return
        allocatable = self.allocatable[node]
        for resource, amount in held(pod).items():
            if resource not in allocatable:
                continue  # a Pod may request thousands of them
            requests[resource] = requests.get(resource, 0.0) + sign * amount
        if not belongs_to_node(pod):
            self.pods[node] += sign

    def free(self, node: str) -> dict[str, float]:
        """Return what a node has left of each resource; negative if it is overcommitted."""
        requests = self.requests[node]
        return {
            resource: amount - requests.get(resource, 0.0)
            for resource, amount in self.allocatable[node].items()
        }

    @property
    def used(self) -> int:
        return sum(count > 0 for count in self.pods.values())

    def shares(self, resource: str) -> list[float]:
        """Return each node's requests in percent of its allocatable, the fullest first."""
        percentages = [
            100 * self.requests[node].get(resource, 0.0) / allocatable[resource]
            for node, allocatable in self.allocatable.items()
            if allocatable.get(resource)
        ]
        return sorted(percentages, reverse=True)

    @property
    def fullest(self) -> float:
        """Of the fullest node, the share of CPU or memory that is requested, in percent."""
        return max((share for name in _DOMINANT for share in self.shares(name)), default=0.0)

    def whole(self) -> dict[str, float]:
        """Return all requests in percent of all allocatable, by resource."""
        allocatable: dict[str, float] = {}
        requests: dict[str, float] = {}
        for node, resources in self.allocatable.items():
            for resource, amount in resources.items():
                allocatable[resource] = allocatable.get(resource, 0.0) + amount
                requested = self.requests[node].get(resource, 0.0)
                requests[resource] = requests.get(resource, 0.0) + requested
        order = sorted(allocatable, key=lambda name: (name not in _DOMINANT, name))
        return {
            name: 100 * requests[name] / allocatable[name]
            for name in order
            if allocatable[name] and name != _PODS and (name in _DOMINANT or requests[name])
        }


class FreeAmounts:
    """What nodes have left, each of them counted when it is asked for: counting all takes long."""

    def __init__(self, world: World) -> None:
        # node -> resource -> amount; CPU in millicores, others in base units
        self.allocatable = {
            node["metadata"]["name"]: amounts(node["status"].get("allocatable"))
            for node in world.nodes()
        }
        self._pods: dict[str, list[Entry]] = {}
        for entry in world.objects[PODS].values():
            self._pods.setdefault(entry.node, []).append(entry)

    @property
    def some_are_nominated(self) -> bool:
        """Whether pods without a node hold room on one, which `of` does not count."""
        return any(b'"nominatedNodeName"' in one.content for one in self._pods.get("", ()))

    def of(self, node: str) -> dict[str, float]:
        """Return what a node has left of each resource; negative if it is overcommitted."""
        free = dict(self.allocatable[node])
        for entry in self._pods.get(node, ()):
            for resource, amount in held(entry.object()).items():
                if resource in free:  # a Pod may request thousands of them
                    free[resource] -= amount
        return free


def utilization_of(world: World) -> Utilization:
    """Return the utilization by the bound pods of a world."""
    utilization = Utilization()
    for node in world.nodes():
        name = node["metadata"]["name"]
        utilization.allocatable[name] = amounts(node["status"].get("allocatable"))
        utilization.requests[name], utilization.pods[name] = {}, 0
        if zone := (node["metadata"].get("labels") or {}).get(_ZONE):
            utilization.zones[name] = zone
    for entry in world.objects[PODS].values():
        if entry.node:
            utilization.add(entry.object(), entry.node)
    return utilization
