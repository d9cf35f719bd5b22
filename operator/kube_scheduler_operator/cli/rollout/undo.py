"""Plans `kubectl scheduler rollout undo`: the settings of an older revision.

The ConfigMaps of a revision are never restored directly: the operator would correct them as drift,
and the next edit would bring the error back. Instead, the fields of the custom resources are
restored, and the operator's composition shows in advance whether they lead to the old content.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

import yaml

from ...base import names
from ...base.objects import Object
from ...base.platform import Platform
from ...config.effective.control_plane.recorded_inputs import (
    KUBESCHEDULER_FIELDS,
    SCHEDULER_FIELDS,
    SECONDARY_KEPT,
    UNRECORDED,
    ObjectEdit,
    RecordedInputs,
    changed_objects,
    read_inputs,
)
from ...kube.api import Api
from ...kube.errors import Forbidden
from ...kube.resource import (
    KUBE_SCHEDULERS,
    OPERATOR_SETTINGS,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SCHEDULERS,
    SECONDARY_SCHEDULERS,
    Resource,
)
from ...operator.controlplane.desired import desired_content
from ...operator.controlplane.revision.content import RevisionContent
from ...operator.controlplane.revision.history import Revision, ended
from ...operator.model.snapshot import Snapshot
from ..cluster.compare import IMAGE, ParsedRevision, changes, parse_revision
from ..cluster.operator_objects import list_by_name
from ..cluster.proposal import (
    InputObjects,
    proposed_managed,
    proposed_secondary,
    with_reverted,
)
from ..cluster.revisions import find_revision
from ..cluster.scheduler_contents import (
    Content,
    find_content,
    read_contents,
    readable,
    rolled_out_content,
)
from ..console.errors import CommandError
from .later_edits import NOTHING_REMAINS, Remaining, attribute, trials

_RESTORED: Final = {
    SCHEDULERS: SCHEDULER_FIELDS,
    KUBE_SCHEDULERS: KUBESCHEDULER_FIELDS - {"observedConfig"},
}
"""Kind -> the fields of its spec to restore; the operator owns the observed configuration."""


@dataclass(frozen=True, slots=True)
class Undo:
    """The objects to write, and the information to show before."""

    target: str  # what is restored, for messages
    objects: Mapping[Resource, Object]  # those that change: Scheduler and KubeScheduler "cluster"
    patch: tuple[str, ...]  # the changes as a unified diff
    left: tuple[str, ...]  # the differences that will remain from the revision
    remaining: Remaining = NOTHING_REMAINS  # the same, by what causes them
    image: str = ""  # what sets the image, and how to have the earlier one
    unrecorded: str = UNRECORDED  # what else causes differences


def plan_undo(snapshot: Snapshot, revisions: Sequence[Revision], chosen: str | None) -> Undo:
    """Plan the restoration of an older revision.

    `revisions` are the complete ones, oldest first; `chosen` is the number of one, None means the
    latest installed one that differs from the current settings.
    """
    image = next((parse_revision(r.content).image for r in reversed(revisions) if r.complete), "")
    snapshot = replace(snapshot, settings=replace(snapshot.settings, operand_image=image))
    current, _ = desired_content(snapshot)
    target = _target(revisions, chosen, current)
    inputs = _inputs(revisions, target)
    settings = _restored(snapshot, inputs)
    restored = replace(
        snapshot, scheduler=settings[SCHEDULERS], kubescheduler=settings[KUBE_SCHEDULERS]
    )
    content, findings = desired_content(restored)
    if content is None:
        problems = "; ".join(finding.text for finding in findings if finding.blocking)
        raise CommandError(
            f"the settings of revision {target.number} are no longer accepted: {problems}; "
            f"see `kubectl scheduler diff {target.number}`"
        )
    then = parse_revision(_chosen(target.content))
    left = changes(then, parse_revision(content)) if target.complete else ()
    edits = changed_objects(inputs, read_inputs(content.inputs) or inputs)
    results = [_left_without(restored, then, trial) for trial in trials(edits)]
    operator = snapshot.platform.operator
    return replace(
        _undo(f"revision {target.number}", snapshot, settings, left),
        remaining=attribute(left, edits, results, _live(snapshot)),
        image="no field of these objects sets it; to have the earlier one: kubectl -n "
        f"{snapshot.platform.operator_namespace} set env deployment/{operator.deployment} "
        f"OPERAND_IMAGE={then.image}",
    )


def _live(snapshot: Snapshot) -> dict[str, Mapping[str, Object]]:
    """Return the objects that undo does not write, by kind and name."""
    return {
        SCHEDULER_PROFILES.kind: snapshot.scheduler_profiles or {},
        SCHEDULER_EXTENDERS.kind: snapshot.scheduler_extenders or {},
        OPERATOR_SETTINGS.kind: snapshot.operator_settings or {},
    }


def _left_without(
    snapshot: Snapshot, then: ParsedRevision, edits: Sequence[ObjectEdit]
) -> tuple[str, ...] | None:
    """Return the differences that remain if these edits are reverted; None: it is refused."""
    live = _live(snapshot)
    before = {kind: with_reverted(objects, kind, edits) for kind, objects in live.items()}
    reverted = replace(
        snapshot,
        scheduler_profiles=before[SCHEDULER_PROFILES.kind],
        scheduler_extenders=before[SCHEDULER_EXTENDERS.kind],
        operator_settings=before[OPERATOR_SETTINGS.kind],
    )
    content, _ = desired_content(reverted, planned=True)
    return changes(then, parse_revision(content)) if content is not None else None


def _current(snapshot: Snapshot) -> dict[Resource, Object]:
    return {SCHEDULERS: snapshot.scheduler or {}, KUBE_SCHEDULERS: snapshot.kubescheduler or {}}


def _restored(snapshot: Snapshot, inputs: RecordedInputs) -> dict[Resource, Object]:
    """Return Scheduler and KubeScheduler with the recorded settings."""
    recorded = {SCHEDULERS: inputs.scheduler, KUBE_SCHEDULERS: inputs.kubescheduler}
    return {
        kind: _with(obj, recorded[kind], _RESTORED[kind])
        for kind, obj in _current(snapshot).items()
    }


def _undo(
    target: str, snapshot: Snapshot, settings: Mapping[Resource, Object], left: Sequence[str]
) -> Undo:
    """Return the objects of these settings that change, and the changes."""
    before = _current(snapshot)
    changed = {kind: obj for kind, obj in settings.items() if obj != before[kind]}
    patches = (
        _patch(f"{kind.kind} {names.CLUSTER}", before[kind], obj) for kind, obj in settings.items()
    )
    return Undo(target, changed, tuple(chain(*patches)), tuple(left))


def _chosen(content: RevisionContent) -> RevisionContent:
    """Keep the parts that users control, without the credentials that the cluster renews."""
    return RevisionContent(
        {k: v for k, v in content.parts.items() if k in (names.CONFIG, names.POD)}
    )


def _target(
    revisions: Sequence[Revision], chosen: str | None, current: RevisionContent | None
) -> Revision:
    if chosen is not None:
        target = find_revision(revisions, chosen)
    else:
        installed = (
            revision
            for revision in reversed(revisions)
            if revision.outcome == names.OUTCOME_INSTALLED and _chosen(revision.content) != current
        )
        latest = next(installed, None)
        if latest is None:
            raise CommandError("no older healthy revision exists to restore")
        target = latest
    same = [revision for revision in revisions if revision.hash == target.hash]
    if same[-1].bad:
        raise CommandError(
            f"revision {target.number} cannot be restored: {same[-1].ending}; choose another one: "
            "kubectl scheduler history"
        )
    return target


def _inputs(revisions: Sequence[Revision], target: Revision) -> RecordedInputs:
    """Return the recorded inputs of a revision, or of another one with the same content."""
    content = _chosen(target.content)
    same = (r for r in reversed(revisions) if _chosen(r.content) == content)
    for revision in (target, *same):
        inputs = read_inputs(revision.inputs)
        if inputs is not None:
            return inputs
    raise CommandError(
        f"revision {target.number} has no recorded settings, because an older operator created it; "
        f"see `kubectl scheduler diff {target.number}` and edit Scheduler and KubeScheduler "
        "manually"
    )


def _with(obj: Object, values: Mapping[str, Any], fields: frozenset[str]) -> Object:
    """Copy `obj` with exactly these values in `fields` of its spec."""
    changed = copy.deepcopy(dict(obj))
    spec = changed.setdefault("spec", {})
    for name in fields:
        if values.get(name) is None:
            spec.pop(name, None)
        else:
            spec[name] = copy.deepcopy(values[name])
    return changed


def _patch(name: str, before: Object, after: Object) -> list[str]:
    old, new = (
        yaml.safe_dump({"spec": obj.get("spec") or {}}, allow_unicode=True).splitlines()
        for obj in (before, after)
    )
    return list(difflib.unified_diff(old, new, f"{name} now", f"{name} then", lineterm=""))


# --- where the provider runs the control plane's scheduler ---------------------------------------


async def plan_managed_undo(
    api: Api, snapshot: Snapshot, scheduler: dict[str, Any], chosen: str | None
) -> Undo:
    """Plan the restoration of the settings of an older content of `scheduler`.

    The ConfigMap of each content has the settings of Scheduler and KubeScheduler that led to it.
    `chosen` is the hash of a content; None means the latest installed one with other settings than
    the current ones.
    """
    contents = await read_contents(api, scheduler)
    current = _current(snapshot)
    target = _target_content(contents, chosen, lambda then: _restored(snapshot, then) != current)
    inputs = target.inputs
    if inputs is None:
        raise CommandError(
            f"configuration {target.hash} has no recorded settings; see `kubectl scheduler diff "
            f"{target.hash}` and edit Scheduler and KubeScheduler manually"
        )
    settings = _restored(snapshot, inputs)
    objects = InputObjects({kind.kind: obj for kind, obj in settings.items()}, {})
    running = readable(rolled_out_content(contents))
    _, after = await proposed_managed(api, snapshot.platform, objects, scheduler, running)
    left = () if target.parsed is None else changes(target.parsed, after)
    _refuse_unproved(snapshot.platform, scheduler, target, left)
    return replace(
        _undo(f"configuration {target.hash}", snapshot, settings, left),
        remaining=attribute(left, (), (), {}),
        image="it follows the version of the API server",
        unrecorded=f"SchedulerProfiles, SchedulerExtenders, {UNRECORDED}",
    )


async def plan_secondary_undo(
    api: Api,
    platform: Platform,
    scheduler: dict[str, Any],
    chosen: str | None,
    control_plane: ParsedRevision | None,
) -> Undo:
    """Plan the restoration of the spec that led to an older content of a SecondaryScheduler.

    `control_plane` is the content of the control plane's scheduler; None where the provider runs
    that. `chosen` is the hash of a content; None means the latest installed one with another spec.
    """
    contents = await read_contents(api, scheduler)
    target = _target_content(
        contents,
        chosen,
        lambda then: then.secondary is not None and _with_spec(scheduler, then) != scheduler,
    )
    name = f"{SECONDARY_SCHEDULERS.kind} {scheduler['metadata']['name']}"
    inputs = target.inputs
    if inputs is None or inputs.secondary is None:
        raise CommandError(
            f"configuration {target.hash} has no recorded spec, because an older operator made it; "
            f"see `kubectl scheduler diff {target.hash} --scheduler` and edit {name} manually"
        )
    restored = _with_spec(scheduler, inputs)
    objects = InputObjects({SECONDARY_SCHEDULERS.kind: restored}, {})
    _, after, _ = await proposed_secondary(api, platform, objects, control_plane)
    left = () if target.parsed is None else changes(target.parsed, after)
    _refuse_unproved(platform, scheduler, target, left)
    now = next((content.inputs for content in contents if content.desired), None) or inputs
    edits, live = changed_objects(inputs, now), await _listed(api)

    async def left_without(trial: Sequence[ObjectEdit]) -> tuple[str, ...] | None:
        reverted = replace(objects, reverted=tuple(trial))
        try:
            _, content, _ = await proposed_secondary(api, platform, reverted, control_plane)
        except CommandError:
            return None
        return changes(target.parsed, content) if target.parsed is not None else None

    results = [await left_without(trial) for trial in trials(edits)]
    return Undo(
        f"configuration {target.hash} of {name}",
        {SECONDARY_SCHEDULERS: restored} if restored != scheduler else {},
        tuple(_patch(name, scheduler, restored)),
        tuple(left),
        remaining=attribute(left, edits, results, live),
        image=f"without spec.image of {name} it is that of the control plane's scheduler",
    )


async def _listed(api: Api) -> dict[str, Mapping[str, Object]]:
    """Return the SchedulerProfiles and SchedulerExtenders that the user may read, by kind."""
    live: dict[str, Mapping[str, Object]] = {}
    for kind in (SCHEDULER_PROFILES, SCHEDULER_EXTENDERS):
        with suppress(Forbidden):
            live[kind.kind] = await list_by_name(api, kind) or {}
    return live


def _with_spec(scheduler: Object, then: RecordedInputs) -> Object:
    """Return a SecondaryScheduler with a recorded spec; what does not decide its content stays."""
    spec = scheduler.get("spec") or {}
    kept = {key: value for key, value in spec.items() if key in SECONDARY_KEPT}
    return {**scheduler, "spec": {**copy.deepcopy(dict(then.secondary or {})), **kept}}


def _refuse_unproved(
    platform: Platform, scheduler: Object, target: Content, left: Sequence[str]
) -> None:
    """Check that the recorded settings lead to the content: its hash does not cover them.

    Where only the operator and administrators write ConfigMaps, they are the operator's own record.
    """
    namespace = str(scheduler["spec"]["namespace"])
    others = [change for change in left if not change.startswith(IMAGE)]
    if others and namespace != platform.target_namespace:
        raise CommandError(
            f"the settings that are recorded for configuration {target.hash} lead to another one "
            f"({others[0]}), and other clients may write the record in namespace {namespace}; see "
            f"`kubectl scheduler diff {target.hash}` and edit Scheduler and KubeScheduler manually"
        )


def _target_content(
    contents: Sequence[Content], chosen: str | None, differs: Callable[[RecordedInputs], bool]
) -> Content:
    """Choose the content to restore; `differs` is whether recorded settings are not the current."""
    if chosen is not None:
        target = find_content(contents, chosen)
    else:
        installed = (
            content
            for content in contents
            if not content.entry.bad and content.inputs is not None and differs(content.inputs)
        )
        latest = next(installed, None)
        if latest is None:
            raise CommandError("no older healthy configuration with other settings exists")
        target = latest
    if target.entry.bad:
        raise CommandError(
            f"configuration {target.hash} {ended(target.entry.outcome)}: "
            f"{target.entry.message or 'no reason recorded'}; choose another one: kubectl "
            "scheduler history"
        )
    return target
