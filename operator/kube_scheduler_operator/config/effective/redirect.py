"""Redirects SchedulerProfiles and SchedulerExtenders of the control plane to another scheduler.

Where the provider runs the control plane's scheduler, objects without `spec.scheduler` belong to
the SecondaryScheduler that the operator creates. They are validated as if they named it, and
reported as their users wrote them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from ...base import names
from ...base.findings import Finding
from ...base.objects import Object, mapping
from .attachment import (
    CONTROL_PLANE,
    PROFILE,
    SPEC,
    ValidationResult,
    last_accepted,
    name_of,
    scheduler_of,
)

RENAMED: Final = "SchedulerNameReplaced"

Result = TypeVar("Result", bound=ValidationResult)


def redirected(
    objects: Mapping[str, Object] | None, scheduler: str, default: str = ""
) -> Mapping[str, Object] | None:
    """The objects of the control plane as objects of `scheduler`.

    The schedulerName `default`, if given, becomes the name of `scheduler`.
    """
    if objects is None:
        return None
    return {name: _redirected(obj, scheduler, default) for name, obj in objects.items()}


def _redirected(obj: Object, scheduler: str, default: str) -> Object:
    spec, accepted = mapping(obj.get("spec")), last_accepted(obj)
    changed = {**obj, "spec": _moved(name_of(obj), spec, scheduler, default)}
    if accepted is not None:
        moved = _moved(name_of(obj), accepted, scheduler, default)
        changed["status"] = {**mapping(obj.get("status")), "accepted": moved}
    return changed


def _moved(name: str, spec: Mapping[str, Any], scheduler: str, default: str) -> Mapping[str, Any]:
    if scheduler_of(spec) != CONTROL_PLANE:
        return spec
    moved = {**spec, "scheduler": scheduler}
    if default and (spec.get("schedulerName") or name) == default:
        moved["schedulerName"] = scheduler
    return moved


def as_written(result: Result, objects: Mapping[str, Object]) -> Result:
    obj = objects[result.name]
    if result.spec is None:
        return result
    written = obj.get("spec") if result.root == SPEC else last_accepted(obj)
    return replace(result, spec=mapping(written))


def renaming_note(name: str, default: str, scheduler: str) -> Finding:
    """Report on a profile that the provider's scheduler serves its schedulerName."""
    message = (
        f'the provider\'s scheduler serves "{default}", so this is the first profile of '
        f'SecondaryScheduler "{scheduler}"; Pods select it with spec.schedulerName "{scheduler}"'
    )
    where = f"{PROFILE.kind}/{name} {SPEC}.schedulerName"
    return Finding(names.WARNINGS, RENAMED, where, message, blocking=False)
