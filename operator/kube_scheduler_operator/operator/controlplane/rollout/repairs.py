"""Repairs: a node gets the revision again that it has.

What keeps the desired revision from a node (kubeadm has not upgraded it, another node cannot stage
it) concerns that revision only: a manifest that is missing would stay missing, and `kubeadm upgrade
node` fails without it. A node without a Ready scheduler comes first, because nothing stops there;
another one is restarted only while one more scheduler is Ready, and kubeadm works on no node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..revision.history import Revision
from .node_statuses import NodeStatus
from .rollout_step import RolloutStep


@dataclass(frozen=True, slots=True)
class Repair:
    status: NodeStatus
    revision: Revision  # the current one of the node
    why: str

    @property
    def node(self) -> str:
        return self.status.node


def find_repairs(step: RolloutStep, desired: int, drifted: Mapping[str, str]) -> tuple[Repair, ...]:
    """The drifted nodes that get their current revision again, in the order of a rollout."""
    found = (
        Repair(status, revision, drifted[status.node])
        for status in sorted(step.node_statuses, key=step.order)
        if status.node in drifted
        and is_repaired(step, status, desired)
        and (revision := step.revised.revision(status.current)) is not None
        and not revision.bad
    )
    return tuple(found)


def is_repaired(step: RolloutStep, status: NodeStatus, desired: int) -> bool:
    """Whether a node that has drifted gets its current revision before the desired one.

    A node that may have the desired revision gets it instead, unless nothing runs there: staging it
    on all nodes takes time. A node on which an attempt failed gets the desired one as well.
    """
    if status.current >= desired or status.node in step.holds:
        return True
    disk = step.observation.disks.get(status.node)
    installer = step.installer(status, status.current)
    fails = status.failed_revision or (installer is not None and installer.waiting)
    has_it = disk is not None and disk.revision == status.current
    return step.is_down(status.node) and has_it and not fails


def next_repair(
    step: RolloutStep, repairs: Sequence[Repair], *, running: bool
) -> tuple[RolloutStep, Repair | None]:
    """The first repair of a node without a Ready scheduler; with `running`, of the others."""
    for repair in repairs:
        if step.is_down(repair.node) == running:
            continue
        why = _why_not_stopped(step, repair.node) if running else ""
        if not why:
            return step, repair
        step = step.with_waiting(repair.node, why)
    return step, None


def _why_not_stopped(step: RolloutStep, node: str) -> str:
    """Why the Ready scheduler of a node is not stopped now; empty if it may be."""
    if step.busy:
        return f"`kubeadm upgrade` may be running on {', '.join(step.busy)}"
    others = [other for other in step.snapshot.nodes if other != node]
    # What runs on a node that is not Ready is not known.
    if others and not any(step.is_ready(other) and not step.is_down(other) for other in others):
        return "no other scheduler is Ready"
    return ""
