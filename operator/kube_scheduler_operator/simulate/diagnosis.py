"""Why a pod has no node, or is where it is: the answer that text and JSON are made from.

The fields are those of the JSON; what comes from more than one of them is in `DERIVED`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from ..base.field_types import named
from .decided_by import DecidedBy
from .decisions import NO_SCHEDULER, PodDecision
from .fix import Fix
from .group_diagnosis import GroupExplanation
from .leaving import LeavingPod
from .missing_pods import MissingPods
from .new_nodes import ComingNode, NewNode

# Outcomes: of the pods of a group in `pending` as well, except the first one.
RUNNING: Final = "running"
GATED: Final = "gated"
NOT_SERVED: Final = "no scheduler"
NOT_SIMULATED: Final = "not simulated"
UNSCHEDULABLE: Final = "unschedulable"
FAILED: Final = "failed"  # it fits, and its last attempt ended with an error
BINDING: Final = "binding"  # it fits, and its scheduler waits before it binds it
QUEUED: Final = "queued"
GROUP: Final = "group"  # its group of pods is placed as a whole, and is not now
IDLE: Final = "idle scheduler"
TERMINATING: Final = "terminating"  # it has no node, and kube-scheduler does not try it


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
class Awaited:
    """Pods that leave room by themselves or hold it, and where the explained one fits without."""

    pods: tuple[LeavingPod, ...]
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """What kube-scheduler does with the pod now."""

    node: str = ""  # where it places it; empty: nowhere
    reason: str = ""  # of a pod that it does not place, see decisions.py
    message: str = ""  # its own, of such a pod
    nominated: str = ""  # the node on which preemption makes room
    preempted: tuple[str, ...] = ()  # namespace/name of the pods that preemption deletes for it
    best: tuple[str, ...] = ()  # the nodes with the highest score; several are a tie


@dataclass(frozen=True, slots=True)
class Score:
    """The score of a node, with the weights of the plugins."""

    total: int
    plugins: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WorkloadPods:
    """The pods of a workload, of which the answer is about one."""

    title: str  # Kind namespace/name
    waiting: int  # without a node
    placed: int


@dataclass(slots=True)
class Diagnosis:
    DERIVED: ClassVar = ("outcome", "served", "waits_for_group")

    pod: str  # namespace/name
    scheduler: str = named("schedulerName")
    profiles: list[str] = field(default_factory=list)  # the schedulerNames that are served
    problem: str = ""  # why its scheduler cannot be simulated, or that it does not exist
    refused: str = ""  # which object has the schedulerName that none serves, and is not in use
    node: str = ""  # of a running pod, its node
    phase: str = ""  # status.phase of a pod with a node; Pending: its containers do not run yet
    gates: list[str] = named("schedulingGates", default_factory=list)
    # who removes each, in sentences
    gates_removed_by: list[str] = named("schedulingGatesRemovedBy", default_factory=list)
    nodes: int = 0
    candidates: list[str] = field(default_factory=list)  # nodes that all filters accept
    groups: list[Group] = field(default_factory=list)  # the other nodes, largest group first
    message: str = ""  # kube-scheduler's message for the pod as it is
    # what a person would do first, then the smallest change
    fixes: list[Fix] = field(default_factory=list)
    # requests that no node of the cluster could satisfy even if it was empty
    impossible: list[str] = field(default_factory=list)
    decision: Decision = named("now", Decision())
    lead: str = ""  # of a running pod: which plugins decide between its node and the next one
    scores: dict[str, Score] = field(default_factory=dict)  # by node, of a pod that has a node
    # the node on which kube-scheduler keeps room for it already
    nominated: str = named("nominatedNodeName", "")
    preemption: list[str] = field(default_factory=list)  # what preemption does, in sentences
    awaited: list[Awaited] = field(default_factory=list)  # what it may wait for; each was tried
    # nodes that do not exist yet, for a pod that fits on no node
    new_nodes: list[NewNode] = field(default_factory=list)
    coming_nodes: list[ComingNode] = field(default_factory=list)
    # the decision of our own extenders about it now, by name
    extenders: dict[str, dict[str, Any]] = named("", default_factory=dict)
    # the end of a pod without a node that terminates; None: it does not
    ending: LeavingPod | None = None
    error: str = ""  # with which its scheduler's last attempt ended, of a pod that fits
    # of a pod that fits, what its scheduler waits for before it binds it, in sentences
    binding: list[str] = field(default_factory=list)
    # of a waiting pod that names one, unless the answer is part of that about the group
    group: GroupExplanation | None = None
    idle: str = ""  # why its scheduler schedules nothing now, or why that is not known
    workload: WorkloadPods | None = None  # of the question; None: it is about a pod
    # pods of the workload in question that the API server does not let it create
    missing: list[MissingPods] = field(default_factory=list)
    decided_by: DecidedBy | None = None  # None: nothing did
    # extenders that do not take part, and may decide otherwise
    left_out: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # limits of the answer

    @property
    def served(self) -> bool:
        """Whether a scheduler serves the pod that can be simulated."""
        return not self.problem

    @property
    def waits_for_group(self) -> bool:
        """Whether its group of pods is placed as a whole, and is not now."""
        return self.group is not None and self.group.is_read and not self.decision.node

    @property
    def outcome(self) -> str:
        """One of the constants above."""
        if self.node:
            return RUNNING
        if self.ending is not None:
            return TERMINATING
        if self.gates:
            return GATED
        if self.problem:
            return NOT_SERVED if self.decision.reason == NO_SCHEDULER else NOT_SIMULATED
        if self.waits_for_group:
            return GROUP
        fitting = outcome_of_fitting(self.idle, self.error, self.binding)
        return fitting if self.candidates else UNSCHEDULABLE

    def decided(self, found: PodDecision) -> None:
        """Take what kube-scheduler decided about the pod."""
        self.decision = Decision(
            found.node,
            found.reason,
            found.message,
            found.nominated,
            tuple(found.preempted),
            tuple(found.best),
        )
        self.scores = {
            node: Score(total, found.scores.get(node, {})) for node, total in found.totals.items()
        }

    def in_group(self, group: GroupExplanation) -> None:
        """Take what is known about the group of the pod, which is not decided about alone then."""
        self.group = group
        if group.is_read:
            self.decided(group.decision_about(self.pod))
            self.preemption = []


@dataclass(slots=True)
class GroupDiagnosis:
    """Why a group of pods waits."""

    group: GroupExplanation
    blocking: Diagnosis | None = None  # `group.blocking_pod`, once those that fit are placed
    decided_by: DecidedBy | None = None  # None: nothing did
    notes: list[str] = field(default_factory=list)  # limits of the answer


def outcome_of_fitting(idle: str, error: str, binding: Sequence[str] = ()) -> str:
    """Return why a pod waits that fits, from those of `Diagnosis`."""
    return IDLE if idle else BINDING if binding else FAILED if error else QUEUED
