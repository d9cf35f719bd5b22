"""`kubectl scheduler rollout watch`, `… undo` and `… approve`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ...base import names
from ...base.platform import Platform
from ...base.settings import Settings
from ...kube import resource as kinds
from ...kube.api import Api, Object
from ...kube.errors import Forbidden
from ...kube.resource import KUBE_SCHEDULERS, SCHEDULERS, ObjectRef
from ...operator.model.snapshot import Snapshot
from ..cluster.connection import run_connected
from ..cluster.operator_objects import (
    find_object,
    find_singleton,
    get_kubescheduler,
    list_by_name,
    list_config_maps,
)
from ..cluster.revisions import find_running_revision, list_revisions, nodes_by_revision
from ..cluster.scheduler_contents import find_scheduler
from ..console.errors import CommandError
from ..console.flags import add_cluster_flags, add_scheduler_flag
from ..console.output import print_lines, print_now
from ..rollout.follow_rollout import RolloutState, read_state, report_changes, watch
from ..rollout.follow_scheduler import SchedulerRollout, read_scheduler, scheduler_changes

if TYPE_CHECKING:
    from ...kube.client import ApiClient
    from ..rollout.approval import Approval
    from ..rollout.undo import Undo


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    group = subparsers.add_parser(
        "rollout",
        description="Manages rollouts of revisions.",
    ).add_subparsers(title="commands", metavar="COMMAND")
    _add_watch(group)
    _add_undo(group)
    _add_approve(group)


def _add_watch(group: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = group.add_parser(
        "watch",
        aliases=["status"],
        help="report the progress of a rollout until it ends",
        description="Prints one line per change until the rollout ends. The exit code is 0 if all "
        "nodes, or all Pods of the SecondaryScheduler, run the latest configuration, 1 if the "
        "rollout failed or the timeout expired.",
    )
    add_scheduler_flag(parser)
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="SECONDS",
        help="stop watching after this time (default: never)",
    )
    add_cluster_flags(parser)
    parser.set_defaults(run=run_watch)


def _add_undo(group: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = group.add_parser(
        "undo",
        help="restore the settings of an older revision",
        description="Writes the settings of an older revision to Scheduler and KubeScheduler, from "
        "which the operator creates a new revision. Where the provider runs the control plane's "
        "scheduler, the settings are those of an older configuration of the SecondaryScheduler "
        "that has them. Shows the change and asks for confirmation.",
    )
    parser.add_argument(
        "--to-revision",
        metavar="N",
        help="revision to restore, or the hash of a configuration (default: the latest healthy one "
        "that differs from the current settings)",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    parser.add_argument("--dry-run", action="store_true", help="show the change without writing it")
    add_cluster_flags(parser)
    parser.set_defaults(run=run_undo)


def _add_approve(group: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = group.add_parser(
        "approve",
        help="roll out an edit that is held because of what it changes for Pods",
        description="Shows the edit that spec.placementCheck of OperatorSettings holds, and why. "
        "Then approves exactly that configuration. Asks for confirmation. With the policies of "
        "deploy/admission this needs the verb approve on operatorsettings.",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    parser.add_argument("--dry-run", action="store_true", help="show the edit without approving it")
    add_cluster_flags(parser)
    parser.set_defaults(run=run_approve)


# --- watch ------------------------------------------------------------------------------------


def run_watch(args: argparse.Namespace) -> int:
    async def work(api: Api, platform: Platform) -> int:
        scheduler = await find_scheduler(api, platform, args.scheduler)
        if scheduler is not None:
            name = str(scheduler["metadata"]["name"])

            async def poll_scheduler() -> SchedulerRollout:
                current = await find_scheduler(api, platform, name) or {}
                kubescheduler = await get_kubescheduler(api)
                return read_scheduler(current, kubescheduler, await _scheduler(api))

            return await watch(poll_scheduler, print_now, args.timeout, scheduler_changes)

        async def poll() -> RolloutState:
            return read_state(await get_kubescheduler(api), await _scheduler(api))

        return await watch(poll, print_now, args.timeout, report_changes)

    return run_connected(args, work)


async def _scheduler(api: Api) -> Object | None:
    """Return the Scheduler "cluster"; None if it does not exist, or the user may not read it."""
    try:
        return await find_singleton(api, SCHEDULERS)
    except Forbidden:
        return None


# --- undo -------------------------------------------------------------------------------------


def run_undo(args: argparse.Namespace) -> int:
    async def work(api: Api, platform: Platform) -> int:
        undo = await _planned(api, platform, args.to_revision)
        _show(undo)
        if not undo.patch:
            return 0
        if args.dry_run:
            print_lines("No changes were written (--dry-run).")
            return 0
        if not args.yes and not _confirmed():
            print_lines("No changes were written.")
            return 1
        for resource, obj in ((SCHEDULERS, undo.scheduler), (KUBE_SCHEDULERS, undo.kubescheduler)):
            if obj is not None:
                # Includes the resourceVersion that was read, so a concurrent edit is a conflict.
                await api.replace(resource, obj)
        print_lines("Changes written. To follow the rollout: kubectl scheduler rollout watch")
        return 0

    return run_connected(args, work)


async def _planned(api: Api, platform: Platform, chosen: str | None) -> Undo:
    from ...operator.controlplane.revision.history import read
    from ..rollout.undo import plan_undo
    from ..rollout.undo_managed import plan_managed_undo

    snapshot = await _snapshot(api, platform)
    scheduler = await find_scheduler(api, platform)
    if scheduler is not None:
        return await plan_managed_undo(api, snapshot, scheduler, chosen)
    if chosen is not None and not chosen.isdecimal():
        raise CommandError(f'"{chosen}" is not the number of a revision')
    history = read(snapshot.config_maps, platform.parts)
    ready = [revision for revision in history if revision.ready]
    return plan_undo(snapshot, ready, int(chosen) if chosen is not None else None)


async def _snapshot(api: Api, platform: Platform) -> Snapshot:
    scheduler = await find_singleton(api, kinds.SCHEDULERS)
    if scheduler is None:
        raise CommandError('Scheduler "cluster" does not exist; create it first')
    snapshot = Snapshot(
        now=datetime.now(UTC),
        platform=platform,
        settings=Settings(),
        scheduler=scheduler,
        kubescheduler=await get_kubescheduler(api),
        scheduler_profiles=await list_by_name(api, kinds.SCHEDULER_PROFILES),
        scheduler_extenders=await list_by_name(api, kinds.SCHEDULER_EXTENDERS),
        operator_settings=await list_by_name(api, kinds.OPERATOR_SETTINGS),
        config_maps=await list_config_maps(api, platform),
    )
    if platform.cluster_config:
        snapshot = replace(
            snapshot,
            apiserver=await find_singleton(api, kinds.API_SERVERS),
            feature_gate=await find_singleton(api, kinds.FEATURE_GATES),
            infrastructure=await find_singleton(api, kinds.INFRASTRUCTURES),
        )
    if platform.credentials is not None:
        # A flag depends on whether it exists.
        name = platform.credentials.serving_certificate
        secret = await find_object(api, ObjectRef(kinds.SECRETS, platform.target_namespace, name))
        snapshot = replace(snapshot, secrets={name: secret} if secret is not None else {})
    return snapshot


def _show(undo: Undo) -> None:
    if not undo.patch:
        print_lines(f"The settings of {undo.target} are already in use.")
    else:
        print_lines(f"Changes that restore the settings of {undo.target}:", "", *undo.patch, "")
    if undo.profiles:
        print_lines(f"Not restored, because these objects have other owners; since {undo.target}:")
        print_lines(*(f"  - {edit}" for edit in undo.profiles), "")
    if undo.left:
        print_lines(f"The result will differ from {undo.target} nevertheless:")
        print_lines(*(f"  - {difference}" for difference in undo.left), undo.others, "")


def _confirmed(question: str = "Write these changes?") -> bool:
    if not sys.stdin.isatty():
        raise CommandError("confirmation requires a terminal: use --yes to write, or --dry-run")
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


# --- approve ----------------------------------------------------------------------------------


def run_approve(args: argparse.Namespace) -> int:
    async def work(api: ApiClient, platform: Platform) -> int:
        from ..rollout.approval import plan_approval

        if not platform.owns_static_pods:
            raise CommandError(
                "edits are not checked where the provider runs the control plane's scheduler"
            )
        snapshot = await _snapshot(api, platform)
        nodes = nodes_by_revision(snapshot.kubescheduler or {})
        running = find_running_revision(await list_revisions(api, platform), nodes)
        approval = plan_approval(snapshot, running)
        _show_held(approval)
        if args.dry_run:
            print_lines("Nothing was approved (--dry-run).")
            return 0
        if not args.yes and not _confirmed("Approve this edit?"):
            print_lines("Nothing was approved.")
            return 1
        ref = ObjectRef(kinds.OPERATOR_SETTINGS, None, names.CLUSTER)
        await api.patch(ref, dict(approval.patch))
        print_lines("Approved. To follow the rollout: kubectl scheduler rollout watch")
        return 0

    return run_connected(args, work)


def _show_held(approval: Approval) -> None:
    print_lines("This edit is held:", "")
    if approval.changes is None:
        print_lines("  (see kubectl scheduler diff; it is not the one that the objects have now)")
    else:
        print_lines(*(f"  - {change}" for change in approval.changes))
    print_lines("", "because of what it changes for the Pods of the cluster:", "")
    print_lines(*(f"  - {sentence}" for sentence in approval.effect))
    print_lines("", f"Configuration {approval.configuration}", "")
