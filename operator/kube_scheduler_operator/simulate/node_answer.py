"""What nodes have free: the answer of `kubectl scheduler nodes`, which text and JSON are made from.

Amounts are integers: CPU in millicores, all others in base units. None is "not known".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final

OPEN: Final = "open"
TAINTED: Final = "tainted"  # only Pods that tolerate its taints get there
UNSCHEDULABLE: Final = "unschedulable"
NOT_READY: Final = "not ready"
CLOSED: Final = (NOT_READY, UNSCHEDULABLE)
STATES: Final = (*CLOSED, TAINTED, OPEN)
"""The worst first."""

SORTS: Final = ("state", "cpu", "memory", "pods", "load", "fits", "name")
"""How nodes may be sorted: by state and then the fullest; by the highest requests of a resource; by
the highest load; by how few Pods fit; by name."""

_KEEPING_OFF: Final = (":NoSchedule", ":NoExecute")


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """How much of a resource a node has, or several nodes have together."""

    DERIVED: ClassVar = ("percent",)

    allocatable: int
    requests: int  # of the Pods on it, as kube-scheduler counts them
    nominated: int  # requests of waiting Pods for which preemption has made room on it
    leaving: int  # of `requests`, what ends with the deletions and the resizes in progress
    free: int | None  # never negative; for several nodes, the sum of what each has free

    @property
    def percent(self) -> float | None:
        """What is requested, in percent of what is allocatable; None without any."""
        requested = self.requests + self.nominated
        return round(100 * requested / self.allocatable, 1) if self.allocatable else None


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """The load that the load annotator measured, in fractions of the capacity."""

    measured: str  # RFC 3339
    age: int  # seconds; 0 if the clocks differ
    source: str  # the type of the source
    cpu: float | None  # mean of five minutes
    memory: float | None  # likewise
    metrics: dict[str, float] = field(default_factory=dict)  # all that the annotation has


@dataclass(frozen=True, slots=True)
class NodeUse:
    DERIVED: ClassVar = ("state",)

    name: str
    zone: str  # empty: it has none
    taints: tuple[str, ...]  # as key=value:effect
    unschedulable: bool  # whether it is cordoned
    ready: bool | None
    resources: dict[str, ResourceUse]
    load: NodeLoad | None = None
    fits: int | None = None  # Pods of the asked shape, on a tainted node those that tolerate it

    @property
    def state(self) -> str:
        """One of STATES."""
        if self.ready is False:
            return NOT_READY
        if self.unschedulable:
            return UNSCHEDULABLE
        return TAINTED if self.keeping_off else OPEN

    @property
    def keeping_off(self) -> tuple[str, ...]:
        """The taints that keep Pods off that do not tolerate them."""
        return tuple(
            taint for taint in self.taints if taint.endswith((":NoSchedule", ":NoExecute"))
        )


@dataclass(frozen=True, slots=True)
class BiggestPod:
    """The biggest Pod that fits on one node: all of its free CPU and memory."""

    node: str
    cpu: int
    memory: int


@dataclass(frozen=True, slots=True)
class ShapeRoom:
    """How many Pods with the same requests fit, and what they cannot use."""

    requests: dict[str, int]
    pods: int  # Pods with these requests that run on the nodes
    fits: int
    # resource that the shape requests -> the share of what is free that no such Pod can use, 0..1
    unusable: dict[str, float]


@dataclass(frozen=True, slots=True)
class Fragmentation:
    """The share of what is free that Pods of these shapes cannot use (fragmentation.py)."""

    unusable: dict[str, float]  # resource -> 0..1, weighted by the number of Pods of each shape
    shapes: list[ShapeRoom]  # the asked one, or the most frequent ones
    covered: float  # the share of the running Pods that have one of these shapes, 0..1


@dataclass(frozen=True, slots=True)
class Partition:
    """The nodes that take Pods and whose taints keep the same Pods off."""

    taints: tuple[str, ...]  # empty: of the nodes that take Pods without tolerations
    nodes: int
    resources: dict[str, ResourceUse]
    biggest_by_cpu: BiggestPod | None = None  # None: no node has room for another Pod, or not known
    biggest_by_memory: BiggestPod | None = None
    fits: int | None = None  # Pods of the asked shape
    fragmentation: Fragmentation | None = None


@dataclass(frozen=True, slots=True)
class NodesAnswer:
    DERIVED: ClassVar = ("fits",)

    at: str  # the time of the answer, RFC 3339
    nodes: list[NodeUse]  # the worst first, or as asked
    states: dict[str, int]  # state -> number of nodes, of each state that nodes have
    partitions: list[Partition]  # nodes without taints first, then the largest
    shape: dict[str, int] | None = None  # that was asked for
    # Pods of this namespace alone are known, and so no free amount is; empty: all Pods are known
    namespace: str = ""
    notes: list[str] = field(default_factory=list)  # limits of the answer

    @property
    def fits(self) -> int | None:
        """Pods of the asked shape without tolerations; None: not asked, or not known."""
        if self.shape is None or self.namespace:
            return None
        return sum(one.fits or 0 for one in self.partitions if not one.taints)
