"""`kubectl scheduler rollout watch`, `… undo` and `… approve`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ...base import names
from ...base.objects import mapping
from ...base.platform import Platform
from ...base.sentences import from_one_line
from ...config.effective.attachment import is_ours
from ...kube import resource as kinds
from ...kube.api import Api, Object
from ...kube.errors import Forbidden, NotFound
from ...operator.controlplane.desired import desired_content, desired_control_plane
from ...operator.controlplane.placement_gate import recorded_check
from ...operator.controlplane.placement_rules import rules_hash, rules_of
from ...operator.controlplane.revision.history import Revision, read
from ...operator.engine.held_edits import checked_specs, load_edit
from ...operator.engine.secondary_gate import program_of, secondary_rules
from ...operator.model.plan import PlacementRules
from ...operator.model.snapshot import Loads, Snapshot
from ...operator.secondary.status import CHECK
from ...operator.status.placement_check import (
    APPROVE,
    HELD,
    NOT_KNOWN,
    SIMULATING,
    WORSE,
)
from ..cluster.compare import IMAGE, ParsedRevision, agent_changes, changes, parse_revision
from ..cluster.connection import connected
from ..cluster.operator_objects import (
    find_singleton,
    get_kubescheduler,
    list_by_name,
    read_snapshot,
)
from ..cluster.proposal import InputObjects, managed_edit, secondary_edit
from ..cluster.revisions import find_running_revision, list_revisions, nodes_by_revision
from ..cluster.scheduler_contents import (
    desired_hash,
    find_scheduler,
    parse_content,
    read_contents,
    readable,
    rolled_out_content,
)
from ..console.errors import CommandError
from ..console.flags import add_cluster_flags, add_scheduler_flag
from ..console.output import print_lines, print_now
from ..rollout.follow_rollout import follow
from ..rollout.later_edits import LaterEdit
from ..rollout.undo import Undo, plan_managed_undo, plan_secondary_undo, plan_undo

if TYPE_CHECKING:
    from ...kube.client import ApiClient


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
    parser.set_defaults(run=connected(_watch))


def _add_undo(group: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = group.add_parser(
        "undo",
        help="restore the settings of an older revision",
        description="Writes the settings of an older revision to Scheduler and KubeScheduler, from "
        "which the operator creates a new revision. Where the provider runs the control plane's "
        "scheduler, the settings are those of an older configuration of the SecondaryScheduler "
        "that has them. With --scheduler, writes the spec of an older configuration to that "
        "SecondaryScheduler. Shows the change and asks for confirmation. The exit code is 1 if "
        "the edit to revert is in an object that it does not write; the output has what reverts "
        "it.",
    )
    add_scheduler_flag(parser)
    parser.add_argument(
        "--to-revision",
        metavar="N",
        help="revision to restore, or the hash of a configuration (default: the latest healthy one "
        "that differs from the current settings)",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    parser.add_argument("--dry-run", action="store_true", help="show the change without writing it")
    add_cluster_flags(parser)
    parser.set_defaults(run=connected(_undo))


def _add_approve(group: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = group.add_parser(
        "approve",
        help="roll out an edit that is held because of what it changes for Pods",
        description="Shows the edit that spec.placementCheck of OperatorSettings holds, and why. "
        "Then approves exactly that configuration. Asks for confirmation. With the policies of "
        "deploy/admission this needs the verb approve on operatorsettings.",
    )
    add_scheduler_flag(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    parser.add_argument("--dry-run", action="store_true", help="show the edit without approving it")
    add_cluster_flags(parser)
    parser.set_defaults(run=connected(_approve))


async def _watch(api: ApiClient, platform: Platform, args: argparse.Namespace) -> int:
    scheduler = await find_scheduler(api, platform, args.scheduler)
    return await follow(api, platform, scheduler, print_now, args.timeout)


# --- undo -------------------------------------------------------------------------------------


async def _undo(api: Api, platform: Platform, args: argparse.Namespace) -> int:
    undo = await _planned(api, platform, args.scheduler, args.to_revision)
    _show(undo)
    if not undo.patch:
        return 1 if undo.remaining.edits else 0
    code = _without_writing(args, "Write these changes?", "No changes were written")
    if code is not None:
        return code
    for resource, obj in undo.objects.items():
        # Includes the resourceVersion that was read, so a concurrent edit is a conflict.
        await api.replace(resource, obj)
    of = f" --scheduler {args.scheduler}" if args.scheduler else ""
    print_lines(f"Changes written. To follow the rollout: kubectl scheduler rollout watch{of}")
    return 0


async def _planned(api: Api, platform: Platform, name: str | None, chosen: str | None) -> Undo:
    scheduler = await find_scheduler(api, platform, name)
    if scheduler is not None and not is_ours(scheduler):
        control_plane = await _control_plane(api, platform)
        return await plan_secondary_undo(api, platform, scheduler, chosen, control_plane)
    snapshot = await _snapshot(api, platform)
    if scheduler is not None:
        return await plan_managed_undo(api, snapshot, scheduler, chosen)
    history = read(snapshot.config_maps, platform.parts)
    return plan_undo(snapshot, [revision for revision in history if revision.ready], chosen)


async def _control_plane(api: Api, platform: Platform) -> ParsedRevision | None:
    """Return what the control plane's scheduler runs; None where the provider runs it."""
    if not platform.owns_static_pods:
        return None
    nodes = nodes_by_revision(await get_kubescheduler(api))
    return parse_revision(find_running_revision(await list_revisions(api, platform), nodes).content)


