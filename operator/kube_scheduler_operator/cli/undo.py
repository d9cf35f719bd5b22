"""What `kubectl scheduler rollout undo` writes: the inputs of an older revision. Pure.

The content of a revision is never put back behind the custom resources' back: the operator would
take it for drift, and the next edit would bring the mistake again. What was written in their fields
is, and the operator's own composition says beforehand whether that gives the old content again.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import yaml

from .. import names
from ..platform import Platform
from ..reconcile import wanted
from ..revision.content import Content
from ..revision.history import Revision
from ..revision.inputs import FIELDS, RecordedInputs, read_inputs
from ..settings import Settings
from ..snapshot import Object, Snapshot
from .common import CommandError, find_revision
from .compare import changes, take_apart

RESTORED = FIELDS - {"observedConfig"}
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
    """

    revision: Revision
    scheduler: Object | None
    kubescheduler: Object | None
    patch: tuple[str, ...]
    left: tuple[str, ...]


def plan_undo(
    platform: Platform,
    scheduler: Object,
    kubescheduler: Object,
    revisions: Sequence[Revision],
    number: int | None,
) -> Undo:
    """How to ask for an older revision again.

    Args:
        platform: the kind of cluster.
        scheduler: Scheduler "cluster" as it is now.
        kubescheduler: KubeScheduler "cluster" as it is now.
        revisions: complete ones, oldest first.
        number: which one; None: the newest installed one that is not what is asked for now.

    Raises:
        CommandError: there is none, it is known to be bad, or its inputs are not known.
    """
    image = next((take_apart(r.content).image for r in reversed(revisions) if r.complete), "")

    def outcome(one: Object, other: Object) -> tuple[Content | None, list[str]]:
        snapshot = Snapshot(
            now=datetime(1970, 1, 1, tzinfo=UTC),  # no composition depends on it
            platform=platform,
            settings=Settings(operand_image=image),
            scheduler=one,
            kubescheduler=other,
        )
        content, findings = wanted(snapshot)
        return content, [finding.text for finding in findings if finding.blocking]

    asked, _ = outcome(scheduler, kubescheduler)
    target = _target(revisions, number, asked.hash if asked is not None else "")
    inputs = _inputs(revisions, target)
    new_scheduler = _with(scheduler, {"profile": inputs.profile}, {"profile"})
    new_kubescheduler = _with(kubescheduler, inputs.kubescheduler, RESTORED)
    content, problems = outcome(new_scheduler, new_kubescheduler)
    if content is None:
        raise CommandError(
            f"the inputs of revision {target.number} are not accepted any more: "
            f"{'; '.join(problems)}; `kubectl scheduler diff {target.number}` shows what it had"
        )
    patch = (
        *_patch("Scheduler", scheduler, new_scheduler),
        *_patch("KubeScheduler", kubescheduler, new_kubescheduler),
    )
    left = changes(take_apart(target.content), take_apart(content)) if target.complete else ()
    return Undo(
        target,
        None if new_scheduler == scheduler else new_scheduler,
        None if new_kubescheduler == kubescheduler else new_kubescheduler,
        patch,
        left,
    )


def _target(revisions: Sequence[Revision], number: int | None, asked: str) -> Revision:
    if number is not None:
        found = find_revision(revisions, number)
    else:
        installed = (
            revision
            for revision in reversed(revisions)
            if revision.outcome == names.OUTCOME_INSTALLED and revision.hash != asked
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
    candidates = [target, *(r for r in reversed(revisions) if r.hash == target.hash)]
    for revision in candidates:
        inputs = read_inputs(revision.inputs)
        if inputs is not None:
            return inputs
    raise CommandError(
        f"revision {target.number} was made by an operator that did not record what had been set "
        f"for it; `kubectl scheduler diff {target.number}` shows what it had: set that in "
        "Scheduler and KubeScheduler by hand"
    )


def _with(obj: Object, values: Mapping[str, Any], fields: frozenset[str] | set[str]) -> Object:
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
