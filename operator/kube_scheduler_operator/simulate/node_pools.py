"""Karpenter's NodePools and NodeClaims: which nodes they could make, and which they are making.

EKS Auto Mode and AKS Node Auto Provisioning have the same kinds. Rules: scheduling of
sigs.k8s.io/karpenter v1.15.0 (provisioner.go, nodeclaimtemplate.go, scheduler.go). Which instance
types there are, and their sizes, is the cloud's list, which is not in the cluster: sizes are known
of types that run, and of those that are being made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_MESSAGE
from ..base.objects import entries, mapping
from ..base.quantities import CPU, MEMORY, amounts
from .autoscaling_kinds import NODE_CLAIMS, NODE_POOLS
from .kinds import CSI_NODES, HOSTNAME, NODES, STORAGE_CLASSES, VOLUMES, Object
from .new_nodes import (
    MOST_SOURCES,
    PODS_OF_A_NODE,
    Coming,
    Limit,
    NodeMaker,
    NodeTemplate,
    shown,
    template_node,
)
from .node_rules import PREFERRED, REQUIRED
from .requirements import (
    ALIASES,
    ANY,
    ARCH,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    MOST_ALTERNATIVES,
    OS,
    REGION,
    ZONE,
    Requirements,
    deciding_keys,
    demands,
    requirements_of,
    written,
)
from .world import World

POOL_LABEL: Final = "karpenter.sh/nodepool"
_PROVIDERS: Final = (
    "karpenter.k8s.aws/", "karpenter.azure.com/", "kubernetes.azure.com/", "eks.amazonaws.com/",
    "karpenter.k8s.gcp/", "topology.k8s.aws/", "node.kubernetes.io/windows-build",
)  # fmt: skip
"""Labels that providers set, by prefix."""
_OFFERED: Final = frozenset({ZONE, REGION, INSTANCE_TYPE, ARCH, OS, CAPACITY_TYPE})
_OF_TYPE: Final = frozenset({INSTANCE_TYPE, ARCH, OS, REGION})
"""Labels that an instance type decides, besides those of providers."""
_ORDINARY: Final = frozenset(
    {(OS, "linux"), (ARCH, "amd64"), (ARCH, "arm64")}
    | {(CAPACITY_TYPE, kind) for kind in ("on-demand", "spot")}
)
_BOUNDED: Final[Mapping[str, tuple[str, float]]] = {
    f"{provider}-{resource}": of
    for provider in ("karpenter.k8s.aws/instance", "eks.amazonaws.com/instance",
                     "karpenter.azure.com/sku")
    for resource, of in (("cpu", (CPU, 1000.0)), ("memory", (MEMORY, 2.0**20)))
}  # fmt: skip
"""Label with the size of instance types -> resource, and what one of it is."""
_EVERY_NODE: Final = (CPU, MEMORY, "nodes")
"""Limits that any node counts against."""
_AUTO_MODE: Final = "eks.amazonaws.com"
"""The group of the NodeClasses of EKS Auto Mode."""
_MOST_VALUES: Final = 12
_MOST_SHAPES: Final = 6
_STEPS: Final = ("Launched", "Registered", "Initialized")


@dataclass(frozen=True, slots=True)
class _Shape:
    """An instance type whose size is known."""

    like: str
    labels: Mapping[str, str]
    allocatable: Mapping[str, Any]
    capacity: Mapping[str, Any]
    node: str = ""


@dataclass(slots=True)
class _Cluster:
    """What all NodePools are compared with."""

    world: World
    pod: Object
    demanded: list[Requirements]
    spread: frozenset[str]
    aliases: frozenset[str]
    nodes: dict[str, list[Mapping[str, Any]]] = field(
        default_factory=dict
    )  # by NodePool; "" the others
    claims: dict[str, list[Object]] = field(default_factory=dict)  # likewise, without their Node
    zones: frozenset[str] = frozenset()
    partial: set[str] = field(default_factory=set)  # NodePools with more labels than are tried


def node_pools(world: World, pod: Object) -> Iterator[NodeMaker]:
    """Yield the NodePools, those that Karpenter tries first at the beginning."""
    if not world.objects[NODE_POOLS]:
        return
    cluster = _cluster(world, pod)
    pools = sorted(world.all(NODE_POOLS), key=_order)
    for at, pool in enumerate(pools[:MOST_SOURCES]):
        yield _source(pool, at, cluster)


def members(world: World) -> Iterator[str]:
    """Yield the names of the nodes of NodePools."""
    pools = {name for _, name in world.objects[NODE_POOLS]}
    for node in world.nodes() if pools else ():
        if _labels(node).get(POOL_LABEL) in pools:
            yield str(node["metadata"]["name"])


def _order(pool: Mapping[str, Any]) -> tuple[float, str]:
    weight = mapping(pool.get("spec")).get("weight")
    return (-weight if isinstance(weight, int) else 0, pool["metadata"]["name"])


def _cluster(world: World, pod: Object) -> _Cluster:
    demanded = demands(pod, world)
    cluster = _Cluster(
        world,
        pod,
        demanded[:MOST_ALTERNATIVES],
        frozenset(ALIASES.get(key, key) for key in deciding_keys(pod, world)),
        frozenset(_aliases(world)),
    )
    if len(demanded) > MOST_ALTERNATIVES:
        cluster.partial.update(name for _, name in world.objects[NODE_POOLS])
    for node in world.nodes():
        pool = str(_labels(node).get(POOL_LABEL) or "")
        cluster.nodes.setdefault(pool, []).append(node)
    for claim in world.all(NODE_CLAIMS):
        if world.get(NODES, str(mapping(claim.get("status")).get("nodeName") or "")) is None:
            pool = str(_labels(claim).get(POOL_LABEL) or "")
            cluster.claims.setdefault(pool, []).append(claim)
    every = (node for nodes in cluster.nodes.values() for node in nodes)
    cluster.zones = frozenset(filter(None, (_labels(node).get(ZONE) for node in every)))
    return cluster


def _aliases(world: World) -> Iterator[str]:
    """Yield the other names of labels that this cluster uses, and those that kubelets set."""
    contents = [
        entry.content
        for resource in (NODES, CSI_NODES, VOLUMES, STORAGE_CLASSES)
        for entry in world.objects[resource].values()
    ]
    for alias in ALIASES:
        if alias.startswith("beta.") or any(alias.encode() in content for content in contents):
            yield alias


def _labels(obj: Mapping[str, Any]) -> Mapping[str, str]:
    return mapping(obj["metadata"].get("labels"))


def _source(pool: Mapping[str, Any], number: int, cluster: _Cluster) -> NodeMaker:
    name = str(pool["metadata"]["name"])
    template = mapping(mapping(pool.get("spec")).get("template"))
    listed = [one for one in entries(mapping(template.get("spec")).get("requirements")) if one]
    templates = tuple(_templates(pool, number, cluster))
    return NodeMaker(
        f"NodePool {name}",
        f"kubectl describe nodepool {name}",
        templates,
        (*_obstacles(pool), *_ignored(cluster.pod)),
        tuple(_limits(pool, cluster)),
        tuple(one for one in listed if isinstance(one, Mapping)),
        labelled_by="spec.template.metadata.labels of the NodePool",
        partial=name in cluster.partial,
    )


def _obstacles(pool: Mapping[str, Any]) -> Iterator[str]:
    replicas = mapping(pool.get("spec")).get("replicas")
    if pool["metadata"].get("deletionTimestamp"):
        yield "it is being deleted"
    if replicas is not None:
        yield f"it keeps spec.replicas {replicas} nodes, and makes none for Pods that wait"
    ready = _condition(pool, "Ready")
    if ready and ready.get("status") != "True":
        yield f"it is not Ready{_why(ready)}"


def _ignored(pod: Mapping[str, Any]) -> Iterator[str]:
    """Yield why Karpenter makes no node for a Pod at all (Validate in provisioner.go).

    It treats the preference with the greatest weight like a requirement there.
    """
    affinity = mapping(mapping(pod["spec"].get("affinity")).get("nodeAffinity"))
    preferred = list(map(mapping, entries(affinity.get(PREFERRED))))
    heaviest = max(preferred, key=lambda one: int(one.get("weight") or 0), default={})
    terms = entries(mapping(affinity.get(REQUIRED)).get("nodeSelectorTerms"))
    preference, first = heaviest.get("preference"), next(iter(terms), None)
    for verb, term in (("prefers", mapping(preference)), ("demands", mapping(first))):
        if any(
            (rule.get("key"), rule.get("operator")) == (POOL_LABEL, "DoesNotExist")
            for rule in map(mapping, entries(term.get("matchExpressions")))
        ):
            yield (
                f"Karpenter ignores the Pod, because its node affinity {verb} nodes without the "
                f"label {POOL_LABEL}"
            )
            return


def _condition(obj: Mapping[str, Any], type_: str) -> Mapping[str, Any]:
    conditions = entries(mapping(obj.get("status")).get("conditions"))
    return next((one for one in conditions if mapping(one).get("type") == type_), {})


def _why(condition: Mapping[str, Any]) -> str:
    words = (str(condition.get(field) or "") for field in ("reason", "message"))
    text = foreign(": ".join(filter(None, words)), FOREIGN_MESSAGE).rstrip(".")
    return f" ({text})" if text else ""


def _limits(pool: Mapping[str, Any], cluster: _Cluster) -> Iterator[Limit]:
    """Yield the limits of a NodePool, with what its status counts or, without one, its nodes."""
    name, status = pool["metadata"]["name"], mapping(pool.get("status"))
    nodes = [*cluster.nodes.get(name, ()), *cluster.claims.get(name, ())]
    counted = amounts(status.get("resources"))
    where = "status.resources" if counted else "its nodes"
    if not counted:
        for node in nodes:
            for resource, amount in _capacity(node).items():
                counted[resource] = counted.get(resource, 0.0) + amount
    counted.setdefault("nodes", float(status.get("nodes") or len(nodes)))
    for resource, limit in sorted(amounts(mapping(pool.get("spec")).get("limits")).items()):
        used = counted.get(resource, 0.0)
        text = (
            f"spec.limits.{resource} is {shown(resource, limit)}, of which "
            f"{shown(resource, used)} is used ({where})"
        )
        yield Limit(resource, limit, used, text)


def _capacity(obj: Mapping[str, Any]) -> dict[str, float]:
    status = mapping(obj.get("status"))
    return amounts(status.get("capacity") or status.get("allocatable"))


# --- templates ------------------------------------------------------------------------------------


def _templates(pool: Mapping[str, Any], number: int, cluster: _Cluster) -> Iterator[NodeTemplate]:
    name = str(pool["metadata"]["name"])
    template = mapping(mapping(pool.get("spec")).get("template"))
    spec = mapping(template.get("spec"))
    reference = mapping(spec.get("nodeClassRef"))
    own = {str(key): str(value) for key, value in _labels({"metadata": {}, **template}).items()}
    own |= {
        POOL_LABEL: name,
        f"{reference.get('group')}/{str(reference.get('kind')).lower()}": str(
            reference.get("name")
        ),
        "karpenter.sh/registered": "true",
        "karpenter.sh/initialized": "true",
    }
    if reference.get("group") == _AUTO_MODE:
        own["eks.amazonaws.com/compute-type"] = "auto"
    requirements = requirements_of(spec.get("requirements"), own)
    shapes = list(_shapes(name, requirements, cluster))
    known = {shape.labels.get(INSTANCE_TYPE, "") for shape in shapes}
    types = requirements.get(INSTANCE_TYPE, ANY)
    at = 0
    for shape in shapes:
        fixed = {key: value for key, value in shape.labels.items() if _is_of_type(key)}
        for labels, assumed in _label_sets(requirements, {**shape.labels}, fixed, name, cluster):
            at += 1
            node = template_node(f"p{number}-{at}", labels, spec.get("taints"), shape.allocatable)
            yield NodeTemplate(
                node, shape.like, amounts(shape.capacity), copied=shape.node, assumed=assumed
            )
    if types.only is not None and set(types.some()) <= known:
        return
    base = {OS: "linux", ARCH: "amd64"}
    for labels, assumed in _label_sets(requirements, base, {}, name, cluster):
        at += 1
        node = template_node(
            f"p{number}-{at}", labels, spec.get("taints"), {"pods": PODS_OF_A_NODE}
        )
        bounds, least = _bounds(spec)
        yield NodeTemplate(node, bounds=bounds, least=least, assumed=assumed)


def _is_of_type(key: str) -> bool:
    return key in _OF_TYPE or key.startswith(_PROVIDERS)


def _shapes(name: str, requirements: Requirements, cluster: _Cluster) -> Iterator[_Shape]:
    """Yield the instance types of known size that the requirements of a NodePool leave."""
    seen: set[str] = set()
    types = requirements.get(INSTANCE_TYPE, ANY)
    listed = types.only or ()
    others = (
        node
        for pool, nodes in cluster.nodes.items()
        if pool != name
        for node in nodes
        if _labels(node).get(INSTANCE_TYPE) in listed
    )
    for obj in (*cluster.nodes.get(name, ()), *cluster.claims.get(name, ()), *others):
        labels, status = _labels(obj), mapping(obj.get("status"))
        allocatable = mapping(status.get("allocatable"))
        kind = str(labels.get(INSTANCE_TYPE) or sorted(allocatable.items()))
        fixed = {key: str(value) for key, value in labels.items() if _is_of_type(key)}
        if kind in seen or not amounts(allocatable).get(CPU):
            continue
        if not all(requirements.get(key, ANY).admits(value) for key, value in fixed.items()):
            continue
        seen.add(kind)
        own = labels if labels.get(POOL_LABEL) == name else fixed
        title = f"{'node' if obj['kind'] == NODES.kind else obj['kind']} {obj['metadata']['name']}"
        of_type = f" ({labels[INSTANCE_TYPE]})" if labels.get(INSTANCE_TYPE) else ""
        yield _Shape(
            f"{title}{of_type}",
            {key: str(value) for key, value in own.items()},
            allocatable,
            mapping(status.get("capacity")) or allocatable,
            obj["metadata"]["name"] if obj["kind"] == NODES.kind else "",
        )
        if len(seen) == _MOST_SHAPES:
            return


def _label_sets(
    requirements: Requirements,
    base: Mapping[str, str],
    fixed: Mapping[str, str],
    name: str,
    cluster: _Cluster,
) -> Iterator[tuple[dict[str, str], tuple[str, ...]]]:
    """Yield labels that a node can have, and which of them the cloud may not offer.

    Each meets the requirements, and what the Pod demands as far as the requirements permit it.
    """
    found: list[dict[str, str]] = []
    for wanted in cluster.demanded:
        choices: dict[str, list[str]] = {}
        for key in {**requirements, **wanted, **dict.fromkeys(cluster.spread, ANY)}:
            if key != HOSTNAME and key not in fixed:
                choices[key] = _choices(key, requirements, wanted, cluster)
        chosen = {key: values for key, values in choices.items() if values}
        for values in product(*chosen.values()):
            labels = {**base, **dict(zip(chosen, values, strict=True)), **fixed}
            for key in choices.keys() - chosen.keys():
                labels.pop(key, None)
            for alias in cluster.aliases:
                if ALIASES[alias] in labels:
                    labels[alias] = labels[ALIASES[alias]]
            if labels in found:
                continue
            if len(found) == _MOST_VALUES:
                cluster.partial.add(name)
                return
            found.append(labels)
            yield labels, tuple(_assumed(labels, requirements, wanted, name, cluster))


def _choices(
    key: str, requirements: Requirements, wanted: Requirements, cluster: _Cluster
) -> list[str]:
    """Return the values of a label to try; empty: nodes do not have it."""
    own, demanded = requirements.get(key), wanted.get(key, ANY)
    if own is None and key not in _OFFERED and not key.startswith(_PROVIDERS):
        return []
    values = (own or ANY).both(demanded).some() or (own or ANY).some()
    if key in cluster.spread:
        if not values and key == ZONE:
            values = sorted(filter((own or ANY).admits, cluster.zones))
        return values[: _MOST_VALUES + 1]
    return values[:1]


def _assumed(
    labels: Mapping[str, str],
    requirements: Requirements,
    wanted: Requirements,
    name: str,
    cluster: _Cluster,
) -> Iterator[str]:
    """Yield the labels that the Pod demands, and that only the provider can promise."""
    for key in wanted:
        value = labels.get(key)
        free = requirements.get(key, ANY).only is None
        if not free or value is None or (key, value) in _ORDINARY:
            continue
        if key not in _OFFERED and not key.startswith(_PROVIDERS):
            continue
        if all(_labels(node).get(key) != value for node in cluster.nodes.get(name, ())):
            yield f"{key}={value}"


_Bounds = dict[str, tuple[float, str]]


def _bounds(spec: Mapping[str, Any]) -> tuple[_Bounds, _Bounds]:
    """Return the most and the least that the requirements leave of a resource, each with its own.

    A node has less to allocate than its instance type has, and limits count the latter.
    """
    highest: _Bounds = {}
    lowest: _Bounds = {}
    for one in entries(spec.get("requirements")):
        key = str(mapping(one).get("key"))
        if key not in _BOUNDED:
            continue
        resource, unit = _BOUNDED[key]
        values = requirements_of([one])[key]
        sizes = [int(value) for value in values.only or () if value.isdecimal()]
        most = values.most if values.most is not None else max(sizes, default=None)
        least = values.least if values.least is not None else min(sizes, default=None)
        if most is not None:
            highest[resource] = (most * unit, written(one))
        if least is not None:
            lowest[resource] = (least * unit, written(one))
    return highest, lowest


# --- nodes that are being made --------------------------------------------------------------------


def node_claims(world: World) -> Iterator[Coming]:
    """Yield the NodeClaims whose nodes are not ready, oldest first."""
    claims = sorted(
        world.all(NODE_CLAIMS), key=lambda claim: str(claim["metadata"]["creationTimestamp"])
    )
    coming = (claim for claim in claims if not claim["metadata"].get("deletionTimestamp"))
    for at, claim in enumerate(_unfinished(coming)):
        if at == MOST_SOURCES:
            return
        name, labels = str(claim["metadata"]["name"]), _labels(claim)
        pool = f" of NodePool {labels[POOL_LABEL]}" if labels.get(POOL_LABEL) else ""
        yield Coming(
            f"NodeClaim {name}{pool}",
            f"kubectl describe nodeclaim {name}",
            str(claim["metadata"]["creationTimestamp"]),
            _state(claim),
            _of_claim(claim, at, world),
            str(mapping(claim.get("status")).get("nodeName") or ""),
        )


def _unfinished(claims: Iterable[Object]) -> Iterator[Object]:
    return (claim for claim in claims if _condition(claim, "Initialized").get("status") != "True")


def _state(claim: Mapping[str, Any]) -> str:
    """Return the first step that is not done, with Karpenter's reason."""
    for step in _STEPS:
        condition = _condition(claim, step)
        if condition.get("status") != "True":
            since = str(condition.get("lastTransitionTime") or "")
            node = mapping(claim.get("status")).get("nodeName")
            of = f" (node {node})" if node else ""
            return f"not {step}{of}{f' since {since}' if since else ''}{_why(condition)}"
    return ""


