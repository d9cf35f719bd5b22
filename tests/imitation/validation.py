"""The rules that the API itself enforces on the objects of the operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Fields = Mapping[str, Any]


def sealed_problem(old: Fields, new: Fields) -> str:
    """Why an immutable ConfigMap cannot be changed like this; empty if it can."""
    if not old.get("immutable"):
        return ""
    if not new.get("immutable"):
        return "immutable: Forbidden: field is immutable when `immutable` is set"
    for key in ("data", "binaryData"):
        if (old.get(key) or {}) != (new.get(key) or {}):
            return f"{key}: Forbidden: field is immutable when `immutable` is set"
    return ""


def kubescheduler_problem(old: Fields, new: Fields) -> str:
    """Which rule of the CustomResourceDefinition a new status breaks; empty if none."""
    if "latestAvailableRevision" in old and (
        new.get("latestAvailableRevision", old["latestAvailableRevision"])
        < old["latestAvailableRevision"]
    ):
        return "status.latestAvailableRevision: must only increase"
    before = {entry["nodeName"]: entry for entry in old.get("nodeStatuses") or ()}
    entries = new.get("nodeStatuses") or ()
    if len({entry["nodeName"] for entry in entries}) != len(entries):
        return "status.nodeStatuses: Duplicate value"
    if sum(bool(entry.get("targetRevision")) for entry in entries) > 1:
        return "no more than 1 node status may have a nonzero targetRevision"
    for entry in entries:
        problem = _entry_problem(before.get(entry["nodeName"]), entry)
        if problem:
            return f"status.nodeStatuses[{entry['nodeName']}]{problem}"
    for condition in new.get("conditions") or ():
        if not {"type", "status", "lastTransitionTime"} <= set(condition):
            return f"status.conditions: Required value in {condition}"
    return ""


def _entry_problem(old: Fields | None, new: Fields) -> str:
    if old is None:
        for key in ("currentRevision", "targetRevision"):
            if key in new:
                return f".{key}: cannot be set when the node status is created"
    elif "currentRevision" in old:
        if "currentRevision" not in new:
            return ".currentRevision: cannot be unset once set"
        if new["currentRevision"] < old["currentRevision"]:
            return ".currentRevision: must only increase"
    if "nodeUID" in new and len(new["nodeUID"]) != 36:
        return ".nodeUID: must be a uuid"
    return ""
