"""`kube-scheduler-operator simulation`: answers simulating commands, in the Pod of a Job."""

from __future__ import annotations

import argparse
from pathlib import Path

_WAIT = 30.0


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "simulation",
        description="Answers a simulating command of kubectl scheduler over HTTP with the "
        "kube-scheduler of another container of its Pod, started by the launcher there. Ends when "
        "the command does.",
    )
    parser.add_argument(
        "--key-sha256", required=True, metavar="HASH", help="hash of the key of requests, in hex"
    )
    parser.add_argument(
        "--listen",
        default="127.0.0.1:8080",
        metavar="HOST:PORT",
        help="default: %(default)s, which only port-forwarding reaches",
    )
    parser.add_argument(
        "--wait",
        type=float,
        default=_WAIT,
        metavar="SECONDS",
        help="limit until the command connects (default: %(default)s)",
    )
    parser.add_argument(
        "--kube-scheduler",
        type=Path,
        metavar="PATH",
        help="the kube-scheduler to run (default: that of the other container)",
    )
    parser.add_argument(
        "--identity",
        type=Path,
        metavar="PATH",
        help="directory of tls.crt and tls.key: answer over HTTPS (default: over HTTP)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from ...simulate.service import ServiceOptions, main

    host, _, port = args.listen.rpartition(":")
    options = ServiceOptions(
        host,
        args.key_sha256,
        wait=args.wait,
        port=int(port),
        binary=args.kube_scheduler,
        identity=args.identity,
    )
    return main(options)
