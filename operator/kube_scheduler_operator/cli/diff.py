"""`kubectl scheduler diff`: two revisions side by side; exit codes as diff(1) has them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from . import common

if TYPE_CHECKING:
    from ..kube.client import ApiClient
    from ..platform import Platform
    from ..revision.history import Revision

FAILED = 2
"""The exit code when there is nothing to compare; 1 says that the revisions differ."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "diff",
        help="what is different between two revisions",
        description="Shows what revision M has instead of N: configuration and pod as YAML, flags "
        "one per line, image. Exit code 0: they are the same, 1: they differ, 2: trouble.",
    )
    parser.add_argument(
        "old",
        nargs="?",
        type=int,
        metavar="N",
        help="default: what the nodes run, or ran, before M",
    )
    parser.add_argument("new", nargs="?", type=int, metavar="M", help="default: the newest one")
    common.add_cluster_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the difference."""

    async def work(api: ApiClient, platform: Platform) -> int:
        nodes = common.nodes_by_revision(await common.kubescheduler(api))
        old, new = choose(await common.revisions(api, platform), nodes, args.old, args.new)
        lines = compare(old, new)
        sys.stdout.writelines(f"{line}\n" for line in lines)
        return 1 if lines else 0

    return common.run(args, work, failure=FAILED)


def choose(
    revisions: Sequence[Revision],
    nodes: Mapping[int, Sequence[str]],
    old: int | None,
    new: int | None,
) -> tuple[Revision, Revision]:
    """The two revisions that are meant.

    Raises:
        CommandError: one of them does not exist, or has lost its content.
    """
    after = common.find_revision(revisions, new) if new is not None else _newest(revisions)
    before = (
        common.find_revision(revisions, old)
        if old is not None
        else _predecessor(revisions, nodes, after)
    )
    for revision in (before, after):
        if not revision.complete:
            raise common.CommandError(
                f"revision {revision.number} has lost its ConfigMaps; choose another one"
            )
    return before, after


def compare(old: Revision, new: Revision) -> list[str]:
    """The lines of the difference."""
    from .compare import take_apart, unified

    labels = (f"revision-{old.number}", f"revision-{new.number}")
    return unified(take_apart(old.content), take_apart(new.content), labels)


def _newest(revisions: Sequence[Revision]) -> Revision:
    if not revisions:
        raise common.CommandError("there is no revision yet; see `kubectl scheduler status`")
    return revisions[-1]


def _predecessor(
    revisions: Sequence[Revision], nodes: Mapping[int, Sequence[str]], after: Revision
) -> Revision:
    """What nodes run that are not there yet, else what they last ran, else the one before."""
    from .. import names

    older = [revision for revision in revisions if revision.number < after.number]
    running = [revision for revision in older if revision.number in nodes]
    installed = [revision for revision in older if revision.outcome == names.OUTCOME_INSTALLED]
    for candidates in (running, installed, older):
        if candidates:
            return candidates[-1]
    raise common.CommandError(f"there is no revision before {after.number}; name two: diff N M")
