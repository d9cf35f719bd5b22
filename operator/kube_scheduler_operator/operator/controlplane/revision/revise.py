"""Decides whether the desired content needs a new revision, and creates it step by step.

A revision is created in an order that survives a crash at any point: `revision-status-N` (not
ready), its copies, ready, and only then `status.latestAvailableRevision`. Each of these is a write
of its own in a reconcile of its own, because the next one needs the API's answer (the owner's uid).
A reconcile that finds an unfinished revision continues it, so numbers have no gaps and nothing
incomplete is ever advertised.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from ....base import names
from ....base.objects import Object, annotation, label
from ....base.revision_number import LARGEST, revision_number
from ....base.times import rfc3339
from ....kube.resource import CONFIG_MAPS
from ...model.operand_pods import Disks
from ...model.plan import Action, Create, Delete, Event, Replace
from ...model.snapshot import Snapshot
from .content import RevisionContent
from .history import Revision, last_good, make_copies, mark_ready, record_outcome, status_object
from .proof import KnownNumbers, known_numbers, unseen_nodes

_NOTHING: Object = {"metadata": {}}


@dataclass(frozen=True, slots=True)
class RevisionResult:
    actions: tuple[Action, ...] = ()  # the next writes
    latest: int = 0  # the new `status.latestAvailableRevision`
    desired: Revision | None = None  # what every node should run; None: none may be installed now
    rejected: Revision | None = None  # the latest revision, if it is bad and still desired
    note: str = ""  # information that is not a failure
    history: tuple[Revision, ...] = ()  # all revisions that count, oldest first
    problem: str = ""  # numbers that do not count, and what to do about them; empty without any
    known: int = 0  # the highest number that the API knows
    requeue_after: float | None = None  # seconds until a wait ends

    @property
    def desired_number(self) -> int:
        return self.desired.number if self.desired is not None else 0

    def revision(self, number: int) -> Revision | None:
        return next((revision for revision in self.history if revision.number == number), None)


@dataclass(frozen=True, slots=True)
class _Situation:
    snapshot: Snapshot
    content: RevisionContent | None  # the desired content; None if a finding blocks it
    disks: Disks
    numbers: KnownNumbers
    ready: tuple[Revision, ...]  # the revisions that are ready, oldest first
    running: Mapping[str, int]  # node -> the revision that it runs

    @property
    def history(self) -> tuple[Revision, ...]:
        return self.numbers.history

    @property
    def newest(self) -> Revision | None:
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
        newest = self.newest
        if newest is None or not self.whole:
            return None
        return self.last_installed if newest.bad or newest.withdrawn else newest

    @property
    def last_installed(self) -> Revision | None:
        """The newest installed revision, unless some node runs a newer one."""
        statuses = self.snapshot.status.get("nodeStatuses") or ()
        current = (revision_number(status.get("currentRevision")) for status in statuses)
        reached = max((*current, *self.running.values()), default=0)
        for revision in reversed(self.ready):
            if revision.outcome == names.OUTCOME_INSTALLED:
                return revision if revision.number >= reached else None
        return None

    @property
    def fallen(self) -> Revision | None:
        """The newest failed revision that some node still runs."""
        for revision in reversed(self.history):
            runs = revision.number in self.running.values()
            if runs and revision.outcome == names.OUTCOME_FAILED:
                return revision
        return None

    def revision(self, number: int) -> Revision | None:
        return next((revision for revision in self.history if revision.number == number), None)

    def content_with(self, content_hash: str) -> RevisionContent | None:
        """The content with this hash, if it is desired or some revision still has it."""
        if self.content is not None and self.content.hash == content_hash:
            return self.content
        for revision in reversed(self.history):
            if revision.hash == content_hash and revision.intact:
                return revision.content
        return None

    def result(
        self, actions: tuple[Action, ...] = (), rejected: Revision | None = None
    ) -> RevisionResult:
        """A result; nodes run the installable revision."""
        return RevisionResult(
            actions,
            self.latest,
            self.installable,
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
    disks: Disks = MappingProxyType({}),
) -> RevisionResult:
    """One step towards a complete revision with `content`; None if a finding blocks it.

    `swapping` has the revisions that are replacing a node's scheduler; `disks` is what programs on
    the nodes have read there.
    """
    numbers = known_numbers(snapshot, disks)
    ready = tuple(revision for revision in numbers.history if revision.ready)
    running = _running(snapshot, numbers.in_api)
    situation = _Situation(snapshot, content, disks, numbers, ready, running)
    unseen = unseen_nodes(snapshot, disks, max(situation.used, numbers.in_api))
    if unseen:
        # A number must not be used a second time, with other content: guards look at these disks.
        return replace(situation.result(), requeue_after=min(unseen.values()))
    if situation.used >= LARGEST:
        return situation.result()  # no number is left, which `problem` reports
    newest = situation.newest
    if newest is None or not situation.whole:
        return _restore(situation)
    return _return_to_good(situation, newest) or _follow(situation, newest, swapping)


def _restore(situation: _Situation) -> RevisionResult:
    """Make the latest revision again, or else the next one, after the latest was lost."""
    writes = () if situation.taken else _remake(situation)
    if writes:
        return situation.result(writes)
    if situation.content is None:
        return situation.result(rejected=situation.bad)
    number = situation.used
    reason = f"a node has another revision {number} on its disk" if situation.taken else ""
    return situation.result(_cut(situation, situation.content, reason))


def _return_to_good(situation: _Situation, newest: Revision) -> RevisionResult | None:
    """Go back to good content if content failed after it was healthy; None if it did not."""
    content, fallen = situation.content, situation.fallen
    if fallen is None or not newest.bad:
        return None
    unchanged = content is None or content.hash in (fallen.hash, newest.hash)
    good = last_good(situation.history, fallen.number) if unchanged else None
    if good is None:
        return None
    reason = (
        f"revision {fallen.number} failed after it was installed; back to the content of "
        f"revision {good.number}"
    )
    writes = _cut(situation, good.content, reason, frozenset((fallen.hash, newest.hash)))
    return situation.result(writes, rejected=fallen)


def _follow(situation: _Situation, newest: Revision, swapping: Container[int]) -> RevisionResult:
    """Follow the desired content: with the newest revision, an earlier one, or a new one."""
    content, bad = situation.content, situation.bad
    if content is None:
        return situation.result(rejected=bad)
    tidy = (*_repaired(situation, newest), *_abandon(situation.history, situation.used))
    if newest.hash == content.hash and newest.withdrawn:
        reason = f"content of withdrawn revision {newest.number} requested again"
        return situation.result(_cut(situation, content, reason))
    if newest.hash == content.hash:
        return situation.result(tidy, rejected=bad)
    if content.hash in newest.quarantined:
        # It failed after it was installed, and is not retried until an input changes.
        failures = [
            revision
            for revision in situation.history
            if revision.bad and revision.hash == content.hash
        ]
        rejected = failures[-1] if failures else None
        return situation.result(tidy, rejected=rejected)
    installable = situation.installable
    if installable is not None and installable.hash == content.hash:
        # The later revisions were refused or rolled back, and the edit was reverted: no scheduler
        # has to be restarted.
        return situation.result((*_repaired(situation, installable), *tidy))
    good = situation.last_installed
    begun = newest.outcome or newest.number in swapping
    if not begun and good is not None and good.hash == content.hash and good.complete:
        writes = _withdraw(situation.snapshot, newest)
        return replace(situation.result(writes), desired=good)
    return situation.result(_cut(situation, content))


def _withdraw(snapshot: Snapshot, revision: Revision) -> tuple[Action, ...]:
    """Record that a revision which no node has begun to run is no longer desired."""
    message = "the edit was reverted before any node ran it"
    event = Event("RevisionWithdrawn", f"revision {revision.number}: {message}")
    outcome = names.OUTCOME_WITHDRAWN
    return record_outcome(revision, outcome, message, rfc3339(snapshot.now), event)


def _running(snapshot: Snapshot, known: int) -> dict[str, int]:
    """Node -> the revision that it runs, as far as the API shows it; 0: not the operator's.

    A label counts only up to `known`: it never makes a number.
    """
    entries = {entry["nodeName"]: entry for entry in snapshot.status.get("nodeStatuses") or ()}
    running: dict[str, int] = {}
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
        running[node] = current if rolled_back or not shown else shown
    return running


def _missing_copies(older: tuple[Revision, ...]) -> str:
    missing = [name for revision in older for name in revision.missing]
    if not missing:
        return ""
    return (
        f"{', '.join(missing)} of an older revision was deleted; nodes can no longer fall back to "
        "that revision"
    )


def _remake(situation: _Situation) -> tuple[Action, ...]:
    """Restore the latest revision after its revision-status was deleted or changed.

    Only with content that it provably had: by its own record, by the record on a node's disk, or,
    for a number that the operator advertised itself, by a running scheduler's annotation.
    """
    snapshot, desired, number = situation.snapshot, situation.content, situation.used
    if not number:
        return ()
    damaged = situation.revision(number)
    if damaged is not None:
        content = situation.content_with(damaged.hash)
        if content is None:
            return ()
        return make_copies(snapshot, damaged, content) or mark_ready(damaged)
    hashes = [disk.content for disk in situation.disks.values() if disk.revision == number]
    if number == revision_number(snapshot.status.get("latestAvailableRevision")):
        hashes += [
            annotation(pod, names.CONTENT_HASH_ANNOTATION)
            for pod in snapshot.operand_pods.values()
            if label(pod, names.REVISION_LABEL) == str(number)
        ]
    for content_hash in filter(None, hashes):
        content = situation.content_with(content_hash)
        if content is None:
            continue
        quarantined: frozenset[str] = frozenset()
        if desired is not None and desired.hash != content_hash:
            bad = (revision.hash for revision in situation.history if revision.bad)
            quarantined = frozenset(failed for failed in bad if failed == desired.hash)
        reason = "restored after it was deleted"
        status = status_object(snapshot, number, content, reason, quarantined)
        return (Create(CONFIG_MAPS, status),)
    return ()


def _repaired(situation: _Situation, revision: Revision) -> tuple[Action, ...]:
    content = situation.content_with(revision.hash)
    return make_copies(situation.snapshot, revision, content) if content is not None else ()


def _abandon(history: tuple[Revision, ...], latest: int) -> tuple[Action, ...]:
    """Delete an unfinished revision whose edit was reverted."""
    return tuple(
        Delete(CONFIG_MAPS, revision.status)
        for revision in history
        if revision.number > latest and not revision.ready
    )


def _cut(
    situation: _Situation,
    content: RevisionContent,
    reason: str = "",
    quarantined: frozenset[str] = frozenset(),
) -> tuple[Action, ...]:
    """The next write towards a new revision with `content`."""
    snapshot, previous, number = situation.snapshot, situation.newest, situation.used + 1
    begun = situation.revision(number)
    if begun is not None and begun.hash == content.hash and begun.quarantined == quarantined:
        return make_copies(snapshot, begun, content) or mark_ready(begun)
    before = previous.content if previous is not None and previous.complete else None
    reason = reason or ",".join(content.differences(before)) or "content was lost"
    status = status_object(snapshot, number, content, reason, quarantined)
    if begun is None:
        event = Event("StartingNewRevision", f'new revision {number} triggered by "{reason}"')
        return (Create(CONFIG_MAPS, status, events=(event,)),)
    # The inputs changed while it was being made; no node has seen it yet.
    metadata = {**begun.status["metadata"], "annotations": status["metadata"]["annotations"]}
    return (Replace(CONFIG_MAPS, {**begun.status, "metadata": metadata, "data": status["data"]}),)
