"""Nodes that do not exist yet: what could make one, and what one of it would be like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ..base.quantities import CPU, MEMORY, PODS
from ..scheduling.policies.pods import Demand
from .constraint import quantity_text
from .kinds import HOSTNAME, IMPOSSIBLE, NODES, Object, new_object
from .taint_constraints import UNSCHEDULABLE_TAINT, is_condition

# What is known about one more node of a source, for one Pod.
FITS: Final = "fits"
SIZE_UNKNOWN: Final = "size unknown"  # all but its size fits
BLOCKED: Final = "blocked"  # it would fit, but none is made
CANNOT: Final = "cannot"
UNKNOWN: Final = "unknown"  # what a node of it is like

MOST_SOURCES: Final = 40
MOST_TEMPLATES: Final = 60
PODS_OF_A_NODE: Final = "110"
"""The default of a kubelet."""

_PASSING: Final = frozenset({UNSCHEDULABLE_TAINT, "DeletionCandidateOfClusterAutoscaler"})
_PASSING_PREFIXES: Final = (
    "readiness.k8s.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "status-taint.cluster-autoscaler.kubernetes.io/",
)
"""Taints that autoscalers do not expect Pods to tolerate, besides those of conditions."""


@dataclass(frozen=True, slots=True)
class NodeTemplate:
    """A node as a source could make it."""

    node: Object  # its name is one that no node of a cluster can have
    like: str = ""  # what its size is taken from; empty: its size is not known
    capacity: Mapping[str, float] = field(default_factory=dict)  # as `amounts` has it
    # of unknown size: the most that a node can have of a resource, and the requirement
    bounds: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    # of unknown size: the least that a node can have of a resource, and the requirement
    least: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    copied: str = ""  # the existing node that it is a copy of
    assumed: tuple[str, ...] = ()  # what is not known about it, besides its size

    @property
    def name(self) -> str:
        return str(self.node["metadata"]["name"])


@dataclass(frozen=True, slots=True)
class Limit:
    resource: str
    limit: float
    used: float
    text: str  # the limit and what is used


@dataclass(frozen=True, slots=True)
class NodeMaker:
    """What could make nodes: a NodePool, a node group."""

    title: str  # e.g. "NodePool general"
    command: str  # that shows more
    templates: tuple[NodeTemplate, ...] = ()
    obstacles: tuple[str, ...] = ()  # why it makes no node now, for any Pod
    limits: tuple[Limit, ...] = ()
    requirements: tuple[Mapping[str, Any], ...] = ()
    unknown: str = ""  # why there is no template, or whether it makes nodes at all
    labelled_by: str = ""  # the field that gives its nodes labels of any name; empty: none
    # whether what makes its nodes expects them to be like those that there are
    expects_its_like: bool = False
    partial: bool = False  # whether it could make other nodes than its templates


@dataclass(frozen=True, slots=True)
class Coming:
    """A node that is being made."""

    title: str
    command: str
    since: str
    state: str  # what it waits for
    template: NodeTemplate | None = None
    node: str = ""  # its Node, if it exists


@dataclass(frozen=True, slots=True)
class NewNode:
    """What one more node of a source would be for one Pod."""

    source: str
    outcome: str  # one of the constants above
    causes: tuple[str, ...] = ()  # why not, or what is not known
    like: str = ""  # what it would be like
    daemons: str = ""  # what DaemonSets take there
    command: str = ""  # that shows more


@dataclass(frozen=True, slots=True)
class ComingNode:
    """A node that is being made, and whether the Pod fits on it."""

    node: str
    since: str
    state: str
    outcome: str
    causes: tuple[str, ...] = ()
    command: str = ""


def shown(resource: str, amount: float) -> str:
    """Return an amount as a person writes it: 1.5, 250m, 7.6Gi; bytes as the rest of an answer."""
    if resource == CPU:
        return f"{amount / 1000:g}" if amount >= 1000 else f"{amount:.0f}m"
    return quantity_text(MEMORY if resource.endswith("storage") else resource, amount)


def written(sizes: Mapping[str, float]) -> dict[str, str]:
    """Return amounts as an API server has them; none is negative."""
    return {
        resource: f"{max(size, 0.0):.0f}{'m' if resource == CPU else ''}"
        for resource, size in sizes.items()
    }


def add_pod(taken: dict[str, float], pod: Mapping[str, Any]) -> None:
    """Add what a Pod takes of a node."""
    for resource, amount in {**Demand(pod["spec"]).requests, PODS: 1.0}.items():
        taken[resource] = taken.get(resource, 0.0) + amount


def lasting(taints: Any) -> list[Any]:
    """Return the taints that a node keeps once it is ready."""
    return [
        taint
        for taint in taints or ()
        if taint.get("key") not in _PASSING
        and not str(taint.get("key")).startswith(_PASSING_PREFIXES)
        and not is_condition(str(taint.get("key")))
    ]


def template_node(
    number: str,
    labels: Mapping[str, str],
    taints: Any,
    allocatable: Mapping[str, Any],
    **status: Any,
) -> Object:
    """Return a Ready node."""
    name = f"{IMPOSSIBLE}new-{number}"
    node = new_object(NODES, name, uid=name, labels={**labels, HOSTNAME: name})
    node["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    node["spec"] = {"taints": lasting(taints)}
    node["status"] = {
        **status,
        "allocatable": dict(allocatable),
        "capacity": dict(allocatable),
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return node
