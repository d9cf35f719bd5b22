"""The resource claims of a pod, each with what the devices of a node lack.

kube-scheduler has one reason for all of them. Expressions are not evaluated here: what they exclude
is known by trying the claim without one. Source: the plugin dynamicresources and the allocator of
dynamic-resource-allocation/structured, Kubernetes 1.35 to 1.37.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_REASON
from ..base.objects import mapping
from ..config.language.feature_gates import Gates
from .constraint import Constraint, Rank, RuleRepair, containers
from .edits import edits
from .kinds import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    IMPOSSIBLE,
    NODES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Object,
    pod_name,
)
from .node_rules import BLOCKING, NAME, meets, tolerates, written_taint
from .world import World

_DRIVER: Final = re.compile(r"""device\.driver\s*==\s*['"]([^'"]+)['"]""")
_TAINTS: Final = "DRADeviceTaints"
_MOST_SELECTORS: Final = 4

_Device = tuple[str, str, str]
"""Driver, pool and name."""


def device_constraints(
    pod: Mapping[str, Any], world: World, gates: Gates | None = None
) -> Iterator[Constraint]:
    """Yield one constraint for each entry of `spec.resourceClaims`."""
    generated = {
        str(status.get("name")): str(status.get("resourceClaimName") or "")
        for status in mapping(pod.get("status")).get("resourceClaimStatuses") or ()
    }
    devices = _Devices(world, gates)
    for at, entry in enumerate(pod["spec"].get("resourceClaims") or ()):
        name = entry["name"]
        wanted = entry.get("resourceClaimName")
        known = wanted or generated.get(name) or f"{pod['metadata']['name']}-{name}"
        claim = world.get(RESOURCE_CLAIMS, known, pod["metadata"]["namespace"])
        remove = partial(_remove_claim, name=name)
        if claim is None and wanted:
            missing = f"ResourceClaim {wanted} does not exist"
            fix = f"create ResourceClaim {wanted}"
            yield Constraint("devices", missing, fix, remove, rank=Rank.MEND)
            continue
        demand = None if claim is None else _Demand(claim, devices)
        yield Constraint(
            "devices",
            f"the devices of the resource claim {name} are not available",
            f"remove the resource claim {name}",
            remove,
            on=None if demand is None else demand.fact,
            field="spec.resourceClaims",
            repairs=tuple if demand is None else partial(demand.repairs, at),
        )


def _remove_claim(pod: Object, name: str) -> None:
    spec = pod["spec"]
    spec["resourceClaims"] = [other for other in spec["resourceClaims"] if other["name"] != name]
    for container in containers(spec):
        if used := (container.get("resources") or {}).get("claims"):
            kept = [other for other in used if other.get("name") != name]
            container["resources"]["claims"] = kept


@dataclass(eq=False)
class _Devices:
    """The devices of a world."""

    world: World
    gates: Gates | None

    @cached_property
    def slices(self) -> list[Mapping[str, Any]]:
        return list(self.world.all(RESOURCE_SLICES))

    @cached_property
    def allocated(self) -> Mapping[_Device, str]:
        """The ResourceClaim, as namespace/name, that has a device."""
        taken: dict[_Device, str] = {}
        for claim in self.world.all(RESOURCE_CLAIMS):
            allocation = mapping(mapping(claim.get("status")).get("allocation"))
            for result in mapping(allocation.get("devices")).get("results") or ():
                if not result.get("adminAccess") and not result.get("shareID"):
                    taken[_of_result(result)] = pod_name(claim)
        return taken

    @cached_property
    def rules(self) -> list[Mapping[str, Any]]:
        """DeviceTaintRules, if kube-scheduler heeds taints of devices."""
        return list(self.world.all(DEVICE_TAINT_RULES)) if self.are_tainted else []

    @property
    def are_tainted(self) -> bool:
        return self.gates is not None and bool(self.gates.enabled(_TAINTS))

    def on_node(self, node: Mapping[str, Any]) -> Iterator[tuple[_Device, Mapping[str, Any]]]:
        """Yield the devices that can be used on a node, with their content."""
        for each in self.slices:
            spec = mapping(each.get("spec"))
            pool = str(mapping(spec.get("pool")).get("name") or "")
            for device in spec.get("devices") or ():
                place = device if spec.get("perDeviceNodeSelection") else spec
                if _reaches(place, node):
                    key = (str(spec.get("driver")), pool, str(device.get("name")))
                    yield key, {**device, **mapping(device.get("basic"))}

    def taints(self, key: _Device, device: Mapping[str, Any]) -> Iterator[tuple[Object, str]]:
        """Yield the taints of a device that block, each with what sets it."""
        if not self.are_tainted:
            return
        for taint in device.get("taints") or ():
            if taint.get("effect") in BLOCKING:
                yield taint, f"driver {key[0]}"
        for rule in self.rules:
            spec = mapping(rule.get("spec"))
            chosen = spec.get("deviceSelector")
            fits = chosen is not None and all(
                mapping(chosen).get(name) in (None, value)
                for name, value in zip(("driver", "pool", "device"), key, strict=True)
            )
            taint = dict(mapping(spec.get("taint")))
            if fits and taint.get("effect") in BLOCKING:
                yield taint, f"DeviceTaintRule {rule['metadata']['name']}"

    def driver_of(self, device_class: str) -> str | None:
        """Return the driver that a DeviceClass selects; None if that is not known."""
        found = self.world.get(DEVICE_CLASSES, device_class) or {}
        for selector in mapping(found.get("spec")).get("selectors") or ():
            match = _DRIVER.search(str(mapping(selector.get("cel")).get("expression") or ""))
            if match:
                return match[1]
        return None


def _of_result(result: Mapping[str, Any]) -> _Device:
    driver, pool, device = (str(result.get(key)) for key in ("driver", "pool", "device"))
    return driver, pool, device


def _reaches(place: Mapping[str, Any], node: Mapping[str, Any]) -> bool:
    if place.get("allNodes"):
        return True
    if place.get("nodeName"):
        return bool(place["nodeName"] == node["metadata"]["name"])
    terms = mapping(place.get("nodeSelector")).get("nodeSelectorTerms") or ()
    return any(meets(term, node) for term in terms)


@dataclass(eq=False)
class _Demand:
    """A ResourceClaim over the devices of a world."""

    claim: Object
    devices: _Devices
    _variants: int = 0

    @property
    def title(self) -> str:
        return f"ResourceClaim {self.claim['metadata']['name']}"

    @property
    def requests(self) -> list[Mapping[str, Any]]:
        """The requests that have one alternative, with their name."""
        requests = mapping(mapping(self.claim.get("spec")).get("devices")).get("requests") or ()
        return [
            {"name": request.get("name"), **mapping(request.get("exactly"))}
            for request in requests
            if request.get("exactly")
        ]

    def fact(self, name: str) -> str:
        """Return what devices a node lacks; empty if that is not known."""
        node = self.devices.world.get(NODES, name)
        if node is None:
            return ""
        allocation = mapping(mapping(self.claim.get("status")).get("allocation"))
        if allocation:
            return self._allocated_elsewhere(allocation, node)
        there = list(self.devices.on_node(node))
        if not there:
            return f"no ResourceSlice has a device for the node, which {self.title} requests"
        facts = (self._of_request(request, there) for request in self.requests)
        return next(filter(None, facts), "")

    def _allocated_elsewhere(self, allocation: Mapping[str, Any], node: Mapping[str, Any]) -> str:
        terms = mapping(allocation.get("nodeSelector")).get("nodeSelectorTerms") or ()
        if not terms or any(meets(term, node) for term in terms):
            return ""
        named = [
            value
            for term in terms
            for one in term.get("matchFields") or ()
            if one.get("key") == NAME
            for value in one.get("values") or ()
        ]
        results = map(_of_result, mapping(allocation.get("devices")).get("results") or ())
        device = next((f"device {name} of {driver}, " for driver, _, name in results), "")
        where = f"node {', '.join(named)}" if named else "nodes with other labels"
        return f"{self.title} is allocated: {device}which {where} can use"

    def _of_request(
        self, request: Mapping[str, Any], there: Sequence[tuple[_Device, Mapping[str, Any]]]
    ) -> str:
        device_class = str(request.get("deviceClassName"))
        what = f"request {request['name']} of {self.title}"
        if self.devices.world.get(DEVICE_CLASSES, device_class) is None:
            return f"DeviceClass {device_class} of {what} does not exist"
        driver = self.devices.driver_of(device_class)
        of_class = [(key, one) for key, one in there if driver in (None, key[0])]
        kind = f"of driver {driver} (DeviceClass {device_class})" if driver else "of any driver"
        count = 1 if request.get("allocationMode") == "All" else int(request.get("count") or 1)
        if len(of_class) < count:
            return f"the node has {_counted(len(of_class))} {kind}, and {what} wants {count}"
        taken = self.devices.allocated
        free = [
            (key, one)
            for key, one in of_class
            if key not in taken or one.get("allowMultipleAllocations")
        ]
        if len(free) < count:
            holder = next(taken[key] for key, _ in of_class if key in taken)
            return (
                f"{len(of_class) - len(free)} of {_counted(len(of_class))} {kind} on the node are "
                f"allocated, for example to ResourceClaim {holder}; {what} wants {count}"
            )
        tainted = dict(self._tainted(request, free))
        if len(free) - len(tainted) < count:
            key, (taint, setter) = next(iter(tainted.items()))
            return (
                f"device {key[2]} of the node has the taint {written_taint(taint)}, set by "
                f"{setter}, which {what} does not tolerate"
            )
        expressions = _expressions(request)
        if not expressions:
            return ""
        return (
            f"of {_counted(len(free))} {kind} that the node has free, the selectors or constraints "
            f"of {what} exclude some: {'; '.join(expressions)}"
        )

    def _tainted(
        self, request: Mapping[str, Any], devices: Sequence[tuple[_Device, Mapping[str, Any]]]
    ) -> Iterator[tuple[_Device, tuple[Object, str]]]:
        tolerations = request.get("tolerations") or ()
        for key, device in devices:
            for taint, setter in self.devices.taints(key, device):
                if not any(tolerates(toleration, taint) for toleration in tolerations):
                    yield key, (taint, setter)
                    break

    # --- what may help ------------------------------------------------------------------------

    def repairs(self, at: int) -> Iterator[RuleRepair]:
        """Yield what may help the pod whose claim this is, the entry `at` of its list."""
        if mapping(mapping(self.claim.get("status")).get("allocation")):
            return
        where = "spec.devices.requests"
        for index, request in enumerate(self.claim["spec"].get("devices", {}).get("requests", ())):
            exactly = mapping(request.get("exactly"))
            if setters := self._setters(exactly):
                yield self._variant(
                    at,
                    f"end the taint of the devices, which {' and '.join(setters)} sets",
                    lambda own: own.update(tolerations=[{"operator": "Exists"}]),
                    index,
                    rank=Rank.MEND,
                )
            for number, text in enumerate(_expressions(exactly)[:_MOST_SELECTORS]):
                yield self._variant(
                    at,
                    f"correct the selector {text}, which no free device meets",
                    partial(_without_selector, number=number),
                    index,
                    field=f"{where}[{index}].exactly.selectors[{number}]",
                )
            for count in range(int(exactly.get("count") or 1) - 1, 0, -1)[:_MOST_SELECTORS]:
                yield self._variant(
                    at,
                    f"request {_counted(count)} instead of {exactly['count']}",
                    lambda own, count=count: own.update(count=count),
                    index,
                    field=f"{where}[{index}].exactly.count",
                    rank=Rank.LESS,
                )

    def _setters(self, request: Mapping[str, Any]) -> list[str]:
        nodes = self.devices.world.all(NODES)
        devices = [device for node in nodes for device in self.devices.on_node(node)]
        return sorted({setter for _, (_, setter) in self._tainted(request, devices)})[:3]

    def _variant(
        self, at: int, text: str, change: Any, index: int, *, field: str = "",
        rank: Rank = Rank.RULE,
    ) -> RuleRepair:  # fmt: skip
        """Return the repair by a claim like this one, changed in one request."""
        claim = copy.deepcopy(dict(self.claim))
        metadata = claim["metadata"]
        self._variants += 1
        name = f"{IMPOSSIBLE}{metadata['name']}-{at}-{self._variants}"
        claim["metadata"] = {"name": name, "namespace": metadata["namespace"], "uid": name}
        claim["status"] = {}
        change(claim["spec"]["devices"]["requests"][index]["exactly"])

        def use(pod: Object) -> None:
            entry = pod["spec"]["resourceClaims"][at]
            entry.pop("resourceClaimTemplateName", None)
            entry["resourceClaimName"] = name

        if not field:
            return RuleRepair(text, use, rank=rank, objects=(claim,))
        title = f"ResourceClaim {pod_name(self.claim)}"
        specs = ({"spec": one["spec"]} for one in (self.claim, claim))
        edited = edits(title, "", *specs)
        return RuleRepair(text, use, field, rank, title, (claim,), lambda _: edited)


def _counted(count: int) -> str:
    return f"{count} device{'s' * (count != 1)}"


def _without_selector(request: Object, number: int) -> None:
    del request["selectors"][number]


def _expressions(request: Mapping[str, Any]) -> list[str]:
    return [
        foreign(str(mapping(selector.get("cel")).get("expression") or ""), FOREIGN_REASON)
        for selector in request.get("selectors") or ()
    ]
