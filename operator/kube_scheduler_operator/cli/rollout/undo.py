"""Plans `kubectl scheduler rollout undo`: the settings of an older revision.

The ConfigMaps of a revision are never restored directly: the operator would correct them as drift,
and the next edit would bring the error back. Instead, the fields of the custom resources are
restored, and the operator's composition shows in advance whether they lead to the old content.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import yaml

from ...base import names
from ...base.objects import Object
from ...config.effective.control_plane.recorded_inputs import (
    KUBESCHEDULER_FIELDS,
    SCHEDULER_FIELDS,
    RecordedInputs,
    object_edits,
    read_inputs,
)
from ...operator.controlplane.desired import desired_content
from ...operator.controlplane.revision.content import RevisionContent
from ...operator.controlplane.revision.history import Revision
from ...operator.model.snapshot import Snapshot
from ..cluster.compare import changes, parse_revision
from ..cluster.revisions import find_revision
from ..console.errors import CommandError

RESTORED = KUBESCHEDULER_FIELDS - {"observedConfig"}
"""The fields of KubeScheduler.spec to restore; the operator owns the observed configuration."""


@dataclass(frozen=True, slots=True)
class Undo:
    """The objects to write, and the information to show before."""

    target: str  # what is restored, for messages
    scheduler: Object | None  # None if it does not change
    kubescheduler: Object | None  # None if it does not change
    patch: tuple[str, ...]  # the changes as a unified diff
    left: tuple[str, ...]  # the differences that will remain from the revision
    profiles: tuple[str, ...] = ()  # later edits of SchedulerProfiles, which are not restored
    others: str = (  # what causes the differences in `left`
        "OPERAND_IMAGE of the operator sets the image; its version causes other differences."
    )


def plan_undo(snapshot: Snapshot, revisions: Sequence[Revision], number: int | None) -> Undo:
    """Plan the restoration of an older revision.

    `revisions` are the complete ones, oldest first; `number` None means the latest installed one
    that differs from the current settings.

    Raises:
        CommandError: the revision does not exist, failed, or has no recorded inputs.
    """
    scheduler, kubescheduler = snapshot.scheduler or {}, snapshot.kubescheduler or {}
    image = next((parse_revision(r.content).image for r in reversed(revisions) if r.complete), "")
    snapshot = replace(snapshot, settings=replace(snapshot.settings, operand_image=image))
    current, _ = desired_content(snapshot)
    target = _target(revisions, number, current)
    inputs = _inputs(revisions, target)
    new_scheduler, new_kubescheduler = restored(snapshot, inputs)
    changed = replace(snapshot, scheduler=new_scheduler, kubescheduler=new_kubescheduler)
    content, findings = desired_content(changed)
    if content is None:
        problems = "; ".join(finding.text for finding in findings if finding.blocking)
        raise CommandError(
            f"the settings of revision {target.number} are no longer accepted: {problems}; "
            f"see `kubectl scheduler diff {target.number}`"
        )
    left = changes(parse_revision(_chosen(target.content)), parse_revision(content))
    return Undo(
        f"revision {target.number}",
        None if new_scheduler == scheduler else new_scheduler,
        None if new_kubescheduler == kubescheduler else new_kubescheduler,
        patch_of(snapshot, new_scheduler, new_kubescheduler),
        left if target.complete else (),
        object_edits(inputs, read_inputs(content.inputs) or inputs),
    )


def restored(snapshot: Snapshot, inputs: RecordedInputs) -> tuple[Object, Object]:
    """Return Scheduler and KubeScheduler with the recorded settings."""
    scheduler, kubescheduler = snapshot.scheduler or {}, snapshot.kubescheduler or {}
    return (
        _with(scheduler, inputs.scheduler, SCHEDULER_FIELDS),
        _with(kubescheduler, inputs.kubescheduler, RESTORED),
    )


def patch_of(snapshot: Snapshot, scheduler: Object, kubescheduler: Object) -> tuple[str, ...]:
    """Return the changes of both objects as a unified diff."""
    return (
        *_patch("Scheduler", snapshot.scheduler or {}, scheduler),
        *_patch("KubeScheduler", snapshot.kubescheduler or {}, kubescheduler),
    )


def _chosen(content: RevisionContent) -> RevisionContent:
    """Keep the parts that users control, without the credentials that the cluster renews."""
    return RevisionContent(
        {k: v for k, v in content.parts.items() if k in (names.CONFIG, names.POD)}
    )


def _target(
    revisions: Sequence[Revision], number: int | None, current: RevisionContent | None
) -> Revision:
    if number is not None:
        target = find_revision(revisions, number)
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
            f"the content of revision {target.number} was {same[-1].outcome}: "
            f"{same[-1].message or 'no reason recorded'}; choose another one: "
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


def _patch(kind: str, before: Object, after: Object) -> list[str]:
    old, new = (
        yaml.safe_dump({"spec": obj.get("spec") or {}}, allow_unicode=True).splitlines()
        for obj in (before, after)
    )
    name = f"{kind} {names.CLUSTER}"
    return list(difflib.unified_diff(old, new, f"{name} now", f"{name} then", lineterm=""))
