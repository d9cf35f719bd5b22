"""`kubectl scheduler adopt`: what adoption does with a cluster, and its configuration as objects.

The operator adopts by itself when it is installed; this command changes nothing.
"""

from __future__ import annotations

import argparse

from ..console.flags import add_cluster_flags, add_output_flag


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "adopt",
        description="Shows what adoption does with the schedulers that a cluster has: every "
        "setting of their static Pods, what is kept, what blocks, and how nodes differ. With "
        "--as-profiles, prints the adopted configuration file as objects for kubectl apply. The "
        "operator itself adopts when it is installed; this command changes nothing. The exit code "
        "is 0 if everything is adopted, 1 if something blocks or is not visible, 2 for invalid "
        "usage.",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--dry-run", action="store_true", help="show what adoption does, setting by setting"
    )
    what.add_argument(
        "--as-profiles",
        action="store_true",
        help="print the adopted profiles and extenders as SchedulerProfiles and SchedulerExtenders",
    )
    parser.add_argument(
        "-f",
        "--file",
        action="append",
        default=[],
        metavar="[NODE=]PATH",
        help="a configuration file or a manifest that was copied from a node, or a directory with "
        "both; repeat it for each. With manifests, no cluster is read. A configuration file "
        "without NODE is that of all nodes",
    )
    add_cluster_flags(parser)
    add_output_flag(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from ..adoption.output import adopt

    return adopt(args)
