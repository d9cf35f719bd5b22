"""What a step of a rollout found and wants; filled in as the step goes along."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ...base.times import rfc3339
from ...model.operand_pods import Operand
from ...model.plan import Action, Event
from ...model.snapshot import Snapshot
from ..revision.history import Revision
from .installer_pods import Installer
from .node_statuses import Entry


@dataclass(slots=True)
class Stepped:
    """What the rollout step wants.

    Attributes:
        entries: what `status.nodeStatuses` must say.
        actions: writes to do before the status is written.
        afterwards: writes to do after it.
        events: for the status write, when it succeeds.
        requeue_after: seconds until a wait is over.
        waiting: node -> what it is waiting for, in words.
        operands: the schedulers that were seen, by node.
        installers: the installer pods that were seen.
        judged: revisions whose outcome this pass writes.
        not_ready: control-plane nodes that are not Ready, in the reference's words.
    """

    entries: tuple[Entry, ...] = ()
    actions: list[Action] = field(default_factory=list)
    afterwards: list[Action] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    requeue_after: float | None = None
    waiting: dict[str, str] = field(default_factory=dict)
    operands: dict[str, Operand] = field(default_factory=dict)
    installers: tuple[Installer, ...] = ()
    judged: set[int] = field(default_factory=set)
    not_ready: dict[str, str] = field(default_factory=dict)

    @property
    def swapping(self) -> frozenset[int]:
        """The revisions that replace a node's scheduler right now."""
        return frozenset(pod.revision for pod in self.installers if pod.swapping)

    def put(self, entry: Entry) -> None:
        """Let the entry of its node be this one."""
        self.entries = tuple(entry if old.node == entry.node else old for old in self.entries)

    def installer(self, name: str) -> Installer | None:
        """The installer pod of that name, unless it is being deleted."""
        return next((i for i in self.installers if i.name == name and not i.leaving), None)

    def wake(self, seconds: float) -> None:
        """Look again in so many seconds at the latest."""
        seconds = max(seconds, 0.1)
        if self.requeue_after is None or seconds < self.requeue_after:
            self.requeue_after = seconds

    def backs_off(self, snapshot: Snapshot, node: str, failures: int, since: datetime) -> bool:
        """Whether the attempt after so many failures, the last one at `since`, has to wait."""
        delay = snapshot.settings.rollout.delay(failures)
        left = delay - (snapshot.now - since).total_seconds()
        if left <= 0:
            return False
        # The moment, not what is left: the text must not change from pass to pass.
        begin = rfc3339(since + timedelta(seconds=delay))
        self.waiting[node] = f"attempt {failures + 1} begins at {begin}"
        self.wake(left)
        return True

    def judge(self, revision: Revision, actions: tuple[Action, ...]) -> None:
        """Write how a revision ended; one verdict per pass is enough."""
        if revision.number not in self.judged:
            self.judged.add(revision.number)
            self.actions.extend(actions)


def describe(entries: tuple[Entry, ...], latest: int) -> str:
    """Which nodes are where, in the reference's words."""
    counts: dict[int, int] = {}
    for entry in entries:
        counts[entry.current] = counts.get(entry.current, 0) + 1
    parts = [
        f"1 node is at revision {revision}"
        if count == 1
        else f"{count} nodes are at revision {revision}"
        for revision, count in sorted(counts.items())
    ]
    if entries and latest and latest not in counts:
        parts.append(f"0 nodes have achieved new revision {latest}")
    return "; ".join(parts)
