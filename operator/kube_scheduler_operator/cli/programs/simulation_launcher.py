"""`kube-scheduler-operator simulation-launcher`: what a simulation runs in the operand's image."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "simulation-launcher",
        description="Copies the program that starts kube-scheduler in its own image for "
        "`simulation`, with the interpreter that runs it.",
    )
    parser.add_argument(
        "--directory", type=Path, required=True, metavar="PATH", help="for the program"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from ...simulate.launcher_files import copy_launcher

    copy_launcher(args.directory)
    return 0
