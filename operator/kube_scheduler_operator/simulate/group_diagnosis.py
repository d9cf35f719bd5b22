"""Why a group of pods waits: the part of the answer about the group itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..base.field_types import named
from .decisions import NOT_TRIED, UNSCHEDULABLE, PodDecision
from .fix import Fix


@dataclass(slots=True)
class GroupPlacement:
    """What happens to the waiting pods, by namespace/name."""

    placed: dict[str, str] = field(default_factory=dict)  # their nodes
    pending: dict[str, str] = field(default_factory=dict)  # of the others, kube-scheduler's message


@dataclass(slots=True)
class GroupDecision(GroupPlacement):
    preempted: list[str] = field(default_factory=list)  # pods that are preempted for it


@dataclass(slots=True)
class GroupExplanation:
    title: str  # of the group, with its kind
    namespace: str
    name: str  # of the PodGroup, or of the Workload
    part: str = ""  # of a Workload, the group in it
    scheduler: str = named("schedulerName", "")  # of its waiting pods
    problem: str = ""  # why its scheduler cannot be simulated, or that it does not exist
    unread: str = ""  # why kube-scheduler does not look at it; empty: it does
    unenforced: str = ""  # why minCount does not count
    exists: bool = True  # whether the object is there that its pods name
    min_count: int = 0  # pods that have to fit at the same time; 0: each is placed alone
    missing: int = 0  # pods that do not exist, up to minCount
    # keys of domains, one of which has all pods
    topology: list[str] = named("topologyKeys", default_factory=list)
    # the CompositePodGroup above, whose groups are placed together
    composite: str = named("compositePodGroup", "")
    running: dict[str, str] = field(default_factory=dict)  # namespace/name -> node
    waiting: list[str] = field(default_factory=list)
    # those of them that have scheduling gates
    gated: list[str] = named("schedulingGated", default_factory=list)
    gates_hold: bool = False  # whether these hold the other waiting pods back
    # what kube-scheduler does now, with preemption
    decision: GroupDecision = named("now", default_factory=GroupDecision)
    # which fit at the same time, without preemption, if none is placed now
    together: GroupPlacement = field(default_factory=GroupPlacement)
    blocking_pod: str = ""  # the first one that does not fit, which is explained
    fixes: list[Fix] = field(default_factory=list)  # changes of the group with which it is placed

    @property
    def is_read(self) -> bool:
        """Whether kube-scheduler looks at it, so that its pods are not decided about alone."""
        return not self.problem and not self.unread

    def decision_about(self, pod: str) -> PodDecision:
        """Return what kube-scheduler does now with a pod of it, by namespace/name."""
        now = self.decision
        node = now.placed.get(pod, "")
        message = "" if node else now.pending.get(pod, "")
        reason = "" if node else UNSCHEDULABLE if message else NOT_TRIED
        return PodDecision(pod, node, reason, message, preempted=now.preempted)
