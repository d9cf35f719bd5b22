"""The flags of commands that simulate."""

from __future__ import annotations

import argparse
from typing import Final

from ..console.flags import add_repeatable

_SECONDS: Final = 120


def add_simulation_flags(parser: argparse.ArgumentParser, *, config: bool = True) -> None:
    """Add the flags of all simulating commands; `--config` only with `config`."""
    add_repeatable(
        parser,
        "--from-files",
        "PATH",
        "read the cluster from files or directories instead: the output of `kubectl get -o yaml` "
        "or `-o json` for nodes, pods and the other kinds that kube-scheduler reads, or a "
        "must-gather",
    )
    if config:
        parser.add_argument(
            "--config",
            metavar="FILE",
            help="simulate with this KubeSchedulerConfiguration (default: that of the cluster or "
            "of the files, otherwise kube-scheduler's defaults)",
        )
    else:
        parser.set_defaults(config=None)
    add_kube_scheduler_flags(parser)
    add_repeatable(
        parser,
        "--feature-gates",
        "NAME=true",
        "feature gates for kube-scheduler, as in its own flag",
    )


def add_kube_scheduler_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that determine which kube-scheduler runs, and for how long."""
    parser.add_argument(
        "--kube-scheduler",
        metavar="PATH",
        help="the kube-scheduler of this machine to run (default: $KUBEBUILDER_ASSETS, PATH, the "
        "build cache)",
    )
    _add_where_flags(parser)
    parser.add_argument(
        "--timeout",
        type=float,
        default=_SECONDS,
        metavar="SECONDS",
        help="limit of the simulation (default: %(default)s)",
    )


def _add_where_flags(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--in-cluster",
        action="store_true",
        help="run kube-scheduler in the cluster, in a Job with the image of its scheduler "
        "(default: only if this machine does not have the cluster's version of it, or the "
        "configuration has plugins that are not part of Kubernetes)",
    )
    where.add_argument(
        "--local", action="store_true", help="run kube-scheduler on this machine, never in a Job"
    )
    parser.add_argument(
        "--job-namespace",
        metavar="NAMESPACE",
        help="namespace of the Job (default: that of the operator)",
    )
    parser.add_argument(
        "--job-node", metavar="NODE", help="node of the Job (default: one of the control plane)"
    )
