"""Devices of generated worlds: pools, classes, taints and rules for them, and who claims them.

Some fields exist in newer versions only: the API server drops those that it does not know, so the
same world has fewer of them in an older version.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Final

from .simulated_worlds import DRIVER, NAMESPACES, ZONE

Object = dict[str, Any]
_BASE: Final = "/apis/resource.k8s.io/v1"
CLAIMS: Final = f"{_BASE}/namespaces/{NAMESPACES[0]}/resourceclaims"
RULES: Final = f"{_BASE}/devicetaintrules"
_SLICES: Final = f"{_BASE}/resourceslices"
# Where a selector fails for some devices only, the order of pools decides, which
# kube-scheduler takes from a map: it answers otherwise each time. So two ask whether there is a
# value, and the last one fails for each device.
_CAPACITY: Final = f"device.capacity['{DRIVER}']"
_ATTRIBUTES: Final = f"device.attributes['{DRIVER}']"
_MEMORY: Final = f"'memory' in {_CAPACITY} && {_CAPACITY}.memory.compareTo(quantity('10Gi')) >= 0"
_MODEL: Final = f"'model' in {_ATTRIBUTES} && {_ATTRIBUTES}.model == 'a'"
_ABSENT: Final = f"{_ATTRIBUTES}.absent == 'a'"
_TAINT_KEY: Final = f"{DRIVER}/unhealthy"


@dataclass(frozen=True, slots=True)
class Hold:
    """A claim whose device a running pod has."""

    claim: str
    pod: str
    allocation: Object


@dataclass
class Devices:
    """Devices, and pods that want some."""

    # (path of the collection, object), to create in this order
    objects: list[tuple[str, Object]] = field(default_factory=list)
    # likewise, of forms that only newer versions have
    newer: list[tuple[str, Object]] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)
    # claims that pods can name, and templates
    claims: list[str] = field(default_factory=list)
    templates: list[str] = field(default_factory=list)
    extended: str = ""  # the extended resource of a class; empty: it has none


def devices(chance: random.Random, prefix: str, nodes: list[str]) -> Devices:
    """Draw devices on these nodes, and claims for them."""
    made = Devices()
    _classes(chance, made, prefix)
    for node in chance.sample(nodes, chance.randint(2, len(nodes))):
        _pool(chance, made, prefix, node)
    if chance.random() < 0.4:
        _network_pool(chance, made, prefix)
    if chance.random() < 0.6:
        _partitioned_pool(chance, made, prefix, chance.choice(nodes))
    for number in range(chance.randint(2, 4)):
        spec = {"devices": _claim(chance, prefix)}
        if chance.random() < 0.5:
            made.claims.append(f"{prefix}-claim{number}")
            made.objects.append((CLAIMS, _named(made.claims[-1], spec)))
        else:
            made.templates.append(f"{prefix}-template{number}")
            template = _named(made.templates[-1], {"spec": spec})
            path = f"{_BASE}/namespaces/{NAMESPACES[0]}/resourceclaimtemplates"
            made.objects.append((path, template))
    if chance.random() < 0.6:
        _rule(chance, made, prefix, chance.choice(nodes))
    return made


def want(chance: random.Random, pod: Object, made: Devices) -> None:
    """Let a pod claim devices."""
    spec = pod["spec"]
    resources = spec["containers"][0]["resources"]
    if made.extended and chance.random() < 0.25:
        for kind in ("requests", "limits"):
            resources.setdefault(kind, {})[made.extended] = str(chance.randint(1, 2))
        return
    sources = [{"resourceClaimName": name} for name in made.claims]
    sources += [{"resourceClaimTemplateName": name} for name in made.templates]
    sources += [{"resourceClaimName": hold.claim} for hold in made.holds]
    chosen = chance.sample(sources, min(chance.choice((1, 1, 1, 2)), len(sources)))
    names = [f"d{number}" for number in range(len(chosen))]
    spec["resourceClaims"] = [
        {"name": name, **source} for name, source in zip(names, chosen, strict=True)
    ]
    resources["claims"] = [{"name": name} for name in names]


def hold(chance: random.Random, made: Devices, pod: Object, claim: str, *, pool: str) -> None:
    """Give a running pod the first device of the pool of its node.

    From 1.36 on, kube-scheduler writes when it allocated a claim, and fails if an older one did.
    """
    node = pod["spec"]["nodeName"]
    pod["spec"]["resourceClaims"] = [{"name": "held", "resourceClaimName": claim}]
    here = {"key": "metadata.name", "operator": "In", "values": [node]}
    result = {"request": "r", "driver": DRIVER, "pool": pool, "device": "d0"}
    allocation: Object = {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
    }
    if chance.random() < 0.7:
        allocation["allocationTimestamp"] = "2026-01-01T00:00:00Z"
    request = _exactly("r", claim.partition("-")[0])
    made.objects.append((CLAIMS, _named(claim, {"devices": {"requests": [request]}})))
    made.holds.append(Hold(claim, pod["metadata"]["name"], allocation))


def pool_of(prefix: str, node: str) -> str:
    return f"{prefix}-of-{node}"


def _named(name: str, spec: Object) -> Object:
    return {"metadata": {"name": name}, "spec": spec}


def _classes(chance: random.Random, made: Devices, prefix: str) -> None:
    """Draw a class of large devices, and one with an extended resource; `prefix` exists already."""
    selectors = [{"cel": {"expression": _MEMORY}}]
    made.objects.append(
        (f"{_BASE}/deviceclasses", _named(f"{prefix}-large", {"selectors": selectors}))
    )
    spec: Object = {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]}
    if chance.random() < 0.6:
        made.extended = spec["extendedResourceName"] = f"example.com/{prefix}"
    made.objects.append((f"{_BASE}/deviceclasses", _named(f"{prefix}-extended", spec)))


def _pool(chance: random.Random, made: Devices, prefix: str, node: str) -> None:
    name = pool_of(prefix, node)
    drawn = [_device(chance, number) for number in range(chance.randint(1, 3))]
    made.objects.append((_SLICES, _slice(name, 1, nodeName=node, devices=drawn)))


def _network_pool(chance: random.Random, made: Devices, prefix: str) -> None:
    """Draw devices that several nodes reach."""
    reach: Object = {"allNodes": True}
    if chance.random() < 0.7:
        zones = {"key": ZONE, "operator": "In", "values": chance.sample("abc", 2)}
        reach = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [zones]}]}}
    drawn = [_device(chance, number) for number in range(2)]
    made.objects.append((_SLICES, _slice(f"{prefix}-network", 1, **reach, devices=drawn)))


def _partitioned_pool(chance: random.Random, made: Devices, prefix: str, node: str) -> None:
    """Draw devices that share counters: not all of them can be allocated."""
    name = f"{prefix}-parts"
    counters = [{"name": "set", "counters": {"slices": {"value": str(chance.randint(1, 4))}}}]
    drawn = []
    for number in range(3):
        needed = {"slices": {"value": str(chance.randint(1, 3))}}
        consumed = [{"counterSet": "set", "counters": needed}]
        drawn.append({**_device(chance, number), "consumesCounters": consumed})
    shared = _slice(name, 2, nodeName=node, sharedCounters=counters)
    shared["metadata"]["name"] += "-counters"
    made.newer += [(_SLICES, shared), (_SLICES, _slice(name, 2, nodeName=node, devices=drawn))]


def _slice(pool: str, count: int, **spec: Any) -> Object:
    whole = {"name": pool, "generation": 1, "resourceSliceCount": count}
    return _named(pool, {"driver": DRIVER, "pool": whole, **spec})


def _device(chance: random.Random, number: int) -> Object:
    attributes: Object = {"index": {"int": number}}
    if chance.random() < 0.9:
        attributes["model"] = {"string": chance.choice("ab")}
    memory: Object = {"value": chance.choice(("8Gi", "16Gi"))}
    device: Object = {"name": f"d{number}", "attributes": attributes}
    if chance.random() < 0.2:
        device["allowMultipleAllocations"] = True
        memory["requestPolicy"] = {
            "default": "2Gi", "validRange": {"min": "1Gi", "step": "1Gi", "max": memory["value"]},
        }  # fmt: skip
    device["capacity"] = {"memory": memory}
    if chance.random() < 0.25:
        device["taints"] = [_taint(chance)]
    return device


def _taint(chance: random.Random) -> Object:
    """Draw a taint. With NoExecute, pods would be evicted while the world is compared."""
    effect = chance.choice(("NoSchedule", "NoSchedule", "None"))
    return {"key": _TAINT_KEY, "value": chance.choice(("hot", "cold")), "effect": effect}


def _exactly(name: str, device_class: str, **fields: Any) -> Object:
    return {"name": name, "exactly": {"deviceClassName": device_class, **fields}}


def _claim(chance: random.Random, prefix: str) -> Object:
    """Draw spec.devices of a claim."""
    large, extended = f"{prefix}-large", f"{prefix}-extended"
    tolerated = {"key": _TAINT_KEY, "operator": "Exists"}
    if chance.random() < 0.5:
        tolerated |= {"operator": "Equal", "value": "hot", "effect": "NoSchedule"}
    model, absent = ([{"cel": {"expression": text}}] for text in (_MODEL, _ABSENT))
    two = [_exactly("r", prefix), _exactly("s", extended)]
    part = {"requests": {"memory": chance.choice(("1Gi", "3Gi", "9Gi"))}}
    return chance.choice(
        (
            {"requests": [_exactly("r", large, count=chance.randint(1, 2))]},
            {"requests": [_exactly("r", prefix, selectors=model)]},
            {"requests": [_exactly("r", prefix, selectors=absent)]},
            {"requests": [_exactly("r", prefix, allocationMode="All")]},
            {"requests": [_exactly("r", large, tolerations=[tolerated])]},
            {"requests": [_exactly("r", large, capacity=part)]},
            {"requests": [_exactly("r", f"{prefix}-none")]},
            {"requests": two, "constraints": [{"matchAttribute": f"{DRIVER}/model"}]},
            {"requests": [{"name": "r", "firstAvailable": [
                {"name": "large", "deviceClassName": large, "count": 2},
                {"name": "any", "deviceClassName": extended, "tolerations": [tolerated]},
            ]}]},
        )
    )  # fmt: skip


def _rule(chance: random.Random, made: Devices, prefix: str, node: str) -> None:
    """Draw a rule that taints a pool, one of its devices, or the device d0 of all pools."""
    pool = {"pool": pool_of(prefix, node)}
    selected = chance.choice((pool, {**pool, "device": "d0"}, {"device": "d0"}))
    spec = {"deviceSelector": {"driver": DRIVER, **selected}, "taint": _taint(chance)}
    made.newer.append((RULES, _named(f"{prefix}-rule", spec)))
