"""`kubectl scheduler pending`: all waiting pods by cause, and what would help."""

from __future__ import annotations

import argparse
from typing import Final

from ..console.errors import prints_errors
from ..console.flags import add_cluster_flags, add_output_flag
from ..simulation.flags import add_simulation_flags

_FIXES: Final = 5


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "pending",
        description="Shows all pods without a node by cause: how many, since when, and whose they "
        "are; and the pods that a ReplicaSet may not create, for example because of a quota. For "
        "the largest groups, changes of the oldest pod are tried, as `why` does. A kube-scheduler "
        "decides, on this machine or in a Job in the cluster, over a copy of the cluster in "
        "memory; nothing else is written to the cluster.",
    )
    scope = parser.add_mutually_exclusive_group()
    scope.add_argument("-n", "--namespace", help="only the pods of this namespace")
    scope.add_argument(
        "-A", "--all-namespaces", action="store_true", help="all namespaces (the default)"
    )
    parser.add_argument(
        "--fixes",
        type=int,
        default=_FIXES,
        metavar="N",
        help="number of groups for which changes are tried (default: %(default)s)",
    )
    add_simulation_flags(parser)
    add_cluster_flags(parser, several=True)
    add_output_flag(parser)
    parser.set_defaults(run=run)


@prints_errors()
def run(args: argparse.Namespace) -> int:
    from ..simulation.waiting import show_waiting

    return show_waiting(args)
