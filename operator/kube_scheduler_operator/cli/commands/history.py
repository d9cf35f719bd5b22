"""`kubectl scheduler history`: the revisions, why each was made, how it ended, what it changed."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..lib import common

if TYPE_CHECKING:
    from ...base.platform import Platform
    from ...controlplane.revision.history import Revision
    from ...kube.client import ApiClient


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "history",
        help="the revisions, and what each one changed",
        description="Lists the revisions that are kept, newest first: when and why each was made, "
        "how it ended, who runs it and what it changed. `diff` has the details.",
    )
    common.add_cluster_flags(parser)
    common.add_output_flag(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the list."""

    async def work(api: ApiClient, platform: Platform) -> int:
        kubescheduler = await common.kubescheduler(api)
        found = await common.revisions(api, platform)
        report = summarize(found, common.nodes_by_revision(kubescheduler))
        if args.output == "text":
            print(render(report))
        else:
            common.print_document(report, args.output)
        return 0

    return common.run(args, work)


def summarize(
    revisions: Sequence[Revision], nodes: Mapping[int, Sequence[str]]
) -> list[dict[str, Any]]:
    """The list as data, newest first: also what `-o json` prints.

    Args:
        revisions: oldest first.
        nodes: who runs which.
    """
    from ...base import names
    from ...base.objects import annotation
    from ...controlplane.revision.inputs import object_edits, read_inputs
    from ..lib.compare import changes, take_apart

    report = []
    before: Revision | None = None
    for revision in revisions:
        told: list[str] | None = None
        edits: list[str] = []
        if before is not None and before.complete and revision.complete:
            told = list(changes(take_apart(before.content), take_apart(revision.content)))
            then, now = read_inputs(before.inputs), read_inputs(revision.inputs)
            edits = list(object_edits(then, now)) if then is not None and now is not None else []
        report.append(
            {
                "revision": revision.number,
                "created": revision.status["metadata"].get("creationTimestamp", ""),
                "reason": str((revision.status.get("data") or {}).get("reason", "")),
                "outcome": revision.outcome or "on its way",
                "message": revision.message,
                "ended": annotation(revision.status, names.OUTCOME_TIME_ANNOTATION),
                "nodes": list(nodes.get(revision.number, ())),
                "hash": revision.hash,
                "comparedWith": before.number if told is not None and before else None,
                "changes": told,
                "edits": edits,
            }
        )
        before = revision
    return report[::-1]


def render(report: Sequence[Mapping[str, Any]]) -> str:
    """The list as text."""
    if not report:
        return "There is no revision yet; `kubectl scheduler status` says what the operator does."
    lines = []
    for entry in report:
        nodes = f"   runs on {', '.join(entry['nodes'])}" if entry["nodes"] else ""
        lines.append(
            f"{entry['revision']:<4} {entry['created']}  {entry['outcome']}{nodes}".rstrip()
        )
        if entry["message"]:
            lines += [f"     {line}" for line in entry["message"].splitlines()]
        if entry["changes"] is None:
            lines.append(f"     because: {entry['reason']}")
        elif entry["changes"]:
            if entry["comparedWith"] != entry["revision"] - 1:
                lines.append(f"     against revision {entry['comparedWith']}:")
            lines += [f"     - {change}" for change in entry["changes"]]
            lines += [f"     by: {edit}" for edit in entry["edits"]]
        else:
            lines.append(
                f"     the same content as revision {entry['comparedWith']}: {entry['reason']}"
            )
    return "\n".join(lines)
