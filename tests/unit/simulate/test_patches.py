"""Patches of kube-scheduler."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.simulate.patches import UnknownPatchError, merged, patched

STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"


def test_conditions_are_merged_by_type() -> None:
    status = {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}]}
    patch = {
        "$setElementOrder/conditions": [{"type": "B"}],
        "conditions": [{"type": "B", "status": "False", "reason": "x"}],
        "nominatedNodeName": "a",
    }
    assert merged(status, patch) == {
        "conditions": [
            {"type": "A", "status": "True"},
            {"type": "B", "status": "False", "reason": "x"},
        ],
        "nominatedNodeName": "a",
    }


def test_null_removes_a_field() -> None:
    assert merged({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"c": None, "d": 3}}) == {"b": {"d": 3}}


def test_an_item_is_deleted_by_its_key() -> None:
    """kube-scheduler gives back a ResourceClaim this way."""
    claim = {"status": {"reservedFor": [{"uid": "a", "name": "x"}, {"uid": "b", "name": "y"}]}}
    patch = {"status": {"reservedFor": [{"$patch": "delete", "uid": "a"}]}}
    assert patched(STRATEGIC, claim, patch)["status"]["reservedFor"] == [{"uid": "b", "name": "y"}]


def test_a_json_merge_patch_replaces_lists() -> None:
    pod = {"status": {"conditions": [{"type": "A"}], "phase": "Pending"}}
    patch: dict[str, Any] = {"status": {"conditions": []}}
    assert patched(MERGE, pod, patch) == {"status": {"conditions": [], "phase": "Pending"}}


def test_patches_of_other_types_are_not_applied() -> None:
    with pytest.raises(UnknownPatchError):
        patched("application/json-patch+json", {}, {})
