"""`kubectl scheduler completion bash|zsh|fish`: the script that lets a shell complete commands."""

from __future__ import annotations

import argparse
import sys
from typing import Final

SHELLS: Final = ("bash", "zsh", "fish")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "completion",
        description="Prints the script with which a shell completes kubectl-scheduler: commands, "
        "flags and names from the cluster. `kubectl scheduler` is completed by kubectl's own "
        "script, which finds kubectl_complete-scheduler on the PATH.",
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from ...base import assets

    sys.stdout.write(assets.text("bindata", f"completion/{args.shell}"))
    return 0
