"""`read-config`: reads the configuration file of the scheduler before the operator, in a Pod."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "read-config",
        description=(
            "Reads a scheduler's configuration file once. The termination message has its content, "
            "or why it cannot be adopted; credentials are never part of it."
        ),
    )
    add = parser.add_argument
    add("--file", type=Path, required=True, help="the file")
    add(
        "--termination-log",
        type=Path,
        default=Path("/dev/termination-log"),
        help="file of the termination message (default: /dev/termination-log)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from ...programs.config_reader.program import ReaderOptions, main

    return main(ReaderOptions(args.file, args.termination_log))