async def _snapshot(api: Api, platform: Platform) -> Snapshot:
    if await find_singleton(api, kinds.SCHEDULERS) is None:
        raise CommandError('Scheduler "cluster" does not exist; create it first')
    await get_kubescheduler(api)
    return await read_snapshot(api, platform)


def _show(undo: Undo) -> None:
    edits, together = undo.remaining.edits, undo.remaining.together
    if not undo.patch and edits:
        print_lines(
            f"Nothing is written: the settings that undo restores are those of {undo.target}."
        )
    elif not undo.patch:
        print_lines(f"The settings of {undo.target} are already in use.")
    else:
        print_lines(f"Changes that restore the settings of {undo.target}:", "", *undo.patch, "")
    if edits:
        print_lines(f"Objects that undo does not write, edited since {undo.target}:")
        print_lines(*(line for edit in edits for line in _edit(edit)), "")
    if together:
        print_lines("Several of these edits together cause:", *(f"  - {one}" for one in together))
        print_lines("")
    if undo.remaining.others:
        print_lines(f"No edit of an object causes these differences from {undo.target}:")
        print_lines(*(line for one in undo.remaining.others for line in _other(undo, one)), "")


def _edit(edit: LaterEdit) -> Iterator[str]:
    yield f"  - {edit.what}"
    if edit.effects is None:
        yield "      which differences it causes is not known: without it the result is refused"
    elif not edit.effects:
        yield "      it alone causes no difference"
    else:
        yield from (f"      - {effect}" for effect in edit.effects)
    yield f"      To revert it: {edit.command}"


def _other(undo: Undo, difference: str) -> Iterator[str]:
    yield f"  - {difference}"
    is_image = difference.startswith(IMAGE)
    yield f"      {undo.image if is_image else f'the cause is not recorded: {undo.unrecorded}'}"


def _without_writing(args: argparse.Namespace, question: str, result: str) -> int | None:
    """Print `result` and return the exit code if the user wants no writes; None: write."""
    if args.dry_run:
        print_lines(f"{result} (--dry-run).")
        return 0
    if args.yes:
        return None
    if not sys.stdin.isatty():
        raise CommandError("confirmation requires a terminal: use --yes to write, or --dry-run")
    if input(f"{question} [y/N] ").strip().lower() in ("y", "yes"):
        return None
    print_lines(f"{result}.")
    return 1


# --- approve ----------------------------------------------------------------------------------


