"""`kubectl scheduler rollout watch` and `… undo`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ..lib import common

if TYPE_CHECKING:
    from ...base.platform import Platform
    from ...kube.api import Object
    from ...kube.client import ApiClient
    from ...kube.resource import Resource
    from ...model.snapshot import Snapshot
    from ..lib.follow_rollout import State
    from ..lib.undo import Undo

INTERVAL: Final = 1.0
"""Seconds between looks."""

LOOKS: Final = 3
"""So often an end must be seen in a row: the operator needs a moment to make a revision of an edit,
and no status says that it has seen the newest Scheduler."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the commands."""
    group = subparsers.add_parser(
        "rollout",
        help="watch a rollout, or take an edit back",
        description="Rollouts of revisions.",
    ).add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_watch(group)
    _add_undo(group)


def _add_watch(group: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = group.add_parser(
        "watch",
        help="one line per change until all nodes are there",
        description="Tells what happens, one line per change, until all nodes run what is asked "
        "for (exit code 0), until that has failed, or until the time is up (exit code 1).",
    )
    parser.add_argument(
        "--timeout", type=float, metavar="SECONDS", help="give up after so long (default: never)"
    )
    common.add_cluster_flags(parser)
    parser.set_defaults(run=run_watch)


def _add_undo(group: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = group.add_parser(
        "undo",
        help="ask for an older revision again",
        description="Writes into Scheduler and KubeScheduler what was set in them for an older "
        "revision; the operator makes a new one of it. Shows the change and asks first.",
    )
    parser.add_argument(
        "--to-revision",
        type=int,
        metavar="N",
        help="default: the newest one that was healthy and is not what is asked for now",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="show the change and write nothing")
    common.add_cluster_flags(parser)
    parser.set_defaults(run=run_undo)


# --- watch ------------------------------------------------------------------------------------


def run_watch(args: argparse.Namespace) -> int:
    """Tell until the rollout is over."""

    async def work(api: ApiClient, platform: Platform) -> int:  # noqa: ARG001
        from ..lib.follow_rollout import read_state

        async def look() -> State:
            return read_state(await common.kubescheduler(api))

        return await watch(look, _say, args.timeout)

    return common.run(args, work)


def _say(line: str) -> None:
    from datetime import datetime

    now = datetime.now().astimezone()
    print(f"{now:%H:%M:%S} {line}", flush=True)


async def watch(
    look: Callable[[], Awaitable[State]], say: Callable[[str], None], patience: float | None
) -> int:
    """Look again and again, say what is new; 0 when all is done, 1 for anything else.

    Args:
        look: the state now.
        say: prints a line.
        patience: seconds until it gives up; None: never.
    """
    import asyncio

    from ...kube.errors import Unavailable
    from ..lib.follow_rollout import End, tell

    before: State | None = None
    same = 0
    try:
        async with asyncio.timeout(patience):
            while True:
                try:
                    state = await look()
                except Unavailable as error:
                    say(f"{error}; looking again")
                    await asyncio.sleep(INTERVAL)
                    continue
                for line in tell(before, state):
                    say(line)
                same = same + 1 if before == state else 1
                if state.end is not None and same >= LOOKS:
                    say(f"{state.end.value}: {state.sentence}")
                    return 0 if state.end is End.DONE else 1
                before = state
                await asyncio.sleep(INTERVAL)
    except TimeoutError:
        waits = sorted(before.waits.items()) if before is not None else []
        say("; ".join([f"not done after {patience:g} s", *(f"{n}: {what}" for n, what in waits)]))
        return 1


# --- undo -------------------------------------------------------------------------------------


def run_undo(args: argparse.Namespace) -> int:
    """Write the inputs of an older revision."""

    async def work(api: ApiClient, platform: Platform) -> int:
        from ...controlplane.revision.history import read
        from ...kube.resource import KUBE_SCHEDULERS, SCHEDULERS
        from ..lib.undo import plan_undo

        snapshot = await _snapshot(api, platform)
        history = read(snapshot.config_maps, platform.parts)
        ready = [revision for revision in history if revision.ready]
        undo = plan_undo(snapshot, ready, args.to_revision)
        _show(undo)
        if not undo.patch:
            return 0
        if args.dry_run:
            print("Nothing was written (--dry-run).")
            return 0
        if not args.yes and not _confirmed():
            print("Nothing was written.")
            return 1
        for resource, obj in ((SCHEDULERS, undo.scheduler), (KUBE_SCHEDULERS, undo.kubescheduler)):
            if obj is not None:
                # With the resourceVersion that was read: an edit in between is not run over.
                await api.replace(resource, obj)
        print("Written. Follow it: kubectl scheduler rollout watch")
        return 0

    return common.run(args, work)


async def _snapshot(api: ApiClient, platform: Platform) -> Snapshot:
    """What a composition depends on, as it is now."""
    from datetime import UTC, datetime

    from ...base import names
    from ...base.settings import Settings
    from ...kube import resource as kinds
    from ...model.snapshot import Snapshot

    async def cluster(kind: Resource) -> Object | None:
        return await common.find_one(api, kinds.ObjectRef(kind, None, names.CLUSTER))

    scheduler = await cluster(kinds.SCHEDULERS)
    if scheduler is None:
        raise common.CommandError('Scheduler "cluster" does not exist; create it first')
    snapshot = Snapshot(
        now=datetime.now(UTC),
        platform=platform,
        settings=Settings(),
        scheduler=scheduler,
        kubescheduler=await common.kubescheduler(api),
        scheduler_profiles=await common.scheduler_profiles(api),
        scheduler_extenders=await common.scheduler_extenders(api),
        config_maps=await common.config_maps(api, platform),
    )
    if platform.cluster_config:
        snapshot = replace(
            snapshot,
            apiserver=await cluster(kinds.API_SERVERS),
            feature_gate=await cluster(kinds.FEATURE_GATES),
            infrastructure=await cluster(kinds.INFRASTRUCTURES),
        )
    if platform.credentials is not None:
        # Only whether it exists decides about a flag.
        name = platform.credentials.serving_certificate
        ref = kinds.ObjectRef(kinds.SECRETS, platform.target_namespace, name)
        secret = await common.find_one(api, ref)
        snapshot = replace(snapshot, secrets={name: secret} if secret is not None else {})
    return snapshot


def _show(undo: Undo) -> None:
    number = undo.revision.number
    if not undo.patch:
        print(f"What revision {number} was made from is set already; there is nothing to write.")
    else:
        print(f"Back to what was set for revision {number}:\n")
        print("\n".join(undo.patch) + "\n")
    if undo.profiles:
        print(f"Not written, because each has its owner; since revision {number}:")
        for line in undo.profiles:
            print(f"  - {line}")
        print()
    if undo.left:
        print(f"What comes of it differs from revision {number} all the same:")
        for line in undo.left:
            print(f"  - {line}")
        print("An image is set on the operator (OPERAND_IMAGE); the rest is of its version.\n")


def _confirmed() -> bool:
    if not sys.stdin.isatty():
        raise common.CommandError("nobody can be asked here: give --yes to write, or --dry-run")
    return input("Write this? [y/N] ").strip().lower() in ("y", "yes")
