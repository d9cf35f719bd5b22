"""`kubectl scheduler history`: the revisions with their reasons, outcomes and changes."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...base import names
from ...base.objects import annotation
from ...base.platform import Platform
from ...config.effective.control_plane.recorded_inputs import (
    UNRECORDED,
    RecordedInputs,
    changed_objects,
    own_edits,
    read_inputs,
)
from ...kube.api import Api, Object
from ...operator.controlplane.revision.history import Revision
from ..cluster.compare import changes, parse_revision
from ..cluster.connection import connected
from ..cluster.operator_objects import get_kubescheduler
from ..cluster.revisions import list_revisions, nodes_by_revision, outcome_of
from ..cluster.scheduler_contents import Content, find_scheduler, read_contents, readable
from ..console.flags import add_cluster_flags, add_output_flag, add_scheduler_flag
from ..console.output import print_document, text_of


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "history",
        description="Lists the existing revisions, latest first, with their time, reason, outcome, "
        "nodes and changes. A SecondaryScheduler has configurations, identified by hash, instead "
        "of revisions. Use `diff` for details.",
    )
    add_scheduler_flag(parser)
    add_cluster_flags(parser)
    add_output_flag(parser)
    parser.set_defaults(run=connected(_list))


async def _list(api: Api, platform: Platform, args: argparse.Namespace) -> int:
    scheduler = await find_scheduler(api, platform, args.scheduler)
    if scheduler is not None:
        report = summarize_contents(await read_contents(api, scheduler))
        text = render_contents(scheduler, report)
    else:
        kubescheduler = await get_kubescheduler(api)
        report = summarize(await list_revisions(api, platform), nodes_by_revision(kubescheduler))
        text = render(report)
    print_document(report, args.output, text)
    return 0


def summarize(
    revisions: Sequence[Revision], nodes: Mapping[int, Sequence[str]]
) -> list[dict[str, Any]]:
    """List the revisions as `-o json` prints them, latest first."""
    report = []
    before: Revision | None = None
    for revision in revisions:
        older = before if before and before.complete and revision.complete else None
        then, now = read_inputs(older.inputs) if older else None, read_inputs(revision.inputs)
        report.append(
            {
                "revision": revision.number,
                "created": revision.status["metadata"].get("creationTimestamp", ""),
                "reason": str((revision.status.get("data") or {}).get("reason", "")),
                "outcome": outcome_of(revision),
                "message": revision.message,
                "placements": annotation(revision.status, names.PLACEMENT_CHECK_ANNOTATION),
                "ended": annotation(revision.status, names.OUTCOME_TIME_ANNOTATION),
                "nodes": list(nodes.get(revision.number, ())),
                "hash": revision.hash,
                "comparedWith": older.number if older else None,
                "changes": list(
                    changes(parse_revision(older.content), parse_revision(revision.content))
                )
                if older
                else None,
                "edits": _edits(then, now) if older else [],
            }
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


def render(report: Sequence[Mapping[str, Any]]) -> str:
    if not report:
        return "No revision exists yet; see `kubectl scheduler status`."
    lines = []
    for revision in report:
        nodes = f"   runs on {', '.join(revision['nodes'])}" if revision["nodes"] else ""
        head = f"{revision['revision']:<4} {revision['created']}  {revision['outcome']}{nodes}"
        lines.append(head.rstrip())
        if revision["message"]:
            lines += [f"     {line}" for line in revision["message"].splitlines()]
        if revision["placements"]:
            lines.append(f"     placements: {revision['placements']}")
        if revision["changes"] is None:
            lines.append(f"     the oldest one that is known: {revision['reason']}")
        elif revision["changes"]:
            if revision["comparedWith"] != revision["revision"] - 1:
                lines.append(f"     compared with revision {revision['comparedWith']}:")
            lines += [f"     - {change}" for change in revision["changes"]]
            lines += [f"     by: {edit}" for edit in revision["edits"]]
        else:
            lines.append(
                f"     same content as revision {revision['comparedWith']}: {revision['reason']}"
            )
    return text_of(lines)


def summarize_contents(contents: Sequence[Content]) -> list[dict[str, Any]]:
    """List the contents of a SecondaryScheduler as `-o json` prints them, newest first."""
    report = []
    before: Content | None = None
    for content in reversed(contents):
        older = before if content.parsed is not None else None
        report.append(
            {
                "configuration": content.hash,
                "time": content.entry.time,
                "outcome": content.entry.outcome,
                "message": content.entry.message,
                "runs": content.runs,
                "exists": content.parsed is not None,
                "comparedWith": older.hash if older else None,
                "changes": list(changes(readable(older), readable(content))) if older else None,
                "edits": _edits(older.inputs, content.inputs) if older else [],
            }
        )
        before = content if content.parsed is not None else before
    return report[::-1]


def render_contents(scheduler: Object, report: Sequence[Mapping[str, Any]]) -> str:
    name = scheduler["metadata"]["name"]
    if not report:
        return f"SecondaryScheduler {name} has run no configuration yet."
    lines = [f"SecondaryScheduler {name}"]
    for content in report:
        runs = "   runs" if content["runs"] else ""
        lines.append(f"{content['configuration']}  {content['time']}  {content['outcome']}{runs}")
        lines += [f"     {line}" for line in content["message"].splitlines()]
        if not content["exists"]:
            lines.append("     its ConfigMap no longer exists")
        elif content["changes"] is None:
            lines.append("     the oldest one that is known")
        elif content["changes"]:
            lines.append(f"     compared with {content['comparedWith']}:")
            lines += [f"     - {change}" for change in content["changes"]]
            lines += [f"     by: {edit}" for edit in content["edits"]]
        else:
            lines.append(f"     the scheduler works as with {content['comparedWith']}")
    return text_of(lines)
