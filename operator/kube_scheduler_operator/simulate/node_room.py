"""What nodes have free, the biggest Pod that fits, and how fragmented the rest is.

What counts is what kube-scheduler counts: of a Pod that terminates all until it is gone, of one
that is resized the most that it may hold (leaving.py), and of a waiting Pod what it is nominated
for (nominations.py). Whether a Pod fits is decided by its requests alone here; kube-scheduler
has other filters, which `simulate` asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_NAME, FOREIGN_REASON
from ..base.names import LOAD_ANNOTATION
from ..base.objects import entries, mapping
from ..base.quantities import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, amounts
from ..base.times import rfc3339
from ..scheduling.annotator.annotation import read_own
from ..scheduling.annotator.measurement import KEYS
from .cluster_version import cluster_version
from .fragmentation import Shape, fitting, fragmentation
from .kinds import PODS as POD
from .kinds import Object
from .leaving import held, reserving_pods, resized
from .node_answer import (
    CLOSED,
    SORTS,
    STATES,
    BiggestPod,
    NodeLoad,
    NodesAnswer,
    NodeUse,
    Partition,
    ResourceUse,
)
from .nominations import holds_room
from .requirements import ZONE
from .scenario import belongs_to_node
from .world import World

_COMMON: Final = (CPU, MEMORY, PODS, EPHEMERAL_STORAGE)
_MOST_RESOURCES: Final = 64
_MOST_TAINTS: Final = 100
_LEAST_PRIORITY: Final = -(2**31)
_CPU_LOAD, _MEMORY_LOAD = "cpu_usage_avg_5m", "mem_usage_avg_5m"


@dataclass(slots=True)
class _Sums:
    """What Pods hold on a node, by resource, the number of Pods included."""

    allocatable: dict[str, int]
    requests: dict[str, int] = field(default_factory=dict)
    nominated: dict[str, int] = field(default_factory=dict)
    leaving: dict[str, int] = field(default_factory=dict)
    shapes: Counter[Shape] = field(default_factory=Counter)  # of Pods that may run elsewhere

    def add(self, to: dict[str, int], amounts_of: Mapping[str, float], pods: int = 1) -> None:
        to[PODS] = to.get(PODS, 0) + pods
        for resource, amount in amounts_of.items():
            if resource in self.allocatable:  # a Pod may request thousands of them
                to[resource] = to.get(resource, 0) + int(amount)

    def free(self) -> dict[str, int]:
        return {
            name: max(size - self.requests.get(name, 0) - self.nominated.get(name, 0), 0)
            for name, size in self.allocatable.items()
        }

    def uses(self, *, free_is_known: bool) -> dict[str, ResourceUse]:
        free = self.free() if free_is_known else {}
        return {
            foreign(name, FOREIGN_NAME): ResourceUse(
                size,
                self.requests.get(name, 0),
                self.nominated.get(name, 0),
                self.leaving.get(name, 0),
                free.get(name),
            )
            for name, size in self.allocatable.items()
        }


_Node = tuple[NodeUse, _Sums]


def nodes_answer(
    world: World,
    now: datetime,
    *,
    shape: Mapping[str, int] | None = None,
    namespace: str = "",
    sort: str = SORTS[0],
) -> NodesAnswer:
    """Return what the nodes have free.

    `shape` has the requests of the Pods to count. With a `namespace`, its Pods alone are counted,
    because no others are known. `sort` is one of SORTS.
    """
    known = not namespace
    sums = _sums(world, namespace)
    asked = None if shape is None else _shape(shape)
    nodes = []
    for node in world.nodes():
        if own := sums.get(node["metadata"]["name"]):
            use = _node_use(node, own.uses(free_is_known=known), now)
            fits = _fits(use, own.free(), asked) if asked and known else None
            nodes.append((replace(use, fits=fits), own))
    states = Counter(use.state for use, _ in nodes)
    return NodesAnswer(
        rfc3339(now),
        sorted((use for use, _ in nodes), key=_ORDERS[sort]),
        {state: states[state] for state in STATES if states[state]},
        list(_partitions(nodes, asked, free_is_known=known)),
        None if shape is None else dict(shape),
        namespace,
        [*world.notes, *_limits(namespace, asked)],
    )


def _limits(namespace: str, asked: Shape | None) -> Iterator[str]:
    """Yield what the answer does not know."""
    if namespace:
        yield (
            f"the Pods of namespace {namespace} alone are counted: what others request is not "
            "known, nor what is free, the biggest Pod, what fits, and fragmentation"
        )
    elif asked is not None:
        yield (
            "Pods are counted by their requests alone; kubectl scheduler simulate asks "
            "kube-scheduler, which has other filters as well"
        )


def _shape(requests: Mapping[str, float]) -> Shape:
    return tuple(sorted((name, int(amount)) for name, amount in requests.items() if amount > 0))


# --- what Pods hold -------------------------------------------------------------------------------


def _sums(world: World, namespace: str) -> dict[str, _Sums]:
    sums = {node["metadata"]["name"]: _Sums(dict(_allocatable(node))) for node in world.nodes()}
    for (of, _), entry in world.objects[POD].items():
        own = sums.get(entry.node)
        if own is not None and of == (namespace or of):
            _add(own, entry.object(), may_leave=entry.may_leave)
    version = cluster_version(world).version
    for pod, nominated in reserving_pods(world, _LEAST_PRIORITY):
        own = sums.get(nominated.node)
        of = pod["metadata"]["namespace"]
        if own is not None and of == (namespace or of) and holds_room(pod, version):
            own.add(own.nominated, held(pod))
    return sums


def _add(sums: _Sums, pod: Object, *, may_leave: bool) -> None:
    amounts_of = held(pod)
    sums.add(sums.requests, amounts_of)
    terminates = may_leave and "deletionTimestamp" in pod["metadata"]
    if terminates:
        sums.add(sums.leaving, amounts_of)
    elif may_leave:
        after = held(resized(pod))
        excess = {name: amount - after.get(name, 0.0) for name, amount in amounts_of.items()}
        sums.add(sums.leaving, {name: max(more, 0.0) for name, more in excess.items()}, pods=0)
    if not terminates and not belongs_to_node(pod):
        own = {name: amount for name, amount in amounts_of.items() if name in sums.allocatable}
        sums.shapes[_shape(own)] += 1


def _allocatable(node: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the resources of a node: common ones first, and not more than a node can use."""
    sizes = amounts(mapping(node.get("status")).get("allocatable"))
    names = [*filter(sizes.__contains__, _COMMON), *sorted(sizes.keys() - {*_COMMON})]
    for name in names[:_MOST_RESOURCES]:
        yield name, int(sizes[name])


