"""Decides whether the desired content needs a new revision, and makes it step by step.

A revision is made in an order that survives a crash at any point: `revision-status-N` (not ready),
its copies, ready, and only then `status.latestAvailableRevision`. Each of these is a write of its
own in a reconcile of its own, because the next one needs the API's answer (the owner's uid). A
reconcile that finds an unfinished revision continues it, so numbers have no gaps and nothing
incomplete is ever advertised.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from ...base import names
from ...base.objects import Object, annotation, label
from ...base.revision_number import LARGEST, revision_number
from ...base.times import rfc3339
from ...kube.resource import CONFIG_MAPS
from ...model.node_disks import Disks
from ...model.plan import Action, Create, Delete, Event, Replace
from ...model.snapshot import Snapshot
from .content import RevisionContent
from .history import Revision, last_good
from .proof import KnownNumbers, known_numbers, unseen_nodes
from .write import make_copies, mark_ready, record_outcome, status_object

_NOTHING: Object = {"metadata": {}}
_NO_DISKS: Disks = MappingProxyType({})

_FAILED_BEFORE = (
    "this content failed after it was installed and is not retried until an input changes; the "
    "last good content is in use"
)


@dataclass(frozen=True, slots=True)
class RevisionResult:
    """What the revise step decided."""

    actions: tuple[Action, ...]  # the next writes
    latest: int  # the new `status.latestAvailableRevision`
    # the revision that every node should run; None: none may be installed now
    desired: Revision | None
    blocked: str  # why the desired content is not rolled out; empty if it is
    # the latest revision, if it was refused or failed and is still desired
    rejected: Revision | None
    note: str  # information that is not a failure
    history: tuple[Revision, ...]  # all revisions that count, oldest first
    problem: str = ""  # numbers that do not count, and what to do about them; empty without any
    known: int = 0  # the highest number that the API knows
    requeue_after: float | None = None  # seconds until a wait ends

    def revision(self, number: int) -> Revision | None:
        """The revision with that number."""
        return next((revision for revision in self.history if revision.number == number), None)


@dataclass(frozen=True, slots=True)
class _Situation:
    """What the steps of `revise` know."""

    snapshot: Snapshot  # the observed state
    content: RevisionContent | None  # the desired content; None if a finding blocks it
    disks: Disks  # what programs on the nodes have read there
    numbers: KnownNumbers  # the numbers that count
    ready: tuple[Revision, ...]  # the revisions that are ready, oldest first
    running: Mapping[str, int]  # node -> the revision that it runs

    @property
    def history(self) -> tuple[Revision, ...]:
        """The revisions that count, oldest first."""
        return self.numbers.history

    @property
    def newest(self) -> Revision | None:
        """The newest ready revision."""
        return self.ready[-1] if self.ready else None

    @property
    def bad(self) -> Revision | None:
        """The newest ready revision, if it was refused or failed."""
        newest = self.newest
        return newest if newest is not None and newest.bad else None

    @property
    def latest(self) -> int:
        """The new `status.latestAvailableRevision`.

        A crash between "ready" and the status write leaves the status behind, and a deleted
        revision-status leaves it ahead; if both are lost, as after a restore of an older backup of
        etcd, the nodes' disks still have the revisions. Numbers only ever grow, so the largest one
        counts.
        """
        newest = self.newest
        return max(self.numbers.advertised, newest.number if newest and newest.complete else 0)

    @property
    def used(self) -> int:
        """The largest number that a revision has or had."""
        newest = self.newest
        return max(
            self.numbers.advertised,
            newest.number if newest else 0,
            *(revision.number for revision in self.history if revision.was_ready),
            self.numbers.newest_on_disk,
        )

    @property
    def taken(self) -> bool:
        """Whether a node has another revision with the number of the newest one."""
        newest = self.newest
        return newest is not None and any(
            disk.taken == newest.number for disk in self.disks.values()
        )

    @property
    def whole(self) -> bool:
        """Whether no revision after the newest one, and no part of it, was lost."""
        newest = self.newest
        return newest is not None and newest.number == self.used and not self.taken

    @property
    def installable(self) -> Revision | None:
        """The revision that nodes may be moved to: the latest, or else the last good one."""
        return _installable(self.snapshot, self.ready, self.running) if self.whole else None

    @property
    def last_installed(self) -> Revision | None:
        """The newest installed revision, unless some node runs a newer one."""
        return _last_installed(self.snapshot, self.ready, self.running)

    def result(
        self,
        actions: tuple[Action, ...] = (),
        blocked: str = "",
        rejected: Revision | None = None,
    ) -> RevisionResult:
        """A result; nodes run the installable revision."""
        return RevisionResult(
            actions,
            self.latest,
            self.installable,
            blocked,
            rejected,
            _missing_copies(self.ready[:-1]),
            self.history,
            problem=self.numbers.problem,
            known=self.numbers.in_api,
        )


def revise(
    snapshot: Snapshot,
    content: RevisionContent | None,
    swapping: Container[int] = (),
    disks: Disks = _NO_DISKS,
) -> RevisionResult:
    """One step towards a complete revision with `content`; None if a finding blocks it.

    `swapping` has the revisions that are replacing a node's scheduler; `disks` is what programs on
    the nodes have read there.
    """
    numbers = known_numbers(snapshot, disks)
    situation = _Situation(
        snapshot,
        content,
        disks,
        numbers,
        ready=tuple(revision for revision in numbers.history if revision.ready),
        running=_running(snapshot, numbers.in_api),
    )
    unseen = unseen_nodes(snapshot, disks, max(situation.used, numbers.in_api))
    if unseen:
        # A number must not be used a second time, with other content.
        listed = ", ".join(sorted(unseen))
        blocked = (
            f"looking at the disk of {listed}: a revision that the API does not know runs there"
        )
        return replace(situation.result(blocked=blocked), requeue_after=min(unseen.values()))
    if situation.used >= LARGEST:
        return situation.result(blocked="no revision number is left")
    newest = situation.newest
    if newest is None or not situation.whole:
        return _restore(situation)
    return _return_to_good(situation, newest) or _follow(situation, newest, swapping)


def _restore(situation: _Situation) -> RevisionResult:
    """Make the latest revision again, or else the next one, after the latest was lost."""
    snapshot, content, used = situation.snapshot, situation.content, situation.used
    history = situation.history
    remade = () if situation.taken else _remake(snapshot, content, used, history, situation.disks)
    if remade:
        return situation.result(remade)
    if content is None:
        return situation.result(rejected=situation.bad)
    reason = f"a node has another revision {used} on its disk" if situation.taken else ""
    return situation.result(_cut(snapshot, content, used + 1, situation.newest, history, reason))


def _return_to_good(situation: _Situation, newest: Revision) -> RevisionResult | None:
    """Go back to good content if content failed after it was healthy; None if it did not."""
    content, history = situation.content, situation.history
    fallen = _fallen(history, situation.running)
    if fallen is None or not newest.bad:
        return None
    unchanged = content is None or content.hash in (fallen.hash, newest.hash)
    good = last_good(history, fallen.number) if unchanged else None
    if good is None:
        return None
    cut = _go_back(situation.snapshot, fallen, newest, good, situation.used + 1, history)
    return situation.result(cut, blocked=_FAILED_BEFORE, rejected=fallen)


def _follow(situation: _Situation, newest: Revision, swapping: Container[int]) -> RevisionResult:
    """Follow the desired content: with the newest revision, an earlier one, or a new one."""
    snapshot, content, history = situation.snapshot, situation.content, situation.history
    bad, number = situation.bad, situation.used + 1
    if content is None:
        return situation.result(rejected=bad)
    tidy = (*_repaired(snapshot, newest, content, history), *_abandon(history, situation.used))
    if newest.hash == content.hash and newest.withdrawn:
        reason = f"content of withdrawn revision {newest.number} requested again"
        return situation.result(_cut(snapshot, content, number, newest, history, reason))
    if newest.hash == content.hash:
        blocked = f"revision {newest.number} is {newest.outcome}" if bad else ""
        return situation.result(tidy, blocked=blocked, rejected=bad)
    if content.hash in newest.quarantined:
        failed = next((r for r in reversed(history) if r.hash == content.hash and r.bad), None)
        return situation.result(tidy, blocked=_FAILED_BEFORE, rejected=failed)
    installable = situation.installable
    if installable is not None and installable.hash == content.hash:
        # The later revisions were refused or rolled back, and the edit was reverted: no scheduler
        # has to be restarted.
        return situation.result((*_repaired(snapshot, installable, content, history), *tidy))
    good = situation.last_installed
    begun = newest.outcome or newest.number in swapping
    if not begun and good is not None and good.hash == content.hash and good.complete:
        return replace(situation.result(_withdraw(snapshot, newest)), desired=good)
    return situation.result(_cut(snapshot, content, number, newest, history))


def _withdraw(snapshot: Snapshot, revision: Revision) -> tuple[Action, ...]:
    """Record that a revision which no node has begun to run is no longer desired."""
    message = "the edit was reverted before any node ran it"
    event = Event("RevisionWithdrawn", f"revision {revision.number}: {message}")
    outcome = names.OUTCOME_WITHDRAWN
    return record_outcome(revision, outcome, message, rfc3339(snapshot.now), event)


def _go_back(
    snapshot: Snapshot,
    fallen: Revision,
    newest: Revision,
    good: Revision,
    number: int,
    history: tuple[Revision, ...],
) -> tuple[Action, ...]:
    """Cut a new revision with good content: `fallen` failed after it was healthy."""
    return _cut(
        snapshot,
        good.content,
        number,
        newest,
        history,
        reason=f"revision {fallen.number} failed after it was installed; back to the content of "
        f"revision {good.number}",
        quarantined=frozenset((fallen.hash, newest.hash)),
    )


def _running(snapshot: Snapshot, known: int) -> dict[str, int]:
    """Node -> the revision that it runs, as far as the API shows it; 0: not the operator's.

    A label counts only up to `known`: it never makes a number.
    """
    entries = {entry["nodeName"]: entry for entry in snapshot.status.get("nodeStatuses") or ()}
    found: dict[str, int] = {}
    for node in {*entries, *snapshot.operand_pods}:
        entry = entries.get(node, {})
        current = revision_number(entry.get("currentRevision"))
        text = label(snapshot.operand_pods.get(node, _NOTHING), names.REVISION_LABEL)
        shown = revision_number(text)
        shown = shown if shown <= known else 0
        # The mirror pod of a scheduler that was just rolled back can lag behind.
        rolled_back = (
            entry.get("lastFailedReason") == names.REASON_OPERAND_FALLBACK
            and entry.get("lastFailedRevision") == shown
        )
        found[node] = current if rolled_back or not shown else shown
    return found


def _installable(
    snapshot: Snapshot, ready: tuple[Revision, ...], running: Mapping[str, int]
) -> Revision | None:
    """The revision that nodes may be moved to: the latest, or else the last good one."""
    if not ready[-1].bad and not ready[-1].withdrawn:
        return ready[-1]
    return _last_installed(snapshot, ready, running)


def _last_installed(
    snapshot: Snapshot, ready: tuple[Revision, ...], running: Mapping[str, int]
) -> Revision | None:
    """The newest installed revision, unless some node runs a newer one."""
    entries = snapshot.status.get("nodeStatuses") or ()
    reached = max((revision_number(e.get("currentRevision")) for e in entries), default=0)
    reached = max(reached, *running.values(), 0)
    good = next((r for r in reversed(ready) if r.outcome == names.OUTCOME_INSTALLED), None)
    return good if good is not None and good.number >= reached else None


def _fallen(history: tuple[Revision, ...], running: Mapping[str, int]) -> Revision | None:
    """The newest failed revision that some node still runs."""
    on_nodes = set(running.values())
    return next(
        (
            revision
            for revision in reversed(history)
            if revision.outcome == names.OUTCOME_FAILED and revision.number in on_nodes
        ),
        None,
    )


def _missing_copies(older: tuple[Revision, ...]) -> str:
    broken = [name for revision in older for name in revision.missing]
    if not broken:
        return ""
    return (
        f"{', '.join(broken)} of an older revision was deleted; nodes can no longer fall back to "
        "that revision"
    )


def _remake(
    snapshot: Snapshot,
    content: RevisionContent | None,
    number: int,
    history: tuple[Revision, ...],
    disks: Disks,
) -> tuple[Action, ...]:
    """Restore the latest revision after its revision-status was deleted or changed.

    Only with content that it provably had: by its own record, by the record on a node's disk, or,
    for a number that the operator advertised itself, by a running scheduler's annotation.
    """
    if not number:
        return ()
    damaged = next((revision for revision in history if revision.number == number), None)
    if damaged is not None:
        known = _known(damaged.hash, content, history)
        if known is None:
            return ()
        return make_copies(snapshot, damaged, known) or mark_ready(damaged)
    hashes = [disk.content for disk in disks.values() if disk.revision == number]
    if number == revision_number(snapshot.status.get("latestAvailableRevision")):
        hashes += [
            annotation(pod, names.CONTENT_HASH_ANNOTATION)
            for pod in snapshot.operand_pods.values()
            if label(pod, names.REVISION_LABEL) == str(number)
        ]
    for content_hash in hashes:
        known = _known(content_hash, content, history) if content_hash else None
        if known is None:
            continue
        quarantined = (
            frozenset()
            if content is None or content.hash == content_hash
            else frozenset(r.hash for r in history if r.bad and r.hash == content.hash)
        )
        reason = "restored after it was deleted"
        status = status_object(snapshot, number, known, reason, quarantined)
        return (Create(CONFIG_MAPS, status),)
    return ()


def _known(
    content_hash: str, content: RevisionContent | None, history: tuple[Revision, ...]
) -> RevisionContent | None:
    """The content with this hash, if it is desired or some revision still has it."""
    if content is not None and content.hash == content_hash:
        return content
    return next((r.content for r in reversed(history) if r.hash == content_hash and r.intact), None)


def _repaired(
    snapshot: Snapshot, revision: Revision, content: RevisionContent, history: tuple[Revision, ...]
) -> tuple[Action, ...]:
    """Writes that restore the copies of a finished revision."""
    known = _known(revision.hash, content, history)
    return make_copies(snapshot, revision, known) if known is not None else ()


def _abandon(history: tuple[Revision, ...], latest: int) -> tuple[Action, ...]:
    """Delete an unfinished revision whose edit was reverted."""
    return tuple(
        Delete(CONFIG_MAPS, revision.status)
        for revision in history
        if revision.number > latest and not revision.ready
    )


def _cut(
    snapshot: Snapshot,
    content: RevisionContent,
    number: int,
    previous: Revision | None,
    history: tuple[Revision, ...],
    reason: str = "",
    quarantined: frozenset[str] = frozenset(),
) -> tuple[Action, ...]:
    """The next write towards revision `number` with `content`."""
    begun = next((r for r in history if r.number == number), None)
    if begun is None:
        before = previous.content if previous is not None and previous.complete else None
        reason = reason or ",".join(content.differences(before)) or "content was lost"
        status = status_object(snapshot, number, content, reason, quarantined)
        event = Event("StartingNewRevision", f'new revision {number} triggered by "{reason}"')
        return (Create(CONFIG_MAPS, status, events=(event,)),)
    if begun.hash != content.hash or begun.quarantined != quarantined:
        # The inputs changed while it was being made; no node has seen it yet.
        before = previous.content if previous is not None and previous.complete else None
        reason = reason or ",".join(content.differences(before)) or "content was lost"
        fresh = status_object(snapshot, number, content, reason, quarantined)
        metadata = {**begun.status["metadata"], "annotations": fresh["metadata"]["annotations"]}
        return (
            Replace(CONFIG_MAPS, {**begun.status, "metadata": metadata, "data": fresh["data"]}),
        )
    missing = make_copies(snapshot, begun, content)
    if missing:
        return missing
    return mark_ready(begun)
