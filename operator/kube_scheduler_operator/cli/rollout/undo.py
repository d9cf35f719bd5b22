"""Plans `kubectl scheduler rollout undo`: the settings of an older revision.

The ConfigMaps of a revision are never restored directly: the operator would correct them as drift,
and the next edit would bring the error back. Instead, the fields of the custom resources are
restored, and the operator's composition shows in advance whether they lead to the old content.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    RecordedInputs,
    object_edits,
    read_inputs,
)
from ...kube.api import Api
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
from ..cluster.compare import ParsedRevision, changes, parse_revision
from ..cluster.proposal import InputObjects, proposed_managed, proposed_secondary
from ..cluster.revisions import find_revision
from ..cluster.scheduler_contents import (
    Content,
    find_content,
    read_contents,
    readable,
    rolled_out_content,
)
from ..console.errors import CommandError

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
    profiles: tuple[str, ...] = ()  # later edits of other objects, which are not restored
    reverts: tuple[str, ...] = ()  # what reverts these: commands, and the specs of that time
    others: str = (  # what causes the differences in `left`
        "OPERAND_IMAGE of the operator sets the image; its version causes other differences."
    )


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
    then = replace(
        snapshot, scheduler=settings[SCHEDULERS], kubescheduler=settings[KUBE_SCHEDULERS]
    )
    content, findings = desired_content(then)
    if content is None:
        problems = "; ".join(finding.text for finding in findings if finding.blocking)
        raise CommandError(
            f"the settings of revision {target.number} are no longer accepted: {problems}; "
            f"see `kubectl scheduler diff {target.number}`"
        )
    left = changes(parse_revision(_chosen(target.content)), parse_revision(content))
    undo = _undo(f"revision {target.number}", snapshot, settings, left if target.complete else ())
    return _with_edits(undo, inputs, read_inputs(content.inputs) or inputs)


def _with_edits(undo: Undo, then: RecordedInputs, now: RecordedInputs) -> Undo:
    """Add the later edits of objects that are not restored, and what reverts them."""
    return replace(undo, profiles=object_edits(then, now), reverts=tuple(_reverts(then, now)))


def _reverts(then: RecordedInputs, now: RecordedInputs) -> Iterator[str]:
    kinds = (
        (SCHEDULER_PROFILES.kind, then.profiles, now.profiles),
        (SCHEDULER_EXTENDERS.kind, then.extenders, now.extenders),
        (OPERATOR_SETTINGS.kind, then.own_settings, now.own_settings),
    )
    for kind, old, new in kinds:
        for name in sorted(old.keys() | new.keys()):
            if name not in old:
                yield f"kubectl delete {kind.lower()} {name}"
            elif old[name] != new.get(name):
                what = "edit" if name in new else "create again"
                yield f"{what} {kind} {name}:"
                yield from _patch(f"{kind} {name}", {"spec": new.get(name)}, {"spec": old[name]})


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
        others="The image follows the API server's version; SchedulerProfiles, SchedulerExtenders "
        "and the operator's version cause other differences.",
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
    changed = {SECONDARY_SCHEDULERS: restored} if restored != scheduler else {}
    undo = Undo(
        f"configuration {target.hash} of {name}",
        changed,
        tuple(_patch(name, scheduler, restored)),
        tuple(left),
        others="SchedulerProfiles, SchedulerExtenders, the image of the control plane's scheduler "
        "and the operator's version cause other differences.",
    )
    now = next((content.inputs for content in contents if content.desired), None)
    return undo if now is None else _with_edits(undo, inputs, now)


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
    others = [change for change in left if not change.startswith("image: ")]
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
