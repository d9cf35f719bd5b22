"""`kube-scheduler-operator extender`: answer kube-scheduler's calls for filter and prioritize."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "extender",
        help="serve policies to kube-scheduler as an HTTP extender",
        description="Serves policies to kube-scheduler as an HTTP extender (extender API v1). "
        "HTTP_PORT, LOG_LEVEL and the variables of kube-safe-scheduler's agents count as they do "
        "there. SIGTERM ends it cleanly; a changed FILE is used without a restart.",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--config", type=Path, metavar="FILE", help="YAML or JSON: what to serve")
    what.add_argument(
        "--policy",
        action="append",
        metavar="NAME",
        help="serve this policy with its defaults (repeatable)",
    )
    parser.add_argument("--port", type=int, help="default: $HTTP_PORT, FILE, 5401")
    parser.add_argument("--kubeconfig", default="", help="default: $KUBECONFIG, in-cluster, …")
    parser.add_argument(
        "--no-watch",
        action="store_true",
        help="never ask the API: nodes are known by what requests say of them "
        "(nodeCacheCapable: false)",
    )
    parser.add_argument("--logging-format", choices=("text", "json"), default="text")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve; returns when told to stop or if it cannot start."""
    from ...base import klog
    from ...programs.extender import config, program
    from ...programs.extender.tls import TlsError

    klog.configure(json_format=args.logging_format == "json")
    if args.port is not None and not 0 <= args.port <= 65535:
        return _usage(f"--port {args.port} is not a port from 0 to 65535")
    try:
        read = (
            config.of_policies(args.policy)
            if args.config is None
            else config.read(args.config.read_text(encoding="utf-8"))
        )
        options = program.Options(
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
            print(f"kube-scheduler-operator extender: {problem}", file=sys.stderr)
        return 2
    except (OSError, TlsError) as error:
        print(f"kube-scheduler-operator extender: {error}", file=sys.stderr)
        return 1


def _usage(message: str) -> int:
    print(f"kube-scheduler-operator extender: {message}", file=sys.stderr)
    return 2
