"""The immutable result of the rollout step: every `with_…` returns the next one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from ....base.times import rfc3339, seconds_left
from ...model.plan import Action, Event, soonest
from ...model.snapshot import Snapshot
from ..revision.history import Revision
from ..revision.write import record_outcome
from .kubeadm_upgrades import Holds, Request
from .node_statuses import NodeStatus


@dataclass(frozen=True, slots=True)
class RolloutResult:
    node_statuses: tuple[NodeStatus, ...] = ()  # the new `status.nodeStatuses`
    actions: tuple[Action, ...] = ()  # writes before the status is written
    afterwards: tuple[Action, ...] = ()  # writes after it
    events: tuple[Event, ...] = ()  # of the status write
    requeue_after: float | None = None  # seconds until the next wait ends
    waiting: Mapping[str, str] = field(default_factory=dict)  # node -> what it waits for
    # node -> why kubeadm keeps its scheduler from being replaced
    holds: Holds = field(default_factory=dict)
    # node -> the other version that kubeadm wrote there
    requests: Mapping[str, Request] = field(default_factory=dict)
    # node -> why another image in kubeadm's manifest is put back
    refusals: Mapping[str, str] = field(default_factory=dict)
    concluded: frozenset[int] = frozenset()  # the revisions whose outcome `actions` records

    def is_kubeadms(self, node: str) -> bool:
        """Whether a difference between a node and its revision is an upgrade by kubeadm."""
        hold = self.holds.get(node)
        return node in self.requests or (hold is not None and hold.work)

    def with_status(self, status: NodeStatus) -> RolloutResult:
        statuses = (status if old.node == status.node else old for old in self.node_statuses)
        return replace(self, node_statuses=tuple(statuses))

    def with_actions(self, *actions: Action, after_status: bool = False) -> RolloutResult:
        if after_status:
            return replace(self, afterwards=(*self.afterwards, *actions))
        return replace(self, actions=(*self.actions, *actions))

    def with_event(self, reason: str, message: str, *, warning: bool = False) -> RolloutResult:
        event = Event(reason, message, "Warning" if warning else "Normal")
        return replace(self, events=(*self.events, event))

    def with_waiting(self, node: str, reason: str) -> RolloutResult:
        return replace(self, waiting={**self.waiting, node: reason})

    def with_requeue(self, seconds: float) -> RolloutResult:
        """With a requeue after `seconds`, or earlier if one was planned."""
        return replace(self, requeue_after=soonest(self.requeue_after, max(seconds, 0.1)))

    def with_outcome(
        self, snapshot: Snapshot, revision: Revision, outcome: str, message: str, event: Event
    ) -> RolloutResult:
        """With the write of a revision's outcome, because of `message`; the first one counts."""
        if revision.number in self.concluded:
            return self
        writes = record_outcome(revision, outcome, message, rfc3339(snapshot.now), event)
        concluded = self.concluded | {revision.number}
        return replace(self, actions=(*self.actions, *writes), concluded=concluded)

    def backing_off(
        self, snapshot: Snapshot, node: str, failures: int, since: datetime
    ) -> RolloutResult | None:
        """With the back-off after that many failures, the last at `since`; None once it is over."""
        delay = snapshot.settings.rollout.delay(failures)
        left = seconds_left(snapshot.now, since, delay)
        if not left:
            return None
        # A time, not the seconds left: the text must stay the same in every reconcile.
        begin = rfc3339(since + timedelta(seconds=delay))
        return self.with_waiting(node, f"attempt {failures + 1} begins at {begin}").with_requeue(
            left
        )


def describe(statuses: tuple[NodeStatus, ...], latest: int) -> str:
    """How many nodes are at which revision, in the reference's words."""
    counts: dict[int, int] = {}
    for status in statuses:
        counts[status.current] = counts.get(status.current, 0) + 1
    parts = [
        f"1 node is at revision {revision}"
        if count == 1
        else f"{count} nodes are at revision {revision}"
        for revision, count in sorted(counts.items())
    ]
    if statuses and latest and latest not in counts:
        parts.append(f"0 nodes have achieved new revision {latest}")
    return "; ".join(parts)
