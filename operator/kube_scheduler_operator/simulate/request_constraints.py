"""The requests of a pod, each with who asks for it and how much of it nodes have.

kube-scheduler reports of a node only that a resource is insufficient. Source: the plugin
noderesources (fit.go) of Kubernetes 1.35.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_NAME
from ..base.objects import mapping
from ..base.quantities import amounts
from ..scheduling.policies.pods import Demand
from .constraint import Change, Constraint, Rank, RuleRepair, containers, quantity_text
from .kinds import Object
from .utilization import FreeAmounts
from .world import World

_HUGE: Final = "hugepages-"
_NAMED: Final = 3

_MOST_COUNTED: Final = 1000
"""Nodes of a cluster whose free amounts are compared; to count those of more takes long."""

Usage = Callable[[], FreeAmounts]
"""Returns what the nodes of a world have left."""


def request_constraints(
    spec: Mapping[str, Any], world: World, usage: Usage
) -> Iterator[Constraint]:
    for resource, amount in Demand(spec).requests.items():
        if not amount:
            continue
        asked = quantity_text(resource, amount)
        remove = partial(remove_request, resource=resource)
        yield Constraint(
            "requests",
            f"less than {asked} of {resource} is free",
            f"request less {resource}",
            remove,
            resource,
            on=_for_all_nodes(partial(_shortage, spec, resource, amount, usage)),
            rank=Rank.LESS,
            repairs=partial(_providers, resource, world, remove),
            words=f"Insufficient {resource}",
        )


def remove_request(pod: Object, resource: str) -> None:
    """Remove the requests and limits of one resource from all containers."""
    spec = pod["spec"]
    for holder in (*containers(spec), spec):
        for field in ("requests", "limits"):
            ((holder.get("resources") or {}).get(field) or {}).pop(resource, None)
    (spec.get("overhead") or {}).pop(resource, None)


def _for_all_nodes(text: Callable[[], str]) -> Callable[[str], str]:
    """Return what has one sentence for all nodes, so that they remain one group."""
    known = cache(text)
    return lambda _node: known()


def _shortage(spec: Mapping[str, Any], resource: str, amount: float, usage: Usage) -> str:
    """Describe what all nodes with too little of a resource lack."""
    asked = quantity_text(resource, amount)
    who = f"requested by {askers(spec, resource)}"
    known = usage()
    if not any(sizes.get(resource) for sizes in known.allocatable.values()):
        return f"no node has {resource}, of which {asked} is {who}"
    nodes = known.allocatable if len(known.allocatable) <= _MOST_COUNTED else ()
    free = {node: known.of(node).get(resource, 0.0) for node in nodes}
    most, node = max(
        ((left, node) for node, left in free.items() if left < amount), default=(0, "")
    )
    text = f"less than {asked} of {resource} is free, {who}"
    if not node:
        return text
    size = quantity_text(resource, known.allocatable[node].get(resource, 0.0))
    left = quantity_text(resource, max(most, 0))
    return f"{text}; of all nodes with too little, {node} has most free: {left} of {size}"


def _providers(resource: str, world: World, remove: Change) -> Iterator[RuleRepair]:
    """Yield what makes a node have a resource that no node has."""
    if resource.startswith(_HUGE):
        size = resource.removeprefix(_HUGE)
        text = f"reserve huge pages of {size} on a node and restart its kubelet"
    elif "/" in resource:
        text = f"make the device plugin of {resource} run on a node"
    else:
        return
    statuses = (mapping(node.get("status")) for node in world.nodes())
    if not any(amounts(mapping(status.get("allocatable"))).get(resource) for status in statuses):
        yield RuleRepair(f"{text}: no node has {resource}", remove, rank=Rank.MEND)


# --- who asks -------------------------------------------------------------------------------------


def askers(spec: Mapping[str, Any], resource: str) -> str:
    """Name what makes a pod request a resource: `container app (2), sidecar proxy (500m)`."""
    if amounts(mapping(spec.get("resources")).get("requests")).get(resource):
        named = ["the Pod (spec.resources)"]
    else:
        named = list(_containers(spec, resource))
    if added := amounts(spec.get("overhead")).get(resource):
        name = foreign(str(spec.get("runtimeClassName") or ""), FOREIGN_NAME)
        named.append(f"RuntimeClass {name} ({quantity_text(resource, added)})")
    return ", ".join(named)


def _containers(spec: Mapping[str, Any], resource: str) -> Iterator[str]:
    """Yield what decides: one init container, or all that run at the same time."""
    inits = spec.get("initContainers") or ()
    running = [("container", one) for one in spec.get("containers") or ()]
    running += [("sidecar", one) for one in inits if one.get("restartPolicy") == "Always"]
    parts = [
        (_amount(one, resource), kind, foreign(str(one.get("name")), FOREIGN_NAME))
        for kind, one in running
    ]
    total = sum(amount for amount, *_ in parts)
    first = [one for one in inits if one.get("restartPolicy") != "Always"]
    largest = max(first, key=lambda one: _amount(one, resource), default=None)
    if largest is not None and _amount(largest, resource) > total:
        yield f"init container {foreign(str(largest.get('name')), FOREIGN_NAME)}"
        return
    asking = sorted((part for part in parts if part[0]), key=lambda part: -part[0])
    for amount, kind, name in asking[:_NAMED]:
        share = f" ({quantity_text(resource, amount)})" if len(asking) > 1 else ""
        yield f"{kind} {name}{share}"
    if len(asking) > _NAMED:
        yield f"{len(asking) - _NAMED} more"


def _amount(container: Mapping[str, Any], resource: str) -> float:
    return amounts(mapping(container.get("resources")).get("requests")).get(resource, 0.0)
