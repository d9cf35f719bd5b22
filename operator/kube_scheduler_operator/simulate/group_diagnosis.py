"""Why a group of pods waits: the answer that text and JSON are made from."""

from __future__ import annotations

from dataclasses import dataclass, field

from .decisions import NOT_TRIED, UNSCHEDULABLE, PodDecision
from .diagnosis import Diagnosis, Fix


@dataclass(slots=True)
class GroupExplanation:
    title: str  # of the group, with its kind
    namespace: str
    name: str  # of the PodGroup, or of the Workload
    part: str = ""  # of a Workload, the group in it
    scheduler: str = ""  # spec.schedulerName of its waiting pods
    problem: str = ""  # why its scheduler cannot be simulated, or that it does not exist
    unread: str = ""  # why kube-scheduler does not look at it; empty: it does
    unenforced: str = ""  # why minCount does not count
    exists: bool = True  # whether the object is there that its pods name
    min_count: int = 0  # pods that have to fit at the same time; 0: each is placed alone
    lacks: int = 0  # pods that do not exist, up to minCount
    topology: list[str] = field(default_factory=list)  # keys of domains, one of which has all pods
    composite: str = ""  # the CompositePodGroup above, whose groups are placed together
    running: dict[str, str] = field(default_factory=dict)  # namespace/name -> node
    waiting: list[str] = field(default_factory=list)
    gated: list[str] = field(default_factory=list)  # those of them that have scheduling gates
    gates_hold: bool = False  # whether these hold the other waiting pods back
    # what kube-scheduler does now, with preemption
    placed: dict[str, str] = field(default_factory=dict)  # namespace/name -> node
    pending: dict[str, str] = field(default_factory=dict)  # other waiting pods -> its message
    victims: list[str] = field(default_factory=list)  # pods that are preempted for it
    # the waiting pods that fit at the same time, without preemption, if none is placed now
    together: dict[str, str] = field(default_factory=dict)
    apart: dict[str, str] = field(
        default_factory=dict
    )  # the other ones -> kube-scheduler's message
    # the first of these, once those that fit are placed
    blocking: Diagnosis | None = None
    fixes: list[Fix] = field(default_factory=list)  # changes of the group with which it is placed

    @property
    def is_read(self) -> bool:
        """Whether kube-scheduler looks at it, so that its pods are not decided about alone."""
        return not self.problem and not self.unread

    def decision(self, pod: str) -> PodDecision:
        """Return what kube-scheduler does now with a pod of it, by namespace/name."""
        node = self.placed.get(pod, "")
        message = "" if node else self.pending.get(pod, "")
        reason = "" if node else UNSCHEDULABLE if message else NOT_TRIED
        return PodDecision(pod, node, reason, message, preempted=self.victims)
