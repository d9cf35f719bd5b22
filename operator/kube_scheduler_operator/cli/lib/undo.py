"""What `kubectl scheduler rollout undo` writes: the inputs of an older revision. Pure.

The content of a revision is never put back behind the custom resources' back: the operator would
take it for drift, and the next edit would bring the mistake again. What was written in their fields
is, and the operator's own composition says beforehand whether that gives the old content again.
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
from ...controlplane.desired import wanted
from ...controlplane.revision.content import Content
from ...controlplane.revision.history import Revision
from ...controlplane.revision.inputs import (
    KUBESCHEDULER_FIELDS,
    SCHEDULER_FIELDS,
    RecordedInputs,
    object_edits,
    read_inputs,
)
from ...model.snapshot import Snapshot
from .common import CommandError, find_revision
from .compare import changes, take_apart

RESTORED = KUBESCHEDULER_FIELDS - {"observedConfig"}
"""The fields of KubeScheduler.spec that are written; what is observed is the operator's."""


@dataclass(frozen=True, slots=True)
class Undo:
    """What to write, and what to say before.

    Attributes:
        revision: whose inputs come back.
        scheduler: the Scheduler as it should be; None if it is so already.
        kubescheduler: the KubeScheduler as it should be; None if it is so already.
        patch: what changes in them, as a unified diff.
        left: how the outcome will differ from that revision all the same; empty: not at all.
        profiles: what became of SchedulerProfiles since; they are their owners' and not written.
    """

    revision: Revision
    scheduler: Object | None
    kubescheduler: Object | None
    patch: tuple[str, ...]
    left: tuple[str, ...]
    profiles: tuple[str, ...] = ()


def plan_undo(snapshot: Snapshot, revisions: Sequence[Revision], number: int | None) -> Undo:
    """How to ask for an older revision again.

    Args:
        snapshot: Scheduler, KubeScheduler and all else that a composition reads, as they are now.
        revisions: those that were made ready, oldest first.
        number: which one; None: the newest installed one that is not what is asked for now.

    Raises:
        CommandError: there is none, it is known to be bad, or its inputs are not known.
    """
    scheduler, kubescheduler = snapshot.scheduler or {}, snapshot.kubescheduler or {}
    image = next((take_apart(r.content).image for r in reversed(revisions) if r.complete), "")
    snapshot = replace(snapshot, settings=replace(snapshot.settings, operand_image=image))
    asked, _ = wanted(snapshot)
    target = _target(revisions, number, asked)
    inputs = _inputs(revisions, target)
    new_scheduler = _with(scheduler, inputs.scheduler, SCHEDULER_FIELDS)
    new_kubescheduler = _with(kubescheduler, inputs.kubescheduler, RESTORED)
    changed = replace(snapshot, scheduler=new_scheduler, kubescheduler=new_kubescheduler)
    content, findings = wanted(changed)
    if content is None:
        problems = "; ".join(finding.text for finding in findings if finding.blocking)
        raise CommandError(
            f"the inputs of revision {target.number} are not accepted any more: {problems}; "
            f"`kubectl scheduler diff {target.number}` shows what it had"
        )
    patch = (
        *_patch("Scheduler", scheduler, new_scheduler),
        *_patch("KubeScheduler", kubescheduler, new_kubescheduler),
    )
    left = changes(take_apart(_chosen(target.content)), take_apart(content))
    return Undo(
        target,
        None if new_scheduler == scheduler else new_scheduler,
        None if new_kubescheduler == kubescheduler else new_kubescheduler,
        patch,
        left if target.complete else (),
        object_edits(inputs, read_inputs(content.inputs) or inputs),
    )


def _chosen(content: Content) -> Content:
    """What users decide about: without the credentials that the cluster keeps and renews."""
    return Content({k: v for k, v in content.parts.items() if k in (names.CONFIG, names.POD)})


def _target(revisions: Sequence[Revision], number: int | None, asked: Content | None) -> Revision:
    if number is not None:
        found = find_revision(revisions, number)
    else:
        installed = (
            revision
            for revision in reversed(revisions)
            if revision.outcome == names.OUTCOME_INSTALLED and _chosen(revision.content) != asked
        )
        chosen = next(installed, None)
        if chosen is None:
            raise CommandError(
                "there is nothing to go back to: no older revision that was healthy is kept"
            )
        found = chosen
    same = [revision for revision in revisions if revision.hash == found.hash]
    if same[-1].bad:
        raise CommandError(
            f"revision {found.number} has content that was {same[-1].outcome}: "
            f"{same[-1].message or 'nobody said why'}; choose another one: "
            "kubectl scheduler history"
        )
    return found


def _inputs(revisions: Sequence[Revision], target: Revision) -> RecordedInputs:
    """Its own, or those of another revision with the same content."""
    content = _chosen(target.content)
    candidates = [target, *(r for r in reversed(revisions) if _chosen(r.content) == content)]
    for revision in candidates:
        inputs = read_inputs(revision.inputs)
        if inputs is not None:
            return inputs
    raise CommandError(
        f"revision {target.number} was made by an operator that did not record what had been set "
        f"for it; `kubectl scheduler diff {target.number}` shows what it had: set that in "
        "Scheduler and KubeScheduler by hand"
    )


def _with(obj: Object, values: Mapping[str, Any], fields: frozenset[str]) -> Object:
    """A copy of `obj` whose spec has exactly these values in `fields`."""
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
