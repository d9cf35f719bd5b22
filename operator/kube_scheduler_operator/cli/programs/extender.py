"""`kube-scheduler-operator extender`: an HTTP extender for kube-scheduler."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ..console.output import print_remark


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "extender",
        description="Serves policies to kube-scheduler as an HTTP extender (extender API v1). "
        "Supports HTTP_PORT, LOG_LEVEL and the environment variables of kube-safe-scheduler's "
        "agents. Reloads FILE when it changes; SIGTERM shuts it down gracefully.",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--config", type=Path, metavar="FILE", help="the configuration, YAML or JSON")
    what.add_argument(
        "--policy",
        action="append",
        metavar="NAME",
        help="serve this policy with its defaults (repeatable)",
    )
    parser.add_argument("--port", type=int, help="default: $HTTP_PORT, then FILE, then 5401")
    parser.add_argument(
        "--kubeconfig",
        default="",
        help="default: $KUBECONFIG, then in-cluster, then ~/.kube/config",
    )
    parser.add_argument(
        "--no-watch",
        action="store_true",
        help="do not connect to the API server; use the nodes in the requests "
        "(nodeCacheCapable: false)",
    )
    parser.add_argument("--logging-format", choices=("text", "json"), default="text")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from ...base import klog
    from ...scheduling.extender import config, program

    klog.configure(json_format=args.logging_format == "json")
    if args.port is not None and not 0 <= args.port <= 65535:
        message = f"--port {args.port} is not a port from 0 to 65535"
        print_remark(f"kube-scheduler-operator extender: {message}")
        return 2
    try:
        read = (
            config.of_policies(args.policy)
            if args.config is None
            else config.read(args.config.read_text(encoding="utf-8"))
        )
        options = program.ExtenderOptions(
            read,
            file=args.config,
            port=args.port,
            kubeconfig=args.kubeconfig,
            watch=not args.no_watch,
            environ=os.environ,
        )
        return program.run(options)
    except config.ConfigError as error:
        for problem in error.problems:
            print_remark(f"kube-scheduler-operator extender: {problem}")
        return 2
    except UnicodeDecodeError as error:
        message = f"{args.config} is not UTF-8: {error.reason}; save it as UTF-8"
        print_remark(f"kube-scheduler-operator extender: {message}")
        return 2
    except OSError as error:
        print_remark(f"kube-scheduler-operator extender: {error}")
        return 1
