"""`kube-scheduler-operator rl-monitor`: learns the best nodes of pods for rl-priority."""

from __future__ import annotations

import argparse
import os

from ..console.output import print_remark


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "rl-monitor",
        description="Watches pods, rewards nodes for their success, and stores the moving average "
        "for each type of pod (label podtype, app or name) and node in the ConfigMap "
        "rl-priority-state. SIGTERM shuts it down; it continues from the ConfigMap at the next "
        "start.",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--namespace", default="default", help="namespace of the pods to watch (default)"
    )
    which.add_argument("--all-namespaces", action="store_true", help="watch all pods")
    parser.add_argument(
        "--state-namespace",
        default=os.environ.get("POD_NAMESPACE") or "default",
        help="namespace of the ConfigMap (default: $POD_NAMESPACE, then default)",
    )
    parser.add_argument(
        "--mttf",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="time after which a failure counts only half against its node (default: 600)",
    )
    parser.add_argument(
        "--kubeconfig",
        default="",
        help="default: $KUBECONFIG, then in-cluster",
    )
    parser.add_argument("--logging-format", choices=("text", "json"), default="text")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    import asyncio

    from ...base import klog
    from ...kube.errors import KubeError
    from ...scheduling.rl_monitor import monitor

    klog.configure(json_format=args.logging_format == "json")
    namespace = None if args.all_namespaces else args.namespace
    options = monitor.RlMonitorOptions(namespace, args.state_namespace, args.kubeconfig, args.mttf)
    try:
        return asyncio.run(monitor.run(options))
    except KubeError as error:
        print_remark(f"kube-scheduler-operator rl-monitor: {error}")
        return 1
