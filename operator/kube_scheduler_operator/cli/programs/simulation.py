"""`simulation`, `simulation-launcher` and `simulation-certificate`: the Pod of a simulation."""

from __future__ import annotations

import argparse
from pathlib import Path

_WAIT = 30.0


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    _add_simulation(
        subparsers.add_parser(
            "simulation",
            description="Answers a simulating command of kubectl scheduler over HTTP with the "
            "kube-scheduler of another container of its Pod, started by the launcher there. Ends "
            "when the command does.",
        )
    )
    launcher = subparsers.add_parser(
        "simulation-launcher",
        description="Copies the program that starts kube-scheduler in its own image for "
        "`simulation`, with the interpreter that runs it.",
    )
    launcher.add_argument(
        "--directory", type=Path, required=True, metavar="PATH", help="for the program"
    )
    launcher.set_defaults(run=run_launcher)
    certificate = subparsers.add_parser(
        "simulation-certificate",
        description="Makes the certificate with which `simulation` answers the operator, and "
        "writes its hash to the termination message of the container.",
    )
    certificate.add_argument(
        "--directory", type=Path, required=True, metavar="PATH", help="for certificate and key"
    )
    certificate.add_argument(
        "--termination-message",
        type=Path,
        default=Path("/dev/termination-log"),
        metavar="PATH",
        help="file for the hash (default: %(default)s)",
    )
    certificate.set_defaults(run=run_certificate)


def _add_simulation(parser: argparse.ArgumentParser) -> None:
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
    parser.set_defaults(run=run_simulation)


def run_simulation(args: argparse.Namespace) -> int:
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


def run_launcher(args: argparse.Namespace) -> int:
    from ...simulate.launcher_files import copy_launcher

    copy_launcher(args.directory)
    return 0


def run_certificate(args: argparse.Namespace) -> int:
    from ...simulate.identity import make_identity

    args.termination_message.write_text(make_identity(args.directory))
    return 0
