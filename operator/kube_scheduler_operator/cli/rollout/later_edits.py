"""Edits since a revision in objects that `rollout undo` does not write: their effects and way back.

An effect is found out, not guessed: the difference is gone when the operator composes the result
with that edit reverted.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...base.objects import Object, mapping
from ...config.effective.control_plane.recorded_inputs import ObjectEdit
from ...kube.resource import OPERATOR_SETTINGS, SCHEDULER_EXTENDERS, SCHEDULER_PROFILES

KINDS: Final = {
    kind.kind: kind for kind in (SCHEDULER_PROFILES, SCHEDULER_EXTENDERS, OPERATOR_SETTINGS)
}


@dataclass(frozen=True, slots=True)
class LaterEdit:
    what: str  # one sentence
    effects: tuple[str, ...] | None  # the differences that this edit alone causes; None: not known
    command: str  # reverts it


@dataclass(frozen=True, slots=True)
class Remaining:
    """The differences that remain after an undo, by their cause."""

    edits: tuple[LaterEdit, ...] = ()
    together: tuple[str, ...] = ()  # those that several of the edits cause
    others: tuple[str, ...] = ()  # those that no edit causes


NOTHING_REMAINS: Final = Remaining()


def trials(edits: Sequence[ObjectEdit]) -> list[tuple[ObjectEdit, ...]]:
    """The edits to revert at a time: each by itself, then all."""
    return [*((edit,) for edit in edits), *([tuple(edits)] if len(edits) > 1 else ())]


def attribute(
    left: Sequence[str],
    edits: Sequence[ObjectEdit],
    results: Sequence[Sequence[str] | None],
    live: Mapping[str, Mapping[str, Object]],
) -> Remaining:
    """Attribute the differences that are `left` to edits.

    `results` has the differences that are left after each of the `trials`; None: the result is
    refused. `live` has the objects that exist, by kind and name.
    """
    gone = [
        None if result is None else tuple(one for one in left if one not in result)
        for result in results
    ]
    alone = gone[: len(edits)]
    known = {effect for effects in alone for effect in effects or ()}
    together = tuple(one for one in (gone[-1:] or [()])[0] or () if one not in known)
    return Remaining(
        tuple(
            LaterEdit(edit.sentence, effects, _command(edit, live.get(edit.kind, {})))
            for edit, effects in zip(edits, alone, strict=True)
        ),
        together,
        tuple(one for one in left if one not in known and one not in together),
    )


def _command(edit: ObjectEdit, live: Mapping[str, Object]) -> str:
    kind = edit.kind.lower()
    if edit.before is None:
        return f"kubectl delete {kind} {shlex.quote(edit.name)}"
    if edit.name not in live:
        resource = KINDS[edit.kind]
        obj = {
            "apiVersion": resource.api_version,
            "kind": edit.kind,
            "metadata": {"name": edit.name},
            "spec": edit.before,
        }
        return f"printf %s {shlex.quote(json.dumps(obj))} | kubectl create -f -"
    spec = mapping(live[edit.name].get("spec"))
    current = {key: value for key, value in spec.items() if key not in edit.not_recorded}
    patch = json.dumps({"spec": _merge_patch(current, edit.before)})
    return f"kubectl patch {kind} {shlex.quote(edit.name)} --type merge -p {shlex.quote(patch)}"


def _merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON merge patch (RFC 7386) that makes `after` of `before`."""
    patch: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            if old != value:
                patch[key] = _merge_patch(old, value)
        elif key not in before or old != value:
            patch[key] = value
    return patch
