"""`kubectl scheduler nodes`: what nodes have free, the biggest Pod that fits, and fragmentation."""

from __future__ import annotations

import argparse

from ...simulate.node_answer import SORTS
from ..console.errors import prints_errors
from ..console.flags import add_cluster_flags, add_nodes_flag, add_output_flag, add_repeatable


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "nodes",
        description="Shows for each node what is requested and free, its taints, zone and state, "
        "and the load that the load annotator measured, the worst first; for the nodes with the "
        "same taints the biggest Pod that still fits, and how fragmented the rest is. Requests "
        "are counted as kube-scheduler counts them. Nothing is written to the cluster.",
    )
    parser.add_argument(
        "--fits",
        metavar="REQUESTS",
        help="count the Pods with these requests that fit, e.g. cpu=500m,memory=1Gi, on each node "
        "and in all; fragmentation is for them as well (default: for the Pods that run)",
    )
    parser.add_argument(
        "--sort",
        choices=SORTS,
        default=SORTS[0],
        help="state: not ready, unschedulable, then the fullest; cpu, memory, pods: the highest "
        "requests first; load: the highest first; fits: the fewest first (default: %(default)s)",
    )
    parser.add_argument(
        "-n",
        "--namespace",
        default="",
        help="count the Pods of this namespace alone, for users who may list no others; what is "
        "free is not known then (default: all namespaces)",
    )
    add_nodes_flag(parser)
    add_repeatable(
        parser,
        "--from-files",
        "PATH",
        "read the nodes from files or directories instead: the output of `kubectl get -o yaml` or "
        "`-o json` for nodes and pods, or a must-gather",
    )
    add_cluster_flags(parser, several=True)
    add_output_flag(parser)
    parser.set_defaults(run=run)


@prints_errors()
def run(args: argparse.Namespace) -> int:
    from ..simulation.nodes import show_nodes

    return show_nodes(args)