# --- nodes ----------------------------------------------------------------------------------------


def _node_use(node: Mapping[str, Any], uses: dict[str, ResourceUse], now: datetime) -> NodeUse:
    metadata, spec = node["metadata"], mapping(node.get("spec"))
    zone = str(mapping(metadata.get("labels")).get(ZONE) or "")
    annotation = mapping(metadata.get("annotations")).get(LOAD_ANNOTATION)
    return NodeUse(
        foreign(str(metadata["name"]), FOREIGN_NAME),
        foreign(zone, FOREIGN_NAME),
        tuple(_taints(spec)),
        bool(spec.get("unschedulable")),
        _ready(node),
        uses,
        _load(annotation, now),
    )


def _taints(spec: Mapping[str, Any]) -> Iterator[str]:
    taints = [taint for taint in entries(spec.get("taints")) if isinstance(taint, Mapping)]
    # Those first that keep Pods off.
    taints.sort(key=lambda taint: taint.get("effect") not in ("NoSchedule", "NoExecute"))
    for taint in taints[:_MOST_TAINTS]:
        value = f"={taint['value']}" if taint.get("value") else ""
        what = foreign(f"{taint.get('key')}{value}", FOREIGN_NAME)
        yield f"{what}:{foreign(str(taint.get('effect')), FOREIGN_NAME)}"


def _ready(node: Mapping[str, Any]) -> bool | None:
    conditions = entries(mapping(node.get("status")).get("conditions"))
    states = (each.get("status") for each in conditions if each.get("type") == "Ready")
    return next((state == "True" for state in states), None)


