"""The management state that users request: Managed, Unmanaged or Removed.

OpenShift's own definition of KubeScheduler accepts only Managed and Force in spec.managementState.
An annotation requests the other states there; it counts on every platform, and before the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from . import names
from .objects import mapping
from .platform import Platform

MANAGED: Final = "Managed"
UNMANAGED: Final = "Unmanaged"
REMOVED: Final = "Removed"
OPENSHIFTS: Final = (MANAGED, "Force")
"""What the field accepts by OpenShift's own definition."""
STATES: Final = (*OPENSHIFTS, UNMANAGED, REMOVED)
"""What the field and the annotation accept; Force means Managed."""

_FIELD: Final = "spec.managementState"
_LENGTH: Final = 32
"""Characters of the annotation that are read; every known value is shorter."""

ANNOTATION_PATH: Final = f"metadata.annotations[{names.MANAGEMENT_ANNOTATION}]"


@dataclass(frozen=True, slots=True)
class ManagementState:
    """The state in effect, and the path of the value that requests it."""

    state: str
    path: str

    def __str__(self) -> str:
        return f"{self.path} of KubeScheduler {names.CLUSTER} is {self.state}"


def annotated_state(kubescheduler: Mapping[str, Any] | None) -> str:
    """Return the annotation, at most its beginning; empty if it is not set."""
    annotations = mapping(mapping(mapping(kubescheduler).get("metadata")).get("annotations"))
    return str(annotations.get(names.MANAGEMENT_ANNOTATION) or "")[:_LENGTH]


def management_state(kubescheduler: Mapping[str, Any] | None) -> ManagementState:
    """Return the annotation's state, else the field's; an unknown value counts as unset."""
    annotated = annotated_state(kubescheduler)
    if annotated in STATES:
        return ManagementState(_known(annotated), ANNOTATION_PATH)
    return ManagementState(
        _known(mapping(mapping(kubescheduler).get("spec")).get("managementState")), _FIELD
    )


def _known(value: object) -> str:
    return str(value) if value in (UNMANAGED, REMOVED) else MANAGED


def how_to_request(platform: Platform, state: str) -> str:
    """Return an instruction for messages, which the API of this platform accepts."""
    if platform.brings_definitions:
        return f"set the annotation {names.MANAGEMENT_ANNOTATION} of KubeScheduler to {state}"
    return f"set managementState to {state}"


def request_patch(
    platform: Platform, state: str, kubescheduler: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a merge patch of KubeScheduler, or fields of a new one, that request `state`."""
    if platform.brings_definitions:
        return {"metadata": {"annotations": {names.MANAGEMENT_ANNOTATION: state}}}
    patch: dict[str, Any] = {"spec": {"managementState": state}}
    if annotated_state(kubescheduler):  # it would count before the field
        patch["metadata"] = {"annotations": {names.MANAGEMENT_ANNOTATION: None}}
    return patch
