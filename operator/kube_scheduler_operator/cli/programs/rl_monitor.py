"""`kube-scheduler-operator rl-monitor`: learn on which nodes pods fare well, for rl-priority."""

from __future__ import annotations

import argparse
import os
import sys


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "rl-monitor",
        help="learn on which nodes pods fare well, for the policy rl-priority",
        description="Watches pods, rates how they fare, and keeps the moving average for each type "
        "of pod (label podtype, app or name) and node in the ConfigMap rl-priority-state. SIGTERM "
        "ends it; what was learnt is taken up again.",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--namespace", default="default", help="whose pods to watch (default)")
    which.add_argument("--all-namespaces", action="store_true", help="watch all pods")
    parser.add_argument(
        "--state-namespace",
        default=os.environ.get("POD_NAMESPACE") or "default",
        help="of the ConfigMap; default: $POD_NAMESPACE or default",
    )
    parser.add_argument(
        "--mttf",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="a failure after so long is held against the node only half (600)",
    )
    parser.add_argument("--kubeconfig", default="", help="default: $KUBECONFIG, in-cluster, …")
    parser.add_argument("--logging-format", choices=("text", "json"), default="text")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Watch; returns when told to stop or if it cannot start."""
    import asyncio

    from ...base import klog
    from ...kube.errors import KubeError
    from ...programs.rl_monitor import program

    klog.configure(json_format=args.logging_format == "json")
    namespace = None if args.all_namespaces else args.namespace
    options = program.Options(namespace, args.state_namespace, args.kubeconfig, args.mttf)
    try:
        return asyncio.run(program.run(options))
    except KubeError as error:
        print(f"kube-scheduler-operator rl-monitor: {error}", file=sys.stderr)
        return 1