def _load(annotation: Any, now: datetime) -> NodeLoad | None:
    """Return the load that the load annotator has written; None: it is not known."""
    load = read_own(annotation) if isinstance(annotation, str) else None
    if load is None:
        return None
    values = zip(KEYS, load.values, strict=True)
    metrics = {name: value for name, value in values if value == value}  # NaN is not known
    return NodeLoad(
        rfc3339(datetime.fromtimestamp(load.at, UTC)),
        max(int(now.timestamp() - load.at), 0),
        foreign(load.source, FOREIGN_REASON),
        metrics.get(_CPU_LOAD),
        metrics.get(_MEMORY_LOAD),
        metrics,
    )


def _fits(use: NodeUse, free: Mapping[str, int], shape: Shape) -> int:
    return 0 if use.state in CLOSED else fitting(shape, free)


def fullest(use: NodeUse) -> float:
    """Return the share of CPU, memory or Pods of which most is requested, in percent."""
    shares = (use.resources[name].percent for name in (CPU, MEMORY, PODS) if name in use.resources)
    return max((share for share in shares if share is not None), default=0.0)


def _worst_first(use: NodeUse) -> tuple[Any, ...]:
    rank = CLOSED.index(use.state) if use.state in CLOSED else len(CLOSED)
    return rank, -fullest(use), use.name


def _by(resource: str) -> Callable[[NodeUse], tuple[Any, ...]]:
    def key(use: NodeUse) -> tuple[Any, ...]:
        share = use.resources[resource].percent if resource in use.resources else None
        return -(share or 0.0), use.name

    return key


def _by_load(use: NodeUse) -> tuple[Any, ...]:
    known = [one for one in (use.load.cpu, use.load.memory) if one is not None] if use.load else []
    return not known, -max(known, default=0.0), use.name


_ORDERS: Final[Mapping[str, Callable[[NodeUse], tuple[Any, ...]]]] = {
    "state": _worst_first,
    CPU: _by(CPU),
    MEMORY: _by(MEMORY),
    PODS: _by(PODS),
    "load": _by_load,
    "fits": lambda use: (use.fits or 0, use.name),
    "name": lambda use: (use.name,),
}


# --- nodes with the same taints -------------------------------------------------------------------


def _partitions(
    nodes: Iterable[_Node], asked: Shape | None, *, free_is_known: bool
) -> Iterator[Partition]:
    by_taints: dict[tuple[str, ...], list[_Node]] = {}
    for use, sums in nodes:
        if use.state not in CLOSED:
            by_taints.setdefault(tuple(sorted(use.keeping_off)), []).append((use, sums))
    order = sorted(by_taints, key=lambda taints: (bool(taints), -len(by_taints[taints]), taints))
    for taints in order:
        own = by_taints[taints]
        partition = Partition(taints, len(own), _together(use for use, _ in own))
        yield _with_room(partition, own, asked) if free_is_known else partition


def _with_room(partition: Partition, nodes: Sequence[_Node], asked: Shape | None) -> Partition:
    shapes: Counter[Shape] = Counter()
    for _, sums in nodes:
        shapes.update(sums.shapes)
    if asked is not None:
        shapes = Counter({asked: shapes[asked]})
    biggest = [pod for use, sums in nodes if (pod := _biggest(use, sums.free())) is not None]
    free = [sums.free() for _, sums in nodes]
    return replace(
        partition,
        biggest_by_cpu=max(biggest, key=lambda pod: (pod.cpu, pod.memory), default=None),
        biggest_by_memory=max(biggest, key=lambda pod: (pod.memory, pod.cpu), default=None),
        fits=None if asked is None else sum(use.fits or 0 for use, _ in nodes),
        fragmentation=fragmentation(free, shapes) if shapes else None,
    )


def _together(nodes: Iterable[NodeUse]) -> dict[str, ResourceUse]:
    sums: dict[str, ResourceUse] = {}
    for node in nodes:
        for name, use in node.resources.items():
            known = sums.get(name)
            sums[name] = use if known is None else _both(known, use)
    return sums


def _both(one: ResourceUse, other: ResourceUse) -> ResourceUse:
    free = None if one.free is None or other.free is None else one.free + other.free
    return ResourceUse(
        one.allocatable + other.allocatable,
        one.requests + other.requests,
        one.nominated + other.nominated,
        one.leaving + other.leaving,
        free,
    )


def _biggest(use: NodeUse, free: Mapping[str, int]) -> BiggestPod | None:
    if not free.get(PODS):
        return None
    return BiggestPod(use.name, free.get(CPU, 0), free.get(MEMORY, 0))
