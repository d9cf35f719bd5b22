"""Two revisions, or two configurations of a SecondaryScheduler, compared: the answer of `diff`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...base import names
from ...base.platform import Platform
from ...kube.api import Api
from ...operator.controlplane.revision.history import Revision
from ..cluster.compare import ParsedRevision, changes, parse_revision, unified
from ..cluster.operator_objects import get_kubescheduler
from ..cluster.revisions import find_revision, list_revisions, nodes_by_revision
from ..cluster.scheduler_contents import (
    Content,
    find_content,
    find_scheduler,
    read_contents,
    readable,
    rolled_out_content,
)
from ..console.errors import CommandError


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences of two revisions."""

    old: str
    new: str
    words: Sequence[str]  # one sentence for each change
    lines: Sequence[str]  # a unified diff


async def compare(
    api: Api, platform: Platform, scheduler_name: str | None, old: str | None, new: str | None
) -> Comparison:
    """Compare two revisions; None for the defaults of `diff`.

    Raises:
        CommandError: one of them does not exist, or is not complete.
    """
    scheduler = await find_scheduler(api, platform, scheduler_name)
    if scheduler is not None:
        contents = await read_contents(api, scheduler)
        before, after, labels = choose_contents(contents, old, new)
    else:
        nodes = nodes_by_revision(await get_kubescheduler(api))
        one, other = choose(await list_revisions(api, platform), nodes, old, new)
        labels = (f"revision-{one.number}", f"revision-{other.number}")
        before, after = parse_revision(one.content), parse_revision(other.content)
    lines = list(unified(before, after, labels))
    return Comparison(*labels, changes(before, after), lines)


def complete(revision: Revision) -> Revision:
    if not revision.complete:
        raise CommandError(
            f"ConfigMaps of revision {revision.number} are missing; choose another one"
        )
    return revision


def choose(
    revisions: Sequence[Revision],
    nodes: Mapping[int, Sequence[str]],
    old: str | None,
    new: str | None,
) -> tuple[Revision, Revision]:
    """Choose the two revisions to compare."""
    after = complete(_newest(revisions) if new is None else find_revision(revisions, new))
    before = _predecessor(revisions, nodes, after) if old is None else find_revision(revisions, old)
    return complete(before), after


def choose_contents(
    contents: Sequence[Content], old: str | None, new: str | None
) -> tuple[ParsedRevision, ParsedRevision, tuple[str, str]]:
    """Choose the two contents of a SecondaryScheduler to compare, and their labels."""
    after = find_content(contents, new) if new is not None else rolled_out_content(contents)
    if old is not None:
        before = find_content(contents, old)
    else:
        older = contents[contents.index(after) + 1 :]
        healthy = [content for content in older if content.parsed and not content.entry.bad]
        if not healthy:
            raise CommandError(
                f"no healthy configuration before {after.hash} exists; specify two: diff N M"
            )
        before = healthy[0]
    return readable(before), readable(after), (label_of(before), label_of(after))


def label_of(content: Content) -> str:
    return f"configuration-{content.hash}"


def _newest(revisions: Sequence[Revision]) -> Revision:
    if not revisions:
        raise CommandError("no revision exists yet; see `kubectl scheduler status`")
    return revisions[-1]


def _predecessor(
    revisions: Sequence[Revision], nodes: Mapping[int, Sequence[str]], after: Revision
) -> Revision:
    """Return the older revision that nodes run, else the last installed, else the previous."""
    older = [revision for revision in revisions if revision.number < after.number]
    running = [revision for revision in older if revision.number in nodes]
    installed = [revision for revision in older if revision.outcome == names.OUTCOME_INSTALLED]
    for candidates in (running, installed, older):
        if candidates:
            return candidates[-1]
    raise CommandError(f"no revision before {after.number} exists; specify two: diff N M")
