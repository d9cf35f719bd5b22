"""Patches of kube-scheduler, as the API server applies them: strategic merges and JSON merges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..base.objects import mapping

Object = dict[str, Any]

_STRATEGIC: Final = "application/strategic-merge-patch+json"
_MERGE: Final = "application/merge-patch+json"

# patchMergeKey of the lists in k8s.io/api that kube-scheduler patches
_KEYS: Final[Mapping[str, str]] = {
    "conditions": "type",
    "nodeAllocatableResourceClaimStatuses": "resourceClaimName",
    "reservedFor": "uid",
    "resourceClaimStatuses": "name",
}


class UnknownPatchError(ValueError):
    """A patch of a type that kube-scheduler does not send."""


def patched(content_type: str, target: Mapping[str, Any], patch: Mapping[str, Any]) -> Object:
    """Return an object after a PATCH with this Content-Type.

    Raises:
        UnknownPatchError: patches of this type are not applied here.
    """
    if content_type == _STRATEGIC:
        return merged(target, patch)
    if content_type == _MERGE:
        return _replaced(target, patch)
    raise UnknownPatchError(content_type)


def merged(target: Mapping[str, Any], patch: Mapping[str, Any]) -> Object:
    """Apply a strategic merge patch: objects and the items of keyed lists are merged."""
    obj = dict(target)
    for name, value in patch.items():
        if name.startswith("$"):  # directives about the order of items
            continue
        if value is None:
            obj.pop(name, None)
        elif isinstance(value, Mapping):
            obj[name] = merged(mapping(obj.get(name)), value)
        elif isinstance(value, list) and name in _KEYS:
            obj[name] = _merged_items(obj.get(name) or [], value, _KEYS[name])
            if not obj[name]:  # the API server stores no empty list
                del obj[name]
        else:
            obj[name] = value
    return obj


def _merged_items(before: list[Any], patch: list[Any], key: str) -> list[Any]:
    items = {item.get(key): item for item in before}
    for change in patch:
        if change.get("$patch") == "delete":
            items.pop(change.get(key), None)
        else:
            items[change.get(key)] = merged(items.get(change.get(key)) or {}, change)
    return list(items.values())


def _replaced(target: Mapping[str, Any], patch: Mapping[str, Any]) -> Object:
    """Apply a JSON merge patch (RFC 7386): objects are merged, lists replaced."""
    obj = dict(target)
    for name, value in patch.items():
        if value is None:
            obj.pop(name, None)
        elif isinstance(value, Mapping):
            obj[name] = _replaced(mapping(obj.get(name)), value)
        else:
            obj[name] = value
    return obj
