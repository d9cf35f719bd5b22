"""`kubectl scheduler simulate`: where pods would be placed, in the cluster or in a changed one."""

from __future__ import annotations

import argparse
from typing import Final

from ...config.language.merging.presets import PRESETS
from ..console.errors import prints_errors
from ..console.flags import (
    add_cluster_flags,
    add_files_flag,
    add_nodes_flag,
    add_output_flag,
    add_repeatable,
)
from ..simulation.flags import add_simulation_flags

FAILED: Final = 2
_REPEAT: Final = 5
_DESCRIPTION: Final = """\
Shows whether and where pods would be placed: those of a workload that does not exist yet, those of
drained or lost nodes, those that wait, or all that run. A kube-scheduler decides, on this machine
or in a Job in the cluster, over a copy of the cluster in memory; nothing else is written to the
cluster. Equal scores are decided by chance, so the simulation is repeated, and each figure is a
median with its range. Options can be combined.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "simulate",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_files_flag(
        parser,
        "workloads to place: Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, CronJob, "
        "Pod, PodTemplate, or any kind with spec.template; other objects, such as claims, are "
        "added to the world; - for standard input",
    )
    number = parser.add_mutually_exclusive_group()
    number.add_argument(
        "--replicas",
        type=int,
        metavar="N",
        help="number of pods of the workload (default: its spec.replicas)",
    )
    number.add_argument(
        "--max", action="store_true", help="place pods of the workload until one does not fit"
    )
    parser.add_argument(
        "--profile",
        dest="profiles",
        action="append",
        default=[],
        choices=PRESETS,
        metavar="NAME",
        help=f"compare with this profile as default-scheduler: {', '.join(PRESETS)}; can be "
        "repeated, which compares the chosen ones with each other",
    )
    add_simulation_flags(parser, config=False)
    add_repeatable(
        parser,
        "--config",
        "FILE",
        "compare with this KubeSchedulerConfiguration",
        dest="configs",
    )
    add_repeatable(parser, "--without-node", "NODE", "a node that is gone, with its pods")
    add_repeatable(
        parser,
        "--drain",
        "NODE",
        "a node that is cordoned and drained; PodDisruptionBudgets are respected, and pods of "
        "DaemonSets stay",
    )
    add_repeatable(
        parser,
        "--add-nodes",
        "NxNODE",
        "N new nodes like an existing one, with its DaemonSets' pods: 3xworker-1",
    )
    parser.add_argument(
        "--replay",
        action="store_true",
        help="place all running pods again, in the order of their creation; those of "
        "DaemonSets stay",
    )
    parser.add_argument(
        "--repeat",
        type=int,
        default=_REPEAT,
        metavar="N",
        help="number of runs (default: %(default)s)",
    )
    parser.add_argument("--svg", metavar="FILE", help="also draw how full the nodes are")
    add_nodes_flag(parser)
    add_cluster_flags(parser)
    add_output_flag(parser)
    parser.set_defaults(run=run)


@prints_errors(FAILED)
def run(args: argparse.Namespace) -> int:
    from ..simulation.question import simulate

    return simulate(args, FAILED)
