"""Which old revisions stay, in the API and on the nodes, and the writes that delete the others.

The limits work as in the reference (openshift/library-go, prune controller): that many revisions up
to the latest, and up to the one that each node runs, moves to or failed with. Later decisions need
others, which stay as well: those that schedulers run, that a node could fall back to, and whose
content has failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from ....kube.resource import CONFIG_MAPS
from ...model.plan import Action, Delete, Event
from ..revision.history import Revision, last_good
from .node_statuses import NodeStatus
from .rollout_step import RolloutStep

DEFAULT_LIMIT: Final = 5
"""The meaning of 0 and unset in spec.failedRevisionLimit and spec.succeededRevisionLimit."""

BACKLOG: Final = 20
"""How many unneeded revisions may wait until a rollout, which is more urgent, has ended."""


def prune(step: RolloutStep) -> tuple[Action, ...]:
    """Deletions of unneeded revisions; the garbage collector deletes what they own."""
    keep = protected(step)
    gone = [revision for revision in step.revised.history if revision.number not in keep]
    if not gone or (step.moving and len(gone) <= BACKLOG):
        return ()
    numbers = ", ".join(str(revision.number) for revision in gone)
    what = "revision" if len(gone) == 1 else "revisions"
    event = Event("RevisionsPruned", f"Deleting {what} {numbers}: no longer needed")
    first, *others = (revision.status for revision in gone)
    return (
        Delete(CONFIG_MAPS, first, events=(event,)),
        *(Delete(CONFIG_MAPS, status) for status in others),
    )


def protected(step: RolloutStep) -> frozenset[int]:
    history, spec = step.revised.history, step.snapshot.spec
    numbers = frozenset(revision.number for revision in history)
    latest = max((revision.number for revision in history if revision.ready), default=0)
    statuses = step.node_statuses
    limited = within_limits(
        statuses,
        latest,
        _limit(spec.get("failedRevisionLimit")),
        _limit(spec.get("succeededRevisionLimit")),
    )
    if limited is None:
        return numbers
    newer = {number for number in numbers if number >= latest}
    return numbers & _with_failures(history, limited | newer | _in_use(step, statuses))


def _limit(value: Any) -> int:
    """A limit in the spec; 0 for a value that is none, which is reported."""
    return value if isinstance(value, int) else 0


def within_limits(
    statuses: Iterable[NodeStatus], latest: int, failed_limit: int, succeeded_limit: int
) -> frozenset[int] | None:
    """The numbers up to `latest` that the limits keep; None: all.

    A limit of 0 means the default, one below 0 unlimited.
    """
    statuses = tuple(statuses)
    failed, succeeded = failed_limit or DEFAULT_LIMIT, succeeded_limit or DEFAULT_LIMIT
    either = max(failed, succeeded)
    oldest = min((status.current for status in statuses), default=0)
    if not statuses or succeeded < 0 or (failed < 0 and oldest < latest):
        return None
    kept: set[int] = set()
    if oldest < latest:
        kept.update(_up_to(latest, either))
    for status in statuses:
        kept.update(_up_to(status.current, succeeded))
        kept.update(_up_to(status.target, either))
        kept.update(_up_to(status.failed_revision, failed))
    return frozenset(kept)


def _up_to(number: int, count: int) -> range:
    return range(max(number - count + 1, 1), number + 1)


def _in_use(step: RolloutStep, statuses: Sequence[NodeStatus]) -> frozenset[int]:
    """Revisions that run, are being installed, or that a node would fall back to."""
    history, observation = step.revised.history, step.observation
    numbers = {pod.revision for pod in observation.operands.values()}
    numbers.update(
        installer.revision
        for installer in observation.installers
        if not installer.has_ended and installer.node in step.snapshot.nodes
    )
    next_number = history[-1].number + 1 if history else 1
    for number in (*numbers, *(status.current for status in statuses), next_number):
        good = last_good(history, number)
        if good is not None:
            numbers.add(good.number)
    return frozenset(numbers)


def _with_failures(history: Sequence[Revision], keep: frozenset[int]) -> frozenset[int]:
    """`keep`, and the newest revisions which show that content in `keep` failed before."""
    content = {revision.hash for revision in history if revision.number in keep}
    content.update(*(revision.quarantined for revision in history if revision.number in keep))
    failures = {revision.hash: revision.number for revision in history if revision.bad}
    return keep | {number for content_hash, number in failures.items() if content_hash in content}
