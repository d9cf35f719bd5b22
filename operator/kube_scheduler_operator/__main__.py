"""The program `kube-scheduler-operator COMMAND`; as a kubectl plugin, `kubectl scheduler COMMAND`.

Only argparse and the commands' parsers are loaded here, so `--help` answers at once; kopf and the
Kubernetes client come in when a command needs them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Final

from . import __version__
from .cli.commands import (
    compose,
    convert,
    diff,
    dump_cache,
    explain,
    history,
    must_gather,
    plugins,
    pprof,
    render,
    rollout,
    status,
    uninstall,
    validate,
)
from .cli.programs import annotator, extender, node, node_metrics, operator, rl_monitor

FOR_PEOPLE: Final = (
    status,
    history,
    diff,
    plugins,
    explain,
    rollout,
    pprof,
    dump_cache,
    must_gather,
    compose,
    validate,
    convert,
)
"""The commands of the kubectl plugin, in the order in which `--help` lists them."""


def _parser(
    program: str, description: str, commands: Sequence[ModuleType]
) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in commands:
        command.add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run `kube-scheduler-operator`; returns the exit code: 0 done, 1 failed, 2 wrong usage."""
    parser = _parser(
        "kube-scheduler-operator",
        "Owns kube-scheduler's configuration and rolls its revisions out as static pods.",
        (
            operator,
            *FOR_PEOPLE,
            render,
            uninstall,
            node,
            node_metrics,
            annotator,
            extender,
            rl_monitor,
        ),
    )
    return _run(parser, argv)


def kubectl_plugin(argv: Sequence[str] | None = None) -> int:
    """Run `kubectl scheduler`: the commands for people, with their own kubeconfig."""
    parser = _parser(
        "kubectl scheduler",
        "Look at the scheduler of this cluster and its configuration.",
        FOR_PEOPLE,
    )
    return _run(parser, argv)


def _run(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> int:
    args = parser.parse_args(argv)
    try:
        return int(args.run(args))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # `... | head` closed the pipe; nothing is left to say it to.
        sys.stderr.close()
        return 141


if __name__ == "__main__":
    sys.exit(main())