async def _approve(api: Api, platform: Platform, args: argparse.Namespace) -> int:
    scheduler = await find_scheduler(api, platform, args.scheduler)
    # That in the place of the control plane's scheduler is approved as this one.
    other = scheduler if scheduler is not None and not _in_place(scheduler, platform) else None
    snapshot = await _snapshot(api, platform)
    try:
        settings, record = _held(snapshot, other)
    except CommandError as error:
        elsewhere = await _held_elsewhere(api, other)
        raise CommandError("; ".join([str(error), *elsewhere])) from None
    configuration = str(record.get("configuration") or "")
    snapshot = await _with_loads(api, snapshot)
    if scheduler is None:
        changed = _changes(snapshot, _running(snapshot), configuration)
    else:
        changed = await _changes_of(api, snapshot, scheduler, configuration)
    print_lines("This edit is held:", "")
    if changed is None:
        print_lines("  (see kubectl scheduler diff; it is not the one that the objects have now)")
    else:
        print_lines(*(f"  - {change}" for change in changed))
    print_lines("", "because of what it changes for the Pods of the cluster:", "")
    print_lines(*_effect_lines(record))
    print_lines("", f"Configuration {configuration}", "")
    name = str(other["metadata"]["name"]) if other is not None else ""
    field = f"approvedSchedulers.{name}" if name else "approved"
    if changed is None and args.yes:
        raise CommandError(
            "the objects have changed since this edit was held, so it cannot be shown; wait until "
            "the edit that they have now is held, or put the configuration's hash into "
            f"spec.placementCheck.{field} of OperatorSettings cluster"
        )
    code = _without_writing(args, "Approve this edit?", "Nothing was approved")
    if code is not None:
        return code
    approval: dict[str, Any] = {"approved": configuration}
    if name:
        approval = {"approvedSchedulers": {name: configuration}}
    # With the resourceVersion that was read, so a concurrent edit is a conflict.
    patch = {
        "metadata": {"resourceVersion": str(settings["metadata"].get("resourceVersion") or "")},
        "spec": {"placementCheck": approval},
    }
    await api.patch(kinds.OPERATOR_SETTINGS.named(names.CLUSTER), patch)
    of = f" --scheduler {args.scheduler}" if args.scheduler else ""
    print_lines(f"Approved. To follow the rollout: kubectl scheduler rollout watch{of}")
    return 0


def _in_place(scheduler: Object, platform: Platform) -> bool:
    """Whether a SecondaryScheduler is in the place of the control plane's scheduler."""
    return is_ours(scheduler) and not platform.owns_static_pods


async def _held_elsewhere(api: Api, asked: Object | None) -> list[str]:
    """Name each other scheduler whose edit is held, with the command that approves it."""
    held = []
    with suppress(Forbidden):
        own = mapping(asked).get("metadata")
        schedulers = await list_by_name(api, kinds.SECONDARY_SCHEDULERS) or {}
        for name, obj in sorted(schedulers.items()):
            record = mapping(mapping(obj.get("status")).get(CHECK))
            if record.get("state") == HELD and own != obj["metadata"]:
                held.append(
                    f"an edit of SecondaryScheduler {name} is held: {APPROVE} --scheduler {name}"
                )
    return held


