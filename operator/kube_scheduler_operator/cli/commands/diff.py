"""`kubectl scheduler diff`: two revisions, or a file and the cluster; exit codes as diff(1)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ..lib import common
from ..lib.diff_load_policy import differences
from .validate import UsageError

if TYPE_CHECKING:
    from ...base.platform import Platform
    from ...controlplane.revision.history import Revision
    from ...kube.client import ApiClient
    from ..lib.compare import Made

FAILED = 2
"""The exit code when there is nothing to compare; 1 says that the revisions differ."""

BOTH: Final = "both"
WORDS: Final = "words"
LINES: Final = "lines"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "diff",
        help="what is different between two revisions, or would be with a file",
        description="Shows what revision M has instead of N, or with -f what the file would make "
        "of N: first in words, by the effect on plugins, weights, arguments, flags, then line by "
        "line: configuration and pod as YAML, flags one per line, image. Nothing is changed. Exit "
        "code 0: they are the same, 1: they differ, 2: trouble.",
    )
    parser.add_argument(
        "old",
        nargs="?",
        type=int,
        metavar="N",
        help="default: what the nodes run, or ran, before M; with -f what they run",
    )
    parser.add_argument("new", nargs="?", type=int, metavar="M", help="default: the newest one")
    parser.add_argument(
        "-f",
        "--file",
        dest="files",
        action="append",
        default=[],
        metavar="FILE",
        help="Scheduler, KubeScheduler, SchedulerProfiles and SchedulerExtenders, a "
        "SecondaryScheduler, a LoadPolicy, or a KubeSchedulerConfiguration; - for standard input; "
        "can be repeated",
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=(BOTH, WORDS, LINES),
        default=BOTH,
        help="lines alone are a patch (default: both)",
    )
    common.add_cluster_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the difference."""
    if args.files and args.new is not None:
        sys.stderr.write("error: -f FILE takes the place of M; give N alone or none\n")
        return FAILED

    async def work(api: ApiClient, platform: Platform) -> int:
        nodes = common.nodes_by_revision(await common.kubescheduler(api))
        revisions = await common.revisions(api, platform)
        if args.files:
            return await _with_files(api, platform, args, revisions, nodes)
        old, new = choose(revisions, nodes, args.old, args.new)
        return _print(*_pair(old, new), args.output)

    return common.run(args, work, failure=FAILED)


async def _with_files(
    api: ApiClient,
    platform: Platform,
    args: argparse.Namespace,
    revisions: Sequence[Revision],
    nodes: Mapping[int, Sequence[str]],
) -> int:
    from ..lib.proposal import LOAD, documents, proposed, proposed_secondary

    try:
        given = documents(args.files)
    except UsageError as error:
        raise common.CommandError(str(error)) from None
    name = "stdin" if args.files == ["-"] else args.files[0]
    if LOAD in given.single:
        if args.old is not None:
            raise common.CommandError("a LoadPolicy has no revisions; leave N out")
        words, lines = await differences(api, platform, given.single[LOAD], name.lstrip("/"))
        return _say(words, lines, args.output)
    old = running(revisions, nodes) if args.old is None else find(revisions, args.old)
    if given.scheduler:
        if args.old is not None:
            raise common.CommandError("a SecondaryScheduler has no revisions; leave N out")
        before, after, called = await proposed_secondary(api, platform, given, old)
        return _print(before, after, (called, name.lstrip("/")), args.output)
    before, after = await proposed(api, platform, given, old)
    return _print(before, after, (f"revision-{old.number}", name.lstrip("/")), args.output)


def _pair(old: Revision, new: Revision) -> tuple[Made, Made, tuple[str, str]]:
    from ..lib.compare import take_apart

    labels = (f"revision-{old.number}", f"revision-{new.number}")
    return take_apart(old.content), take_apart(new.content), labels


def _print(before: Made, after: Made, labels: tuple[str, str], output: str) -> int:
    """1 if there is a difference, else 0."""
    from ..lib.compare import changes, unified

    return _say(changes(before, after), unified(before, after, labels), output)


def _say(words: Sequence[str], lines: Sequence[str], output: str) -> int:
    """1 if there is a difference, else 0."""
    if output == WORDS:
        _write(words)
    elif output == LINES:
        _write(lines)
    else:
        # A patch may have anything before its first file; what begins with # cannot be one.
        _write(f"# {sentence}" for sentence in words)
        _write(lines)
    return 1 if lines or words else 0


def _write(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)


def running(revisions: Sequence[Revision], nodes: Mapping[int, Sequence[str]]) -> Revision:
    """The newest revision that a node runs.

    Raises:
        CommandError: there is none.
    """
    for revision in reversed(revisions):
        if revision.number in nodes and revision.complete:
            return revision
    raise common.CommandError("no node runs a revision yet; see `kubectl scheduler status`")


def find(revisions: Sequence[Revision], number: int) -> Revision:
    """The revision with that number and its content.

    Raises:
        CommandError: it is not there, or has lost its content.
    """
    revision = common.find_revision(revisions, number)
    if not revision.complete:
        raise common.CommandError(f"revision {number} has lost its ConfigMaps; choose another one")
    return revision


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
    after = find(revisions, new if new is not None else _newest(revisions).number)
    before = old if old is not None else _predecessor(revisions, nodes, after).number
    return find(revisions, before), after


def _newest(revisions: Sequence[Revision]) -> Revision:
    if not revisions:
        raise common.CommandError("there is no revision yet; see `kubectl scheduler status`")
    return revisions[-1]


def _predecessor(
    revisions: Sequence[Revision], nodes: Mapping[int, Sequence[str]], after: Revision
) -> Revision:
    """What nodes run that are not there yet, else what they last ran, else the one before."""
    from ...base import names

    older = [revision for revision in revisions if revision.number < after.number]
    running = [revision for revision in older if revision.number in nodes]
    installed = [revision for revision in older if revision.outcome == names.OUTCOME_INSTALLED]
    for candidates in (running, installed, older):
        if candidates:
            return candidates[-1]
    raise common.CommandError(f"there is no revision before {after.number}; name two: diff N M")
