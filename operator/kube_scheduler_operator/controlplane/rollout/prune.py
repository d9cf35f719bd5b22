"""Which old revisions stay, in the API and on the nodes, and the writes that remove the others.

The limits work as in the reference (openshift/library-go, prune controller): so many revisions up
to the latest, and up to what each node runs, is on its way to or failed with. Beyond that stays
what decisions here rest on: what a scheduler evidently runs, what a node could go back to, and the
memory of content that failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ...kube.resource import CONFIG_MAPS
from ...model.plan import Action, Delete, Event
from ...model.snapshot import Snapshot
from ..revision.history import Revision, last_good
from .node_statuses import Entry
from .result import Stepped

DEFAULT_LIMIT: Final = 5
"""What 0 and unset mean in spec.failedRevisionLimit and spec.succeededRevisionLimit."""

BACKLOG: Final = 20
"""So many superfluous revisions may wait for the end of a rollout, which is in more of a hurry."""


def prune(snapshot: Snapshot, history: Sequence[Revision], stepped: Stepped) -> tuple[Action, ...]:
    """Deletions of the revisions that may go; the garbage collector takes what they own along."""
    keep = protected(snapshot, history, stepped)
    gone = [revision for revision in history if revision.number not in keep]
    moving = any(entry.target for entry in stepped.entries)
    if not gone or (moving and len(gone) <= BACKLOG):
        return ()
    numbers = ", ".join(str(revision.number) for revision in gone)
    what = "revision" if len(gone) == 1 else "revisions"
    event = Event("RevisionsPruned", f"Deleting {what} {numbers}: nothing refers to them any more")
    first, *others = (revision.status for revision in gone)
    return (
        Delete(CONFIG_MAPS, first, events=(event,)),
        *(Delete(CONFIG_MAPS, status) for status in others),
    )


def protected(snapshot: Snapshot, history: Sequence[Revision], stepped: Stepped) -> frozenset[int]:
    """The numbers of the revisions that must stay."""
    numbers = frozenset(revision.number for revision in history)
    latest = max((revision.number for revision in history if revision.ready), default=0)
    limited = within_limits(
        stepped.entries,
        latest,
        int(snapshot.spec.get("failedRevisionLimit") or 0),
        int(snapshot.spec.get("succeededRevisionLimit") or 0),
    )
    if limited is None:
        return numbers
    newer = {number for number in numbers if number >= latest}
    return numbers & _with_memory(history, limited | newer | _in_use(snapshot, history, stepped))


def within_limits(
    entries: Iterable[Entry], latest: int, failed_limit: int, succeeded_limit: int
) -> frozenset[int] | None:
    """The numbers that the limits keep, of those up to `latest`; None: all of them.

    Args:
        entries: what every node runs, is moved to and failed with.
        latest: the newest revision.
        failed_limit: spec.failedRevisionLimit; 0 is the default, below 0 unlimited.
        succeeded_limit: spec.succeededRevisionLimit, likewise.
    """
    entries = tuple(entries)
    failed, succeeded = failed_limit or DEFAULT_LIMIT, succeeded_limit or DEFAULT_LIMIT
    either = max(failed, succeeded)
    oldest = min((entry.current for entry in entries), default=0)
    if not entries or succeeded < 0 or (failed < 0 and oldest < latest):
        return None
    found: set[int] = set()
    if oldest < latest:
        found.update(_up_to(latest, either))
    for entry in entries:
        found.update(_up_to(entry.current, succeeded))
        found.update(_up_to(entry.target, either))
        found.update(_up_to(entry.failed_revision, failed))
    return frozenset(found)


def _up_to(number: int, count: int) -> range:
    return range(max(number - count + 1, 1), number + 1)


def _in_use(snapshot: Snapshot, history: Sequence[Revision], stepped: Stepped) -> frozenset[int]:
    """What runs or is being installed, and for each node what it would go back to."""
    found = {pod.revision for pod in stepped.operands.values()}
    found.update(
        installer.revision
        for installer in stepped.installers
        if not installer.over and installer.node in snapshot.nodes
    )
    next_number = history[-1].number + 1 if history else 1
    for number in (*found, *(entry.current for entry in stepped.entries), next_number):
        good = last_good(history, number)
        if good is not None:
            found.add(good.number)
    return frozenset(found)


def _with_memory(history: Sequence[Revision], keep: frozenset[int]) -> frozenset[int]:
    """`keep`, and of content in it that failed under another number the newest proof of that."""
    content = {revision.hash for revision in history if revision.number in keep}
    content.update(*(revision.quarantined for revision in history if revision.number in keep))
    proofs = {revision.hash: revision.number for revision in history if revision.bad}
    return keep | {number for content_hash, number in proofs.items() if content_hash in content}
