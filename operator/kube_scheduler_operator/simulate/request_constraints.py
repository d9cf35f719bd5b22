"""The requests of a pod, each with who asks for it and how much of it nodes have.

kube-scheduler reports of a node only that a resource is insufficient. Source: the plugin
noderesources (fit.go) of Kubernetes 1.35.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Any, Final, NamedTuple

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_NAME
from ..base.objects import mapping
from ..base.quantities import amounts
from ..config.language.feature_gates import Gates
from ..scheduling.policies.pods import Demand
from .constraint import Change, Constraint, Rank, RuleRepair, containers, quantity_text
from .kinds import DEVICE_CLASSES, RESOURCE_SLICES, Object
from .utilization import FreeAmounts
from .world import World

_HUGE: Final = "hugepages-"
_BY_CLASSES: Final = "DRAExtendedResource"
_OF_CLASS: Final = "deviceclass.resource.kubernetes.io/"
"""The prefix of the resource that each DeviceClass serves, besides the one that it names."""
_NAMED: Final = 3

_MOST_COUNTED: Final = 1000
"""Nodes of a cluster whose free amounts are compared; to count those of more takes long."""

Usage = Callable[[], FreeAmounts]
"""Returns what the nodes of a world have left."""


def request_constraints(
    spec: Mapping[str, Any], world: World, usage: Usage, gates: Gates | None = None
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
            on=_shortage(spec, resource, amount, usage, _idle_class(resource, world, gates)),
            rank=Rank.LESS,
            repairs=partial(_providers, resource, world, remove, gates),
            words=f"Insufficient {resource}",
        )


def remove_request(pod: Object, resource: str) -> None:
    """Remove the requests and limits of one resource from all containers."""
    spec = pod["spec"]
    for holder in (*containers(spec), spec):
        for field in ("requests", "limits"):
            ((holder.get("resources") or {}).get(field) or {}).pop(resource, None)
    (spec.get("overhead") or {}).pop(resource, None)


def _shortage(
    spec: Mapping[str, Any], resource: str, amount: float, usage: Usage, idle_class: str
) -> Callable[[str], str]:
    """Return what describes the lack of a node: one sentence for all that have some of it."""
    asked = quantity_text(resource, amount)
    who = f"requested by {askers(spec, resource)}"

    @cache
    def of_all() -> str:
        return _most_free(
            resource, amount, f"less than {asked} of {resource} is free, {who}", usage
        )

    def of(node: str) -> str:
        sizes = usage().allocatable
        if sizes.get(node, {}).get(resource):
            return of_all()
        some = any(size.get(resource) for size in sizes.values())
        lack = "the node has no" if some else "no node has"
        return f"{lack} {resource}, of which {asked} is {who}{idle_class}"

    return of


def _most_free(resource: str, amount: float, text: str, usage: Usage) -> str:
    """Add the node with most of a resource, of all that have some and too little."""
    known = usage()
    having = [node for node, sizes in known.allocatable.items() if sizes.get(resource)]
    nodes = having if len(known.allocatable) <= _MOST_COUNTED else ()
    free = {node: known.of(node).get(resource, 0.0) for node in nodes}
    most, node = max(
        ((left, node) for node, left in free.items() if left < amount), default=(0, "")
    )
    if not node:
        held = "; pods that are nominated to nodes hold room there" * known.some_are_nominated
        return f"{text}{held}"
    size = quantity_text(resource, known.allocatable[node].get(resource, 0.0))
    left = quantity_text(resource, max(most, 0))
    return f"{text}; of all nodes with too little, {node} has most free: {left} of {size}"


def _idle_class(resource: str, world: World, gates: Gates | None) -> str:
    """Return, as a part of a sentence, which class serves a resource by devices, but not now."""
    if gates is None or gates.enabled(_BY_CLASSES) is not False:
        return ""
    for found in world.all(DEVICE_CLASSES):
        name = found["metadata"]["name"]
        if resource in (mapping(found.get("spec")).get("extendedResourceName"), _OF_CLASS + name):
            default = "" if _BY_CLASSES in gates.explicit else " by default"
            return (
                f"; DeviceClass {foreign(name, FOREIGN_NAME)} serves it only with the feature gate "
                f"{_BY_CLASSES}, which is off{default} in kube-scheduler {gates.version.short}"
            )
    return ""


def _providers(
    resource: str, world: World, remove: Change, gates: Gates | None
) -> Iterator[RuleRepair]:
    """Yield what makes a node have a resource that no node has, or none that takes pods."""
    if _idle_class(resource, world, gates):
        text = (
            f"enable the feature gate {_BY_CLASSES} of kube-apiserver, kube-scheduler and kubelet"
        )
        yield RuleRepair(text, remove, rank=Rank.MEND, only=partial(_may_have_devices, world))
        return
    if resource.startswith(_HUGE):
        size = resource.removeprefix(_HUGE)
        text = f"reserve huge pages of {size} on a node and restart its kubelet"
    elif "/" in resource:
        text = f"make the device plugin of {resource} run on a node"
    else:
        return
    sizes = {node["metadata"]["name"]: (node, _allocatable(node)) for node in world.nodes()}
    having = [node for node, size in sizes.values() if size.get(resource)]
    if not having:
        others = _relatives(resource, (size for _, size in sizes.values()))[:_NAMED]
        chosen = False
        listing = [name for name, (_, size) in sizes.items() if resource in size]
        provided = f"{text}: no node has {resource}"
        if listing and "/" in resource:  # the device plugin has registered it
            node, offered = sizes[listing[0]]
            # It has another configuration, such as GPUs in MIG mode.
            chosen = any(offered.get(other) for other in others)
            provided = f"see why the device plugin on {listing[0]} provides 0 of {resource}"
            yield RuleRepair(
                f"{provided}{_unhealthy(node, resource)}",
                remove,
                rank=Rank.RULE if chosen else Rank.MEND,
                only=frozenset(listing).__contains__,
            )
        else:
            yield RuleRepair(provided, remove, rank=Rank.RULE if others else Rank.MEND)
        for other in others:  # of the same device plugin, which may have another configuration
            yield RuleRepair(
                f"request {other} instead of {resource}",
                partial(_request_other, resource=resource, other=other),
                "spec.containers",
                rank=Rank.RULE if listing and not chosen else Rank.MEND,
            )
    elif all(mapping(node.get("spec")).get("unschedulable") for node in having):
        name = having[0]["metadata"]["name"]
        reason = f"only {name}, which is cordoned, has {resource}"
        yield RuleRepair(f"{text}: {reason}", remove, rank=Rank.MEND)


def _may_have_devices(world: World, node: str) -> bool:
    slices = [mapping(one.get("spec")) for one in world.all(RESOURCE_SLICES)]
    return any(one.get("nodeName") in (None, "", node) for one in slices)


def _unhealthy(node: Mapping[str, Any], resource: str) -> str:
    """Return how many devices a node has that its kubelet does not offer."""
    capacity = amounts(mapping(node.get("status")).get("capacity")).get(resource, 0.0)
    if not capacity:
        return ""
    return (
        f"; the node's capacity is {quantity_text(resource, capacity)}, so the plugin does not run "
        "or reports its devices as unhealthy"
    )


def _allocatable(node: Mapping[str, Any]) -> Mapping[str, float]:
    return amounts(mapping(node.get("status")).get("allocatable"))


def _relatives(resource: str, sizes: Iterable[Mapping[str, float]]) -> list[str]:
    """Return what nodes have of the same vendor, such as nvidia.com/gpu.shared."""
    vendor = resource.partition("/")[0] + "/"
    if vendor == resource + "/":
        return []
    return sorted(
        {name for size in sizes for name in size if name.startswith(vendor) and size[name]}
    )


def _request_other(pod: Object, resource: str, other: str) -> None:
    for container in containers(pod["spec"]):
        for field in ("requests", "limits"):
            amounts_of = (container.get("resources") or {}).get(field) or {}
            if resource in amounts_of:
                amounts_of[other] = amounts_of.pop(resource)


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
    """Yield what decides: an init container with the sidecars before it, or all that run then."""
    inits = spec.get("initContainers") or ()
    sidecars: list[_Part] = []
    starting: list[_Part] = []  # what runs while an init container does that makes it the most
    for one in inits:
        if one.get("restartPolicy") == "Always":
            sidecars.append(_part("sidecar", one, resource))
        elif (own := _part("init container", one, resource)).amount:
            starting = max(starting, [own, *sidecars], key=_sum)
    running = [_part("container", one, resource) for one in spec.get("containers") or ()]
    running += sidecars
    deciding = starting if _sum(starting) > _sum(running) else running
    asking = sorted((part for part in deciding if part.amount), key=lambda part: -part.amount)
    for part in asking[:_NAMED]:
        share = f" ({quantity_text(resource, part.amount)})" if len(asking) > 1 else ""
        yield f"{part.kind} {part.name}{share}"
    if len(asking) > _NAMED:
        yield f"{len(asking) - _NAMED} more"


class _Part(NamedTuple):
    """What a container requests of a resource."""

    kind: str
    name: str
    amount: float


def _part(kind: str, container: Mapping[str, Any], resource: str) -> _Part:
    name = foreign(str(container.get("name")), FOREIGN_NAME)
    return _Part(kind, name, _amount(container, resource))


def _sum(parts: Iterable[_Part]) -> float:
    return sum(part.amount for part in parts)


def _amount(container: Mapping[str, Any], resource: str) -> float:
    return amounts(mapping(container.get("resources")).get("requests")).get(resource, 0.0)