def _of_claim(claim: Mapping[str, Any], number: int, world: World) -> NodeTemplate:
    spec, status = mapping(claim.get("spec")), mapping(claim.get("status"))
    single = {
        key: values.some()[0]
        for key, values in requirements_of(spec.get("requirements")).items()
        if values.only is not None and len(values.some()) == 1
    }
    labels = {OS: "linux", ARCH: "amd64", **single, **_labels(claim)}
    existing = world.get(NODES, str(status.get("nodeName") or ""))
    taints = entries(spec.get("taints"))
    allocatable = mapping(status.get("allocatable"))
    if existing is not None:
        labels = {**labels, **_labels(existing)}
        starting = [one.get("key") for one in entries(spec.get("startupTaints"))]
        own = mapping(existing.get("spec")).get("taints") or ()
        taints = [one for one in own if one.get("key") not in starting]
        allocatable = mapping(mapping(existing.get("status")).get("allocatable")) or allocatable
    for alias in _aliases(world):
        if ALIASES[alias] in labels:
            labels[alias] = labels[ALIASES[alias]]
    known = bool(amounts(allocatable).get(CPU))
    node = template_node(
        f"c{number}", labels, taints, allocatable if known else {"pods": PODS_OF_A_NODE}
    )
    like = f"{claim['kind']} {claim['metadata']['name']}" if known else ""
    return NodeTemplate(node, like, copied=str(status.get("nodeName") or ""))
