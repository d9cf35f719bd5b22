"""`kubectl scheduler why`: why a pod waits and what would help, or why it is where it is.

The answer comes from kube-scheduler itself, which runs over a copy of the cluster: on this machine
or in a Job.
"""

from __future__ import annotations

import argparse

from ..console.errors import prints_errors
from ..console.flags import add_cluster_flags, add_nodes_flag, add_output_flag
from ..console.pod_reference import add_pod_flags
from ..simulation.flags import add_simulation_flags


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "why",
        aliases=["explain"],
        description="Shows why a pod is Pending and what would help, or why a running pod is on "
        "its node: the scores of all nodes by plugin. A kube-scheduler decides, on this machine or "
        "in a Job in the cluster, over a copy of the cluster in memory; nothing else is written to "
        "the cluster. Every change that is shown was tried with it. Environment variables, "
        "arguments, Secrets and ConfigMaps are not copied. Of agents of SchedulerExtenders it also "
        "shows what they decided when the pod was last scheduled; they remember the latest pods "
        "(200 by default).",
    )
    add_pod_flags(parser)
    parser.add_argument(
        "--url",
        help="show only what this extender remembers, without a cluster, e.g. "
        "http://127.0.0.1:5401",
    )
    parser.add_argument(
        "--details",
        action="store_true",
        help="also show the current input of each policy of an extender for each node",
    )
    add_nodes_flag(parser)
    add_simulation_flags(parser)
    add_cluster_flags(parser)
    add_output_flag(parser)
    parser.set_defaults(run=run)


@prints_errors()
def run(args: argparse.Namespace) -> int:
    from ..simulation.explanation import show_explanation

    return show_explanation(args)
