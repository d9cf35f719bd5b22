"""Connects a command to the cluster with the identity of its user."""

from __future__ import annotations

import argparse
import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ...base import names
from ...base.platform import PLATFORMS, Platform
from ...kube.errors import KubeError
from ..console.errors import CommandError, Run, UsageError, print_error
from ..console.output import print_remark

if TYPE_CHECKING:
    from ...kube.client import ApiClient
    from ...kube.credentials import Credentials
    from ...kube.server_clock import ServerClock

    Work = Callable[[ApiClient, Platform, argparse.Namespace], Awaitable[int]]


def connected(work: Work, *, failure: int = 1) -> Run:
    """Return the `run` of a command that performs `work` in a cluster.

    The exit code is that of the work, or `failure` after an error.
    """

    def run(args: argparse.Namespace) -> int:
        # Loaded here, so that `--help` is instant.
        from ...operator.engine.detect_platform import decide_platform

        async def with_platform(api: ApiClient) -> int:
            platform = PLATFORMS.get(args.platform)
            if platform is None:
                decision = await decide_platform(api, None)
                platform = decision.platform
                for why in decision.unanswered:
                    print_remark(f"note: --platform {platform.name} is assumed: {why}")
            return await work(api, platform, args)

        return run_with_api(args, with_platform, failure=failure)

    return run


def run_with_api(
    args: argparse.Namespace,
    work: Callable[[ApiClient], Awaitable[int]],
    *,
    failure: int = 1,
    clock: ServerClock | None = None,
) -> int:
    """Connect and perform `work`; its exit code, or `failure` after an error.

    SIGTERM cancels it as Ctrl-C does, so that the command can clean up. `clock` learns the API
    server's time.
    """
    from ...kube.client import ApiClient
    from ...operator.engine.detect_platform import CHOICES

    if args.platform not in CHOICES:
        known = ", ".join(CHOICES)
        print_remark(f"error: --platform {args.platform!r} is unknown; use {known}")
        return 2

    async def perform() -> int:
        task = asyncio.current_task()
        # Only the main thread can handle signals.
        if task is not None and threading.current_thread() is threading.main_thread():
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        async with ApiClient(
            credentials_of(args),
            field_manager="kubectl-scheduler",
            user_agent=f"{names.PROGRAM} kubectl",
            clock=clock,
        ) as api:
            return await work(api)

    try:
        return asyncio.run(perform())
    except asyncio.CancelledError:
        return 128 + signal.SIGTERM
    except (KubeError, CommandError) as error:
        print_error(error)
        return 2 if isinstance(error, UsageError) else failure


def credentials_of(args: argparse.Namespace) -> Credentials:
    """Return the identity that the flags of `add_cluster_flags` select.

    Raises:
        CredentialsError: --as-group or --as-uid without --as.
    """
    from ...kube.credentials import find, impersonate

    return find(
        args.kubeconfig, args.context, impersonate(args.as_user, args.as_groups, args.as_uid)
    )
