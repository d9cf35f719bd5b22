"""`kubectl scheduler console`: pages about the scheduler in a browser, on this machine only."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Final

from ...base.platform import Platform
from ..cluster.connection import connected
from ..console.errors import CommandError, UsageError, prints_errors
from ..console.flags import add_cluster_flags
from ..console.output import print_lines
from ..simulation.flags import add_kube_scheduler_flags

if TYPE_CHECKING:
    from ...kube.client import ApiClient
    from ..web.security import Guard

_HIGHEST_PORT: Final = 65535


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "console",
        description="Serves pages about the scheduler on this machine (127.0.0.1) until Ctrl-C, "
        "and prints their address. They show what the commands show, with your kubeconfig and "
        "your rights, and change nothing: edits are shown as commands to copy. Everyone "
        "who has the address can read the pages. The same answers are at /api/v1 as JSON; "
        "/api/v1/openapi.json describes them.",
    )
    parser.add_argument(
        "--port",
        type=int,
        default=0,
        metavar="PORT",
        help="the port to listen on; 0: a free one (default: %(default)s)",
    )
    add_kube_scheduler_flags(parser)
    add_cluster_flags(parser)
    parser.set_defaults(run=run, config=None, feature_gates=[], from_files=[])


@prints_errors()
def run(args: argparse.Namespace) -> int:
    if not 0 <= args.port <= _HIGHEST_PORT:
        raise UsageError(f"--port must be 0 to {_HIGHEST_PORT}, not {args.port}")
    return connected(_serve)(args)


async def _serve(api: ApiClient, platform: Platform, args: argparse.Namespace) -> int:
    # Loaded here, so that `--help` is instant.
    from ..web.page import ConsoleCluster
    from ..web.server import serve

    access = await api.credentials.access()
    args.context = access.context  # commands to copy name it: the user may change the current one
    where = f"{access.context} ({access.host})" if access.context else access.host
    if args.as_user:
        where += f", as {args.as_user}"
    try:
        await serve(ConsoleCluster(api, platform, args), where, args.port, _announce)
    except OSError as error:
        raise CommandError(f"--port {args.port}: {error.strerror}") from None
    return 0


def _announce(guard: Guard) -> None:
    print_lines(
        guard.address, "Everyone who has this address can read the pages. Ctrl-C ends them."
    )
    sys.stdout.flush()  # a program may read it from a pipe