def _held(
    snapshot: Snapshot, scheduler: Object | None
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return OperatorSettings, and what the operator recorded about the edit that it holds.

    `scheduler` is a SecondaryScheduler; None: the control plane's scheduler.
    """
    settings = (snapshot.operator_settings or {}).get(names.CLUSTER)
    record = recorded_check(snapshot)
    if scheduler is not None:
        record = mapping(mapping(scheduler.get("status")).get(CHECK))
    state, message = record.get("state"), str(record.get("message") or "")
    if settings is None or not state:
        raise CommandError(
            "no edit is held: spec.placementCheck.mode of OperatorSettings is not Gate, or no edit "
            "has changed where Pods are placed"
        )
    if state == SIMULATING:
        raise CommandError(f"{message}: wait for its result, kubectl scheduler status shows it")
    if state != HELD:
        raise CommandError(f"no edit is held; the last one: {message}")
    return settings, record


def _effect_lines(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the edit changes for Pods, or why that is not known."""
    effect = str(record.get("effect") or record.get("message") or "")
    if record.get("result") == WORSE:
        yield from (f"  - {sentence}" for sentence in from_one_line(effect))
        return
    yield "  - what it changes for Pods is not known:"
    reasons = from_one_line(effect) if record.get("result") == NOT_KNOWN else [effect]
    yield from (f"    - {reason}" for reason in reasons)


async def _with_loads(api: Api, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with LoadPolicies, and with the Secrets that the user may read."""
    policies, secrets = None, dict[str, Object]()
    with suppress(Forbidden, NotFound):
        policies = await list_by_name(api, kinds.LOAD_POLICIES)
        if policies:
            namespace, labeled = snapshot.platform.target_namespace, names.TOKEN_FOR_LABEL
            listed = await api.list(kinds.SECRETS, namespace, label_selector=labeled)
            secrets = {str(obj["metadata"]["name"]): obj for obj in listed.items}
    return replace(snapshot, loads=Loads(policies, secrets=secrets))


def _running(snapshot: Snapshot) -> Revision | None:
    """Return the newest revision that a node runs; None if none is in use."""
    nodes = nodes_by_revision(snapshot.kubescheduler or {})
    for revision in reversed(read(snapshot.config_maps, snapshot.platform.parts)):
        if revision.ready and revision.complete and revision.number in nodes:
            return revision
    return None


def _changes(
    snapshot: Snapshot, running: Revision | None, configuration: str
) -> tuple[str, ...] | None:
    """Return the changes that are held; None: the objects have changed since."""
    if running is None:
        return ("no revision is in use, so all of the configuration is new",)
    content, _ = desired_content(snapshot)
    composition = desired_control_plane(snapshot).composition
    specs = checked_specs(snapshot, (*composition.extenders, *composition.leaving))
    if content is None:
        return None

    def made(readers: tuple[str, ...]) -> tuple[PlacementRules | None, PlacementRules | None]:
        before, after = (replace(own, readers=readers) for own in (specs.in_use, specs.desired))
        return rules_of(running.content, before), rules_of(content, after)

    edits = _agent_edits(made, configuration)
    if edits is None:
        return None
    return (*changes(parse_revision(running.content), parse_revision(content)), *edits)


async def _changes_of(
    api: Api, snapshot: Snapshot, scheduler: Object, configuration: str
) -> tuple[str, ...] | None:
    """The same for a SecondaryScheduler."""
    platform, name = snapshot.platform, str(scheduler["metadata"]["name"])
    if not desired_hash(scheduler):
        return ("no configuration is in use, so all of it is new",)
    objects, load = InputObjects({}, {}), load_edit(snapshot)
    if _in_place(scheduler, platform):
        running = readable(rolled_out_content(await read_contents(api, scheduler)))
        edit = await managed_edit(api, platform, objects, scheduler, running)
        policies, program = (load.in_use, load.desired), dict[str, Any]()
    else:
        control_plane = await _control_plane(api, platform)
        edit = await secondary_edit(api, platform, name, objects, control_plane)
        policies, program = ({}, {}), program_of(edit.request)

    def made(readers: tuple[str, ...]) -> tuple[PlacementRules | None, PlacementRules | None]:
        image = snapshot.settings.operator_image
        before, after = (
            secondary_rules(content, used, program, image, readers)
            for content, used in zip((edit.before, edit.after), policies, strict=True)
        )
        return before, after

    edits = _agent_edits(made, configuration)
    if edits is None:
        return None
    return (*changes(parse_content(edit.before), parse_content(edit.after)), *edits)


_Made = Callable[[tuple[str, ...]], tuple[PlacementRules | None, PlacementRules | None]]
_ANOTHER: Final = ("another scheduler",)


def _agent_edits(made: _Made, configuration: str) -> tuple[str, ...] | None:
    """Return the edits of agents; None: the rules are not those that are held.

    A LoadPolicy that only other schedulers read is part of the rules as well.
    """
    for readers in ((), _ANOTHER):
        before, after = made(readers)
        if after is not None and rules_hash(after) == configuration:
            return agent_changes(before, after) if before is not None else ()
    return None
