"""`kubectl scheduler history`: the revisions with their reasons, outcomes and changes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ...base.field_types import document_of
from ...base.platform import Platform
from ...kube.api import Api, Object
from ..answers.history import ContentEntry, RevisionEntry, summarize, summarize_contents
from ..cluster.connection import connected
from ..cluster.operator_objects import get_kubescheduler
from ..cluster.revisions import list_revisions, nodes_by_revision
from ..cluster.scheduler_contents import find_scheduler, read_contents
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
        contents = summarize_contents(await read_contents(api, scheduler))
        document, text = document_of(contents), render_contents(scheduler, contents)
    else:
        kubescheduler = await get_kubescheduler(api)
        report = summarize(await list_revisions(api, platform), nodes_by_revision(kubescheduler))
        document, text = document_of(report), render(report)
    print_document(document, args.output, text)
    return 0


def render(report: Sequence[RevisionEntry]) -> str:
    if not report:
        return "No revision exists yet; see `kubectl scheduler status`."
    lines = []
    for revision in report:
        nodes = f"   runs on {', '.join(revision.nodes)}" if revision.nodes else ""
        head = f"{revision.revision:<4} {revision.created}  {revision.outcome}{nodes}"
        lines.append(head.rstrip())
        if revision.message:
            lines += [f"     {line}" for line in revision.message.splitlines()]
        if revision.placements:
            lines.append(f"     placements: {revision.placements}")
        # OpenShift's form: sentences without a space between them.
        made_by = ", ".join(each.strip() for each in revision.reason.split(","))
        if revision.changes is None:
            lines.append(f"     the oldest one that is known; it was made because {made_by}")
        elif revision.changes:
            if revision.compared_with != revision.revision - 1:
                lines.append(f"     compared with revision {revision.compared_with}:")
            lines += [f"     - {change}" for change in revision.changes]
            lines += [f"     by: {edit}" for edit in revision.edits]
        else:
            lines.append(f"     same content as revision {revision.compared_with}: {made_by}")
    return text_of(lines)


def render_contents(scheduler: Object, report: Sequence[ContentEntry]) -> str:
    name = scheduler["metadata"]["name"]
    if not report:
        return f"SecondaryScheduler {name} has run no configuration yet."
    lines = [f"SecondaryScheduler {name}"]
    for content in report:
        runs = "   runs" if content.runs else ""
        lines.append(f"{content.configuration}  {content.time}  {content.outcome}{runs}")
        lines += [f"     {line}" for line in content.message.splitlines()]
        if not content.exists:
            lines.append("     its ConfigMap no longer exists")
        elif content.changes is None:
            lines.append("     the oldest one that is known")
        elif content.changes:
            lines.append(f"     compared with {content.compared_with}:")
            lines += [f"     - {change}" for change in content.changes]
            lines += [f"     by: {edit}" for edit in content.edits]
        else:
            lines.append(f"     the scheduler works as with {content.compared_with}")
    return text_of(lines)
