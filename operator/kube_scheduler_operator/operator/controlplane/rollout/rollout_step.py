"""The rollout step: its input and its result in one value; every `with_…` returns the next one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from ....base.times import rfc3339, seconds_left
from ...model.plan import Action, Event, soonest
from ...model.snapshot import Snapshot
from ..node_pods import installer_pod_name
from ..revision.history import Revision, record_outcome
from ..revision.revise import RevisionResult
from .installer_pods import Installer
from .kubeadm_upgrades import Holds, Request
from .node_statuses import NodeStatus
from .observe import Observation


@dataclass(frozen=True, slots=True)
class RolloutStep:
    snapshot: Snapshot
    revised: RevisionResult  # without any revision while the operator is removed
    observation: Observation
    node_statuses: tuple[NodeStatus, ...] = ()  # the new `status.nodeStatuses`
    actions: tuple[Action, ...] = ()  # writes before the status is written
    afterwards: tuple[Action, ...] = ()  # writes after it
    events: tuple[Event, ...] = ()  # of the status write
    requeue_after: float | None = None  # seconds until the next wait ends
    waiting: Mapping[str, str] = field(default_factory=dict)  # node -> what it waits for
    # node -> why it does not get the desired revision, because of kubeadm
    holds: Holds = field(default_factory=dict)
    # node -> the other version that kubeadm wrote there
    requests: Mapping[str, Request] = field(default_factory=dict)
    # node -> why another image in kubeadm's manifest is put back
    refusals: Mapping[str, str] = field(default_factory=dict)
    concluded: frozenset[int] = frozenset()  # the revisions whose outcome `actions` records

    @property
    def moving(self) -> frozenset[str]:
        """The nodes that have a target."""
        return frozenset(status.node for status in self.node_statuses if status.target)

    @property
    def busy(self) -> list[str]:
        """The nodes on which `kubeadm upgrade` may be running."""
        return sorted(node for node, hold in self.holds.items() if hold.work)

    def is_ready(self, node: str) -> bool:
        return node not in self.observation.not_ready

    def is_down(self, node: str) -> bool:
        """Whether no scheduler of the node is Ready."""
        pod = self.observation.operands.get(node)
        return pod is None or not pod.ready

    def is_kubeadms(self, node: str) -> bool:
        """Whether a difference between a node and its revision is an upgrade by kubeadm."""
        hold = self.holds.get(node)
        return node in self.requests or (hold is not None and hold.work)

    def installer(self, status: NodeStatus, revision: int) -> Installer | None:
        """The installer pod of the node's next or current attempt to install `revision`."""
        name = installer_pod_name(status.node, revision, status.attempts(revision))
        return self.observation.installer(name)

    def order(self, status: NodeStatus) -> tuple[bool, bool, int, str]:
        """Sort key of nodes: unhealthy schedulers first, the holder of the Lease last."""
        pod = self.observation.operands.get(status.node)
        lease = (self.snapshot.operand_lease or {}).get("spec") or {}
        leads = str(lease.get("holderIdentity") or "").startswith(f"{status.node}_")
        return pod is not None and pod.ready, leads, status.current, status.node

    def with_status(self, status: NodeStatus) -> RolloutStep:
        statuses = (status if old.node == status.node else old for old in self.node_statuses)
        return replace(self, node_statuses=tuple(statuses))

    def with_actions(self, *actions: Action, after_status: bool = False) -> RolloutStep:
        if after_status:
            return replace(self, afterwards=(*self.afterwards, *actions))
        return replace(self, actions=(*self.actions, *actions))

    def with_event(self, reason: str, message: str, *, warning: bool = False) -> RolloutStep:
        event = Event(reason, message, "Warning" if warning else "Normal")
        return replace(self, events=(*self.events, event))

    def with_waiting(self, node: str, reason: str) -> RolloutStep:
        return replace(self, waiting={**self.waiting, node: reason})

    def with_requeue(self, seconds: float) -> RolloutStep:
        """With a requeue after `seconds`, or earlier if one was planned."""
        return replace(self, requeue_after=soonest(self.requeue_after, max(seconds, 0.1)))

    def with_outcome(
        self, revision: Revision, outcome: str, message: str, event: Event
    ) -> RolloutStep:
        """With the write of a revision's outcome, because of `message`; the first one counts."""
        if revision.number in self.concluded:
            return self
        writes = record_outcome(revision, outcome, message, rfc3339(self.snapshot.now), event)
        concluded = self.concluded | {revision.number}
        return replace(self, actions=(*self.actions, *writes), concluded=concluded)

    def backing_off(self, node: str, failures: int, since: datetime) -> RolloutStep | None:
        """With the back-off after that many failures, the last at `since`; None once it is over."""
        delay = self.snapshot.settings.rollout.delay(failures)
        left = seconds_left(self.snapshot.now, since, delay)
        if not left:
            return None
        # A time, not the seconds left: the text must stay the same in every reconcile.
        begin = rfc3339(since + timedelta(seconds=delay))
        waiting = f"attempt {failures + 1} begins at {begin}"
        return self.with_waiting(node, waiting).with_requeue(left)
