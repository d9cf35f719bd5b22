"""`kube-scheduler-operator simulation-certificate`: the certificate of a simulation's Pod."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "simulation-certificate",
        description="Makes the certificate with which `simulation` answers the operator, and "
        "writes its hash to the termination message of the container.",
    )
    parser.add_argument(
        "--directory", type=Path, required=True, metavar="PATH", help="for certificate and key"
    )
    parser.add_argument(
        "--termination-message",
        type=Path,
        default=Path("/dev/termination-log"),
        metavar="PATH",
        help="file for the hash (default: %(default)s)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from ...simulate.identity import make_identity

    args.termination_message.write_text(make_identity(args.directory))
    return 0
