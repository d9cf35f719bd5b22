"""What requests a management state: the annotation, else the field."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.management import (
    how_to_request,
    management_state,
    request_patch,
)
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT, PLATFORMS

FIELD = "spec.managementState"
ANNOTATION = f"metadata.annotations[{names.MANAGEMENT_ANNOTATION}]"


def kubescheduler(field: Any = None, annotation: Any = None) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "cluster"}
    if annotation is not None:
        metadata["annotations"] = {names.MANAGEMENT_ANNOTATION: annotation}
    return {"metadata": metadata, "spec": {} if field is None else {"managementState": field}}


@pytest.mark.parametrize(
    ("field", "annotation", "state", "path"),
    [
        (None, None, "Managed", FIELD),
        ("", "", "Managed", FIELD),
        ("Force", None, "Managed", FIELD),
        ("Unmanaged", None, "Unmanaged", FIELD),
        ("Removed", "", "Removed", FIELD),
        ("Managed", "Unmanaged", "Unmanaged", ANNOTATION),
        ("Managed", "Removed", "Removed", ANNOTATION),
        ("Removed", "Managed", "Managed", ANNOTATION),
        ("Unmanaged", "removed", "Unmanaged", FIELD),
        ("Unmanaged", "Removed" * 1000, "Unmanaged", FIELD),
        (["Removed"], {"a": 1}, "Managed", FIELD),
    ],
)
def test_a_known_annotation_counts_before_the_field(
    field: Any, annotation: Any, state: str, path: str
) -> None:
    effective = management_state(kubescheduler(field, annotation))
    assert (effective.state, effective.path) == (state, path)
    assert str(effective) == f"{path} of KubeScheduler cluster is {state}"


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=lambda p: p.name)
@pytest.mark.parametrize("state", ["Managed", "Unmanaged", "Removed"])
@pytest.mark.parametrize("before", [None, "Managed", "Unmanaged", "Removed"])
def test_a_request_is_in_effect_whatever_was_requested_before(
    platform: Any, state: str, before: str | None
) -> None:
    obj = kubescheduler("Managed", before)
    patch = request_patch(platform, state, obj)
    metadata, spec = patch.get("metadata", {}), patch.get("spec", {})
    annotations = {**obj["metadata"].get("annotations", {}), **metadata.get("annotations", {})}
    changed = kubescheduler(
        spec.get("managementState", "Managed"), annotations.get(names.MANAGEMENT_ANNOTATION)
    )
    assert management_state(changed).state == state


def test_on_openshift_nothing_is_requested_that_its_definition_refuses() -> None:
    assert "spec" not in request_patch(OPENSHIFT, "Removed")
    assert names.MANAGEMENT_ANNOTATION in how_to_request(OPENSHIFT, "Unmanaged")
    assert how_to_request(KUBEADM, "Unmanaged") == "set managementState to Unmanaged"
