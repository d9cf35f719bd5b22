"""What schedulers ran and run: the answer of `history`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...base import names
from ...base.objects import annotation
from ...config.effective.control_plane.recorded_inputs import (
    UNRECORDED,
    RecordedInputs,
    changed_objects,
    own_edits,
    read_inputs,
)
from ...operator.controlplane.revision.history import Revision
from ..cluster.compare import changes, parse_revision
from ..cluster.revisions import outcome_of
from ..cluster.scheduler_contents import Content, readable


@dataclass(frozen=True, slots=True)
class RevisionEntry:
    """A revision of the scheduler in static pods."""

    revision: int
    created: str
    reason: str
    outcome: str
    message: str
    placements: str  # what the placement check found; empty: nothing
    ended: str
    nodes: Sequence[str]  # that run it
    hash: str
    compared_with: int | None
    changes: Sequence[str] | None  # in words; None: there is nothing to compare with
    edits: Sequence[str]  # that led to it


@dataclass(frozen=True, slots=True)
class ContentEntry:
    """A configuration of a SecondaryScheduler, identified by its hash."""

    configuration: str
    time: str
    outcome: str
    message: str
    runs: bool
    exists: bool
    compared_with: str | None
    changes: Sequence[str] | None  # in words; None: there is nothing to compare with
    edits: Sequence[str]  # that led to it


def summarize(
    revisions: Sequence[Revision], nodes: Mapping[int, Sequence[str]]
) -> list[RevisionEntry]:
    """List the revisions, latest first."""
    report = []
    before: Revision | None = None
    for revision in revisions:
        older = before if before and before.complete and revision.complete else None
        then, now = read_inputs(older.inputs) if older else None, read_inputs(revision.inputs)
        report.append(
            RevisionEntry(
                revision=revision.number,
                created=revision.status["metadata"].get("creationTimestamp", ""),
                reason=str((revision.status.get("data") or {}).get("reason", "")),
                outcome=outcome_of(revision),
                message=revision.message,
                placements=annotation(revision.status, names.PLACEMENT_CHECK_ANNOTATION),
                ended=annotation(revision.status, names.OUTCOME_TIME_ANNOTATION),
                nodes=list(nodes.get(revision.number, ())),
                hash=revision.hash,
                compared_with=older.number if older else None,
                changes=list(
                    changes(parse_revision(older.content), parse_revision(revision.content))
                )
                if older
                else None,
                edits=_edits(then, now) if older else [],
            )
        )
        before = revision
    return report[::-1]


_OTHER_INPUT: Final = f"no recorded edit; another input changed: {UNRECORDED}"


def _edits(then: RecordedInputs | None, now: RecordedInputs | None) -> list[str]:
    """List the edits that led from one to the other, or why the list would be empty."""
    if then is None or now is None:
        return ["not recorded"]
    edits = [*own_edits(then, now), *(edit.sentence for edit in changed_objects(then, now))]
    return edits or [_OTHER_INPUT]


def summarize_contents(contents: Sequence[Content]) -> list[ContentEntry]:
    """List the contents of a SecondaryScheduler, newest first."""
    report = []
    before: Content | None = None
    for content in reversed(contents):
        older = before if content.parsed is not None else None
        report.append(
            ContentEntry(
                configuration=content.hash,
                time=content.entry.time,
                outcome=content.entry.outcome,
                message=content.entry.message,
                runs=content.runs,
                exists=content.parsed is not None,
                compared_with=older.hash if older else None,
                changes=list(changes(readable(older), readable(content))) if older else None,
                edits=_edits(older.inputs, content.inputs) if older else [],
            )
        )
        before = content if content.parsed is not None else before
    return report[::-1]
