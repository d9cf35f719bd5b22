"""`kubectl scheduler report`: the pages of `console` as one file, to attach to a ticket."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from ...base.platform import Platform
from ...config.language.merging.presets import PRESETS
from ..cluster.connection import connected
from ..console.errors import UsageError, prints_errors
from ..console.flags import add_cluster_flags
from ..console.output import print_remark
from ..simulation.flags import add_kube_scheduler_flags

if TYPE_CHECKING:
    from ...kube.client import ApiClient


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "report",
        description="Writes what the pages of `console` show as one HTML file to standard output: "
        "the state of the scheduler, rollouts, the configuration, nodes, waiting Pods by cause and "
        "what would help. The file has no script and loads nothing. It has names of nodes, Pods "
        "and namespaces: look at it before you publish it. A kube-scheduler on this machine "
        "decides about waiting Pods. The exit code is 1 if a section is not known. Nothing is "
        "written to the cluster unless --in-cluster is given.",
    )
    parser.add_argument(
        "--profile",
        default="",
        choices=PRESETS,
        metavar="NAME",
        help="also compare the placements of today with those of this profile: "
        f"{', '.join(PRESETS)}",
    )
    add_kube_scheduler_flags(parser)
    add_cluster_flags(parser)
    parser.set_defaults(run=run, config=None, feature_gates=[], from_files=[])


@prints_errors()
def run(args: argparse.Namespace) -> int:
    if sys.stdout.isatty():
        raise UsageError("a report is a file: kubectl scheduler report > scheduler.html")
    return connected(_report)(args)


async def _report(api: ApiClient, platform: Platform, args: argparse.Namespace) -> int:
    # Loaded here, so that `--help` is instant.
    from ..web.page import ConsoleCluster
    from ..web.report import report

    access = await api.credentials.access()
    args.context = access.context  # commands to copy name it: the reader's current one is another
    where = access.context or access.host
    html, unknown = await report(ConsoleCluster(api, platform, args), where, args.profile)
    sys.stdout.write(html)
    for each in unknown:
        print_remark(f"note: {each}")
    return 1 if unknown else 0
