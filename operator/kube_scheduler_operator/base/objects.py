"""Kubernetes objects as plain dictionaries: types and accessors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def mapping(value: Any) -> Mapping[str, Any]:
    """Return `value` if it is a mapping, otherwise an empty one: user input may have any type."""
    # Most values are of one of the first two, and asking for Mapping takes ten times as long.
    if value is None:
        return {}
    return value if isinstance(value, (dict, Mapping)) else {}


def entries(value: Any) -> Sequence[Any]:
    """Return `value` if it is a list, otherwise an empty one."""
    return value if isinstance(value, list) else ()


Object = Mapping[str, Any]
"""A Kubernetes object as the API returns it; never modified in place."""

NamespacedName = tuple[str, str]


def annotation(obj: Object, key: str) -> str:
    return str((obj["metadata"].get("annotations") or {}).get(key, ""))


def age(obj: Object) -> tuple[str, str]:
    """Return a sort key: creation time, then name."""
    metadata = obj["metadata"]
    return str(metadata.get("creationTimestamp") or ""), metadata["name"]


def uid_of(obj: Object) -> str:
    """Return the uid; empty for an object without one."""
    return str(obj["metadata"].get("uid") or "")


def version_of(obj: Object) -> int:
    """Return the resourceVersion; 0 for an object without one, which is older than any."""
    return int(obj["metadata"].get("resourceVersion") or 0)


def label(obj: Object, key: str) -> str:
    return str((obj["metadata"].get("labels") or {}).get(key, ""))


def controller_of(obj: Object) -> Mapping[str, Any] | None:
    """Return the owner that controls an object, such as the ReplicaSet of a Pod, if any."""
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


def is_controlled_by(obj: Object, uid: str) -> bool:
    return bool(uid) and (controller_of(obj) or {}).get("uid") == uid


def is_being_deleted(obj: Object) -> bool:
    """Return whether it was deleted, but still exists until finalizers or containers end."""
    return "deletionTimestamp" in obj["metadata"]
