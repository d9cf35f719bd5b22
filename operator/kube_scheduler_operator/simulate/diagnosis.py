"""Why a pod has no node, or is where it is: the answer that text and JSON are made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .constraint import Rank
from .decisions import PodDecision
from .leaving import LeavingPod
from .new_nodes import ComingNode, NewNode


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a group of nodes is excluded."""

    text: str
    scheduler: tuple[str, ...] = ()  # kube-scheduler's own reasons for it


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes that are excluded for the same reasons."""

    nodes: tuple[str, ...]
    causes: tuple[Cause, ...]


@dataclass(frozen=True, slots=True)
class Fix:
    """A change with which the pod fits."""

    text: str  # the change, in the imperative
    nodes: tuple[str, ...]  # where the pod fits then
    changes: int = 1
    size: int = 0  # how much a change takes away, to compare single changes: 0 is least
    rank: int = Rank.DROP  # one of Rank
    object: str = ""  # Kind namespace/name of what a user edits; empty: the text names it
    field: str = ""  # the path of the field there


@dataclass(frozen=True, slots=True)
class Awaited:
    """Pods that leave room by themselves or hold it, and where the explained one fits without."""

    pods: tuple[LeavingPod, ...]
    nodes: tuple[str, ...]


@dataclass(slots=True)
class Explanation:
    pod: str  # namespace/name
    scheduler: str  # spec.schedulerName
    profiles: list[str]  # the schedulerNames that are served
    problem: str = ""  # why its scheduler cannot be simulated, or that it does not exist
    node: str = ""  # of a running pod, its node
    gates: list[str] = field(default_factory=list)  # names of scheduling gates
    nodes: int = 0
    candidates: list[str] = field(default_factory=list)  # nodes that all filters accept
    groups: list[Group] = field(default_factory=list)  # the other nodes, largest group first
    message: str = ""  # kube-scheduler's message for the pod as it is
    # what a person would do first, then the smallest change
    fixes: list[Fix] = field(default_factory=list)
    # requests that no node of the cluster could satisfy even if it was empty
    impossible: list[str] = field(default_factory=list)
    # what kube-scheduler does with the pod now
    decision: PodDecision = field(default_factory=lambda: PodDecision(""))
    nominated: str = ""  # the node on which kube-scheduler keeps room for it already
    preemption: list[str] = field(default_factory=list)  # what preemption does, in sentences
    awaited: list[Awaited] = field(default_factory=list)  # what it may wait for; each was tried
    # the decision of our own extenders about it now, by name
    extenders: dict[str, dict[str, Any]] = field(default_factory=dict)
    # nodes that do not exist yet, for a pod that fits on no node
    new_nodes: list[NewNode] = field(default_factory=list)
    coming_nodes: list[ComingNode] = field(default_factory=list)
    # extenders that do not take part, and may decide otherwise
    left_out: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # limits of the answer

    @property
    def served(self) -> bool:
        """Whether a scheduler serves the pod that can be simulated."""
        return not self.problem
