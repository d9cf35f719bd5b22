"""Connects a command to the cluster with the identity of its user."""

from __future__ import annotations

import argparse
import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...base import names
from ...base.platform import PLATFORMS, Platform
from ...kube.errors import KubeError
from ..console.errors import CommandError, Run, UsageError, print_error
from ..console.output import print_remark

if TYPE_CHECKING:
    from ...kube.client import ApiClient, Patience
    from ...kube.credentials import Credentials

    Work = Callable[[ApiClient, Platform, argparse.Namespace], Awaitable[int]]


@dataclass(slots=True)
class ClusterConnection:
    """A cluster, and what is asked of it."""

    api: ApiClient
    args: argparse.Namespace
    known_platform: Platform | None = None
    last: Any = None  # what a question remembers for the next time it is asked

    async def platform(self) -> Platform:
        """Return the platform of the flags, or the one that the cluster shows.

        Raises:
            KubeError: the API server does not respond.
        """
        # Loaded here, so that `--help` is instant.
        from ...operator.engine.detect_platform import decide_platform

        platform = self.known_platform or PLATFORMS.get(self.args.platform)
        if platform is None:
            decision = await decide_platform(self.api, None)
            platform = decision.platform
            for why in decision.unanswered:
                print_remark(f"note: --platform {platform.name} is assumed: {why}")
        self.known_platform = platform
        return platform


def connected(work: Work, *, failure: int = 1) -> Run:
    """Return the `run` of a command that performs `work` in a cluster.

    The exit code is that of the work, or `failure` after an error.
    """

    async def with_platform(connection: ClusterConnection) -> int:
        return await work(connection.api, await connection.platform(), connection.args)

    return lambda args: run_with_api(args, with_platform, failure=failure)


def run_with_api(
    args: argparse.Namespace,
    work: Callable[[ClusterConnection], Awaitable[int]],
    *,
    failure: int = 1,
) -> int:
    """Connect and perform `work`; its exit code, or `failure` after an error."""

    async def perform() -> int:
        async with client(credentials_of(args)) as api:
            return await work(ClusterConnection(api, args))

    return run_async(args, perform, failure=failure)


def run_async(
    args: argparse.Namespace, work: Callable[[], Coroutine[Any, Any, int]], *, failure: int = 1
) -> int:
    """Perform `work`; its exit code, or `failure` after an error.

    SIGTERM cancels it as Ctrl-C does, so that the command can clean up.
    """
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
        return await work()

    try:
        return asyncio.run(perform())
    except asyncio.CancelledError:
        return 128 + signal.SIGTERM
    except (KubeError, CommandError) as error:
        print_error(error)
        return 2 if isinstance(error, UsageError) else failure


def client(credentials: Credentials, patience: Patience | None = None) -> ApiClient:
    """Return a client of a command."""
    from ...kube.client import PATIENCE, ApiClient

    return ApiClient(
        credentials,
        field_manager="kubectl-scheduler",
        user_agent=f"{names.PROGRAM} kubectl",
        patience=patience or PATIENCE,
    )


def credentials_of(args: argparse.Namespace, context: str | None = None) -> Credentials:
    """Return the identity that the flags of `add_cluster_flags` select, or that of a context.

    Raises:
        CredentialsError: --as-group or --as-uid without --as.
    """
    from ...kube.credentials import find, impersonate

    impersonation = impersonate(args.as_user, args.as_groups, args.as_uid)
    return find(args.kubeconfig, context or args.context, impersonation)
