"""The resource claims of a pod, each with what the devices of a node lack.

kube-scheduler has one reason for all of them. Expressions are not evaluated here: what they exclude
is known by trying the claim without one. Source: the plugin dynamicresources and the allocator of
dynamic-resource-allocation/structured, Kubernetes 1.35 to 1.37.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_NAME
from ..base.objects import controller_of, mapping
from ..config.language.feature_gates import Gates
from .absence import absent
from .constraint import Change, Constraint, Rank, RuleRepair, containers
from .device_counters import Pool, SharedCounters, counters_of, incomplete_pools, pool_of, used_up
from .device_holders import idle_holders
from .device_selectors import failed_selector, guard, guard_text, lacking, unguarded
from .device_values import written_values
from .edits import Edit, edits
from .kinds import (
    CLAIM_TEMPLATES,
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    IMPOSSIBLE,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Object,
    pod_name,
)
from .node_rules import BLOCKING, NAME, meets, tolerates, written_taint
from .weaker_claims import MOST_TRIED, WeakerClaim, counted, selector_texts, weaker_claims
from .world import World

_DRIVER: Final = re.compile(r"""device\.driver\s*==\s*['"]([^'"]+)['"]""")
_TAINTS: Final = "DRADeviceTaints"
_PARTITIONS: Final = "DRAPartitionableDevices"

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
        namespace = pod["metadata"]["namespace"]
        claim = world.get(RESOURCE_CLAIMS, known, namespace)
        remove = partial(_remove_claim, name=name)
        if claim is None and wanted:
            title = f"ResourceClaim {wanted}"
            missing, fix = absent(world, RESOURCE_CLAIMS, title, f"create {title}")
            yield Constraint("devices", missing, fix, remove, rank=Rank.MEND)
            continue
        template = str(entry.get("resourceClaimTemplateName") or "")
        if claim is None and world.get(CLAIM_TEMPLATES, template, namespace) is None:
            title = f"ResourceClaimTemplate {template}"
            missing, fix = absent(world, CLAIM_TEMPLATES, title, f"create {title}")
            yield Constraint("devices", missing, fix, remove, rank=Rank.MEND)
            continue
        demand = None if claim is None else _Demand(claim, devices, pod)
        yield Constraint(
            "devices",
            f"the devices of the resource claim {name} are not available",
            f"remove the resource claim {name}",
            remove,
            on=None if demand is None else demand.fact,
            seen=None if demand is None else demand.seen,
            field="spec.resourceClaims",
            repairs=tuple if demand is None else partial(demand.repairs, at, remove),
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
    def incomplete(self) -> Mapping[Pool, str]:
        return incomplete_pools(self.slices)

    @cached_property
    def counters(self) -> Mapping[Pool, SharedCounters]:
        pools: dict[Pool, list[Mapping[str, Any]]] = {}
        taken: dict[Pool, set[str]] = {}
        for each in self.slices:
            pools.setdefault(pool_of(each), []).append(each)
        for driver, pool, name in self.allocated:
            taken.setdefault((driver, pool), set()).add(name)
        return {pool: counters_of(own, taken.get(pool, ())) for pool, own in pools.items()}

    def may_fail(self, expression: str) -> bool:
        """Whether a selector reads what some device lacks."""
        return any(True for _ in lacking(self.slices, unguarded(expression)))

    def has(self, driver: str | None) -> bool:
        """Whether any node has a device of a driver; None: of any driver."""
        return any(
            mapping(each.get("spec")).get("devices")
            for each in self.slices
            if driver in (None, mapping(each.get("spec")).get("driver"))
        )

    @cached_property
    def rules(self) -> list[Mapping[str, Any]]:
        """DeviceTaintRules, if kube-scheduler heeds taints of devices."""
        return list(self.world.all(DEVICE_TAINT_RULES)) if self.are_tainted else []

    @property
    def are_tainted(self) -> bool:
        return self.gates is not None and bool(self.gates.enabled(_TAINTS))

    @property
    def can_partition(self) -> bool:
        """Whether devices that consume counters are allocated; True: or not known."""
        return self.gates is None or self.gates.enabled(_PARTITIONS) is not False

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
    pod: Mapping[str, Any]
    _variants: int = 0

    @property
    def title(self) -> str:
        return f"ResourceClaim {self.claim['metadata']['name']}"

    @property
    def requests(self) -> list[list[Mapping[str, Any]]]:
        """The requests, each with its alternatives."""
        requests = mapping(mapping(self.claim.get("spec")).get("devices")).get("requests") or ()
        return [
            [{"name": request.get("name"), **mapping(request["exactly"])}]
            if request.get("exactly")
            else [
                {**one, "name": f"{request.get('name')}/{one.get('name')}"}
                for one in request.get("firstAvailable") or ()
            ]
            for request in requests
        ]

    @property
    def each(self) -> list[Mapping[str, Any]]:
        return [one for alternatives in self.requests for one in alternatives]

    @property
    def constraints(self) -> list[Mapping[str, Any]]:
        return list(
            mapping(mapping(self.claim.get("spec")).get("devices")).get("constraints") or ()
        )

    def fact(self, name: str) -> str:
        """Return what devices a node lacks; empty if that is not known."""
        node = self.devices.world.node(name)
        if node is None:
            return ""
        allocation = mapping(mapping(self.claim.get("status")).get("allocation"))
        if allocation:
            return self._allocated_elsewhere(allocation, node)
        there = list(self.devices.on_node(node))
        if not there:
            return f"no ResourceSlice has a device for the node, and {self.title} requests one"
        for (driver, pool, _), _ in there:
            if known := self.devices.incomplete.get((driver, pool)):
                return (
                    f"{known} ResourceSlices of the pool {pool} of driver {driver} exist, and "
                    f"kube-scheduler allocates no device of it for {self.title} before all do"
                )
        if not self.devices.can_partition and all(one.get("consumesCounters") for _, one in there):
            return (
                "kube-scheduler allocates no device that consumes counters, as those of the node "
                f"do: its feature gate {_PARTITIONS} is off"
            )
        facts = (self._of_alternatives(request, there) for request in self.requests)
        return next(filter(None, facts), "") or self._of_constraints(there)

    def seen(self, reasons: Sequence[str]) -> str:
        """Return which selector of it failed, if kube-scheduler reports that."""
        failure = failed_selector(reasons)
        classes = (str(one.get("deviceClassName")) for one in self.each)
        if failure is None or not failure.is_of(self.claim, classes):
            return ""
        return failure.text(self.devices.world)

    def _of_alternatives(
        self,
        alternatives: Sequence[Mapping[str, Any]],
        there: Sequence[tuple[_Device, Mapping[str, Any]]],
    ) -> str:
        facts = [self._of_request(request, there) for request in alternatives]
        return "; ".join(facts[:MOST_TRIED]) if all(facts) else ""

    def _of_constraints(self, there: Sequence[tuple[_Device, Mapping[str, Any]]]) -> str:
        """Return the attribute that too few free devices of a node have in common."""
        free = [(key, one) for key, one in there if key not in self.devices.allocated]
        for constraint in self.constraints:
            name = str(constraint.get("matchAttribute") or "")
            names = constraint.get("requests") or ()
            count = sum(
                int(request.get("count") or 1)
                for request, *_ in self.requests
                if not names or request["name"] in names
            )
            values = Counter(repr(value) for _, one in free if (value := _attribute(one, name)))
            most = max(values.values(), default=0)
            if name and most < count:
                shown = foreign(name, FOREIGN_NAME)
                return (
                    f"{self.title} demands {counted(count)} with the same {shown} "
                    f"(constraints), and the node has {most} free with the same"
                    f"{_lacking_it(free, name)}"
                )
        return ""

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
        return f"{self.title} is allocated: {device}which {where} alone can use"

    def _of_request(
        self, request: Mapping[str, Any], there: Sequence[tuple[_Device, Mapping[str, Any]]]
    ) -> str:
        device_class = str(request.get("deviceClassName"))
        what = f"request {request['name']} of {self.title}"
        if self.devices.world.get(DEVICE_CLASSES, device_class) is None:
            title = f"DeviceClass {device_class} of {what}"
            return absent(self.devices.world, DEVICE_CLASSES, title, "")[0]
        driver = self.devices.driver_of(device_class)
        of_class = [(key, one) for key, one in there if driver in (None, key[0])]
        kind = f"of driver {driver} (DeviceClass {device_class})" if driver else "of any driver"
        everything = request.get("allocationMode") == "All"
        count = max(len(of_class), 1) if everything else int(request.get("count") or 1)
        wants = "all" if everything else str(count)
        if len(of_class) < count:
            return f"the node has {counted(len(of_class))} {kind}, and {what} wants {wants}"
        taken = self.devices.allocated
        free = [
            (key, one)
            for key, one in of_class
            if key not in taken or one.get("allowMultipleAllocations")
        ]
        if len(free) < count:
            holder = next(taken[key] for key, _ in of_class if key in taken)
            used = len(of_class) - len(free)
            return (
                f"{used} of {counted(len(of_class))} {kind} on the node "
                f"{'is' if used == 1 else 'are'} allocated, for example to ResourceClaim {holder}; "
                f"{what} wants {wants}"
            )
        if shared := self._used_up(free, count):
            return f"{shared}; {what} wants {wants}"
        tainted = dict(self._tainted(request, free))
        if len(free) - len(tainted) < count:
            key, (taint, setter) = next(iter(tainted.items()))
            return (
                f"device {key[2]} of the node has the taint {written_taint(taint)}, set by "
                f"{setter}, which {what} does not tolerate"
            )
        expressions = selector_texts(request)
        if not expressions:
            return ""
        of = "selectors and constraints" if self.constraints else "selectors"
        return (
            f"too few of {counted(len(free))} {kind} that the node has free meet the {of} of "
            f"{what}, which wants {wants}: {'; '.join(expressions)}"
            f"{written_values(expressions, free)}"
        )

    def _used_up(self, free: Sequence[tuple[_Device, Mapping[str, Any]]], count: int) -> str:
        """Return what the partitions of a device lack that others of it use."""
        facts = []
        for (driver, pool, name), device in free:
            if fact := used_up(device, self.devices.counters[driver, pool]):
                facts.append(f"device {name} of pool {pool} {fact}")
        return facts[0] if facts and len(free) - len(facts) < count else ""

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

    def repairs(self, at: int, remove: Change) -> Iterator[RuleRepair]:
        """Yield what may help the pod whose claim this is, the entry `at` of its list.

        Where a device is missing, it has the effect of no claim: `remove`.
        """
        if mapping(mapping(self.claim.get("status")).get("allocation")):
            yield from self._of_its_own(at)
            return
        for text, rank in self._missing():
            yield RuleRepair(text, remove, rank=rank)
        wanted = self.claim["spec"].get("devices") or {}
        yield from self._guarded_classes(at)
        for weaker in weaker_claims(wanted, self.title, self._setters, self.devices.may_fail):
            yield self._variant(at, weaker)

    def _of_its_own(self, at: int) -> Iterator[RuleRepair]:
        """Yield a claim for this pod alone, of a workload whose pods share one."""
        entry = self.pod["spec"]["resourceClaims"][at]
        if controller_of(self.pod) is None or not entry.get("resourceClaimName"):
            return
        text = (
            f"use a ResourceClaimTemplate (resourceClaimTemplateName) instead of {self.title}, so "
            "that each pod of the workload has a claim of its own"
        )
        yield self._variant(at, WeakerClaim(text, _unchanged, "", Rank.RULE))

    def _guarded_classes(self, at: int) -> Iterator[RuleRepair]:
        """Yield the DeviceClasses whose selectors may fail, with selectors that do not."""
        names = dict.fromkeys(str(one.get("deviceClassName")) for one in self.each)
        for name in list(names)[:MOST_TRIED]:
            before = self.devices.world.get(DEVICE_CLASSES, name)
            after = copy.deepcopy(before)
            if after is None or not (
                changed := guard(after.get("spec") or {}, self.devices.may_fail)
            ):
                continue
            title = f"DeviceClass {name}"
            edited = edits(
                title, "", {"spec": mapping(before).get("spec")}, {"spec": after["spec"]}
            )
            self._variants += 1
            other = f"{IMPOSSIBLE}class-{at}-{self._variants}"
            after["metadata"] = {"name": other, "uid": other}
            use_class = partial(_use_class, name, other)
            text = guard_text(title, [expression for _, expression in changed])
            index = f"[{changed[0][0]}].cel.expression" if len(changed) == 1 else ""
            claim = self._variant(at, WeakerClaim(text, use_class, "", Rank.MEND))
            yield RuleRepair(
                text,
                claim.change,
                f"spec.selectors{index}",
                Rank.MEND,
                title,
                (*claim.objects, after),
                partial(_always, edited),
            )

    def _missing(self) -> Iterator[tuple[str, Rank]]:
        """Yield what gives the cluster the devices, and the rank of that."""
        drivers = {self.devices.driver_of(str(one.get("deviceClassName"))) for one in self.each}
        pools = [item for item in self.devices.incomplete.items() if {None, item[0][0]} & drivers]
        for pool, known in pools[:MOST_TRIED]:
            text = f"make the driver {pool[0]} publish all ResourceSlices of its pool {pool[1]}"
            yield f"{text}: there are {known}", Rank.MEND
        for request in self.each:
            name = str(request.get("deviceClassName"))
            driver = self.devices.driver_of(name)
            if self.devices.world.get(DEVICE_CLASSES, name) is None:
                again = f"{self.title} again with another deviceClassName"
                yield f"create DeviceClass {name}, or {again}", Rank.MEND
            elif not self.devices.has(driver):
                of = f"of driver {driver}" if driver else "of any driver"
                run = f"make the driver {driver} run" if driver else "make a driver run"
                missing = f"no ResourceSlice has a device {of} (kubectl get resourceslices)"
                yield f"{run} on a node: {missing}", Rank.MEND
            elif not selector_texts(request) and not self.constraints:
                yield from self._held(driver)

    def _held(self, driver: str | None) -> Iterator[tuple[str, Rank]]:
        """Yield the claims without a pod that hold devices, then more devices."""
        held = {claim for (of, *_), claim in self.devices.allocated.items() if driver in (None, of)}
        for holder in sorted(held)[:MOST_TRIED]:
            namespace, _, name = holder.partition("/")
            found = self.devices.world.get(RESOURCE_CLAIMS, name, namespace) or {}
            if not mapping(found.get("status")).get("reservedFor"):
                text = (
                    f"delete ResourceClaim {holder}, which has a device and no pod: kubectl delete "
                    f"resourceclaim -n {namespace} {name}"
                )
                yield text, Rank.MEND
            elif idle := idle_holders(found, self.devices.world):
                yield (
                    f"see why ResourceClaim {holder}, which no existing pod uses, is reserved for "
                    f"{idle}: kubectl get resourceclaim -n {namespace} {name} -o yaml",
                    Rank.MEND,
                )
        if held:
            yield f"add a node with a device of driver {driver}", Rank.NODE

    def _setters(self, request: Mapping[str, Any]) -> list[str]:
        nodes = self.devices.world.nodes()
        devices = [device for node in nodes for device in self.devices.on_node(node)]
        return sorted({setter for _, (_, setter) in self._tainted(request, devices)})[:3]

    def _variant(self, at: int, weaker: WeakerClaim) -> RuleRepair:
        """Return the repair by a claim like this one that demands less."""
        claim = copy.deepcopy(dict(self.claim))
        metadata = claim["metadata"]
        self._variants += 1
        name = f"{IMPOSSIBLE}{metadata['name']}-{at}-{self._variants}"
        claim["metadata"] = {"name": name, "namespace": metadata["namespace"], "uid": name}
        claim["status"] = {}
        weaker.change(claim["spec"]["devices"])

        def use(pod: Object) -> None:
            entry = pod["spec"]["resourceClaims"][at]
            entry.pop("resourceClaimTemplateName", None)
            entry["resourceClaimName"] = name

        if not weaker.field:
            return RuleRepair(weaker.text, use, rank=weaker.rank, objects=(claim,))
        title = f"ResourceClaim {pod_name(self.claim)}"
        specs = ({"spec": one["spec"]} for one in (self.claim, claim))
        edited = edits(title, "", *specs)
        field = f"spec.devices.{weaker.field}"
        return RuleRepair(weaker.text, use, field, weaker.rank, title, (claim,), lambda _: edited)


def _unchanged(_devices: Object) -> None:
    """Leave what a claim demands."""


def _use_class(name: str, other: str, devices: Object) -> None:
    for request in devices.get("requests") or ():
        for one in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if one and one.get("deviceClassName") == name:
                one["deviceClassName"] = other


def _always(edited: Iterable[Edit], _nodes: Sequence[str]) -> Iterable[Edit]:
    return edited


def _lacking_it(free: Sequence[tuple[_Device, Mapping[str, Any]]], name: str) -> str:
    """Name a device without an attribute."""
    for (driver, _, device), content in free:
        if not _attribute(content, name):
            return f"; device {device} of driver {driver} has no such attribute"
    return ""


def _attribute(device: Mapping[str, Any], name: str) -> Any:
    """Return an attribute of a device, which may leave out the domain of its driver."""
    attributes = mapping(device.get("attributes"))
    return attributes.get(name) or attributes.get(name.rpartition("/")[2])
