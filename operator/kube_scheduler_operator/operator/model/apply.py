"""Writes that keep one of the operator's objects in its desired state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ...base import names
from ...base.objects import Object, is_being_deleted
from ...kube.resource import Resource
from .plan import Action, Create, Delete, Event, Replace


def new_object(
    resource: Resource,
    name: str,
    namespace: str = "",
    *,
    labels: Mapping[str, str] = MappingProxyType({}),
    **metadata: Any,
) -> dict[str, Any]:
    """An object of the operator without content; `metadata` has further fields."""
    place = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, **place, "labels": {**labels, **names.OWN_LABELS}, **metadata},
    }


def annotated(obj: Object, notes: Mapping[str, str]) -> dict[str, Any]:
    """The object with these annotations beside its own."""
    metadata = obj["metadata"]
    annotations = {**(metadata.get("annotations") or {}), **notes}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}


def deletions(resource: Resource, objects: Mapping[str, Object]) -> tuple[Delete, ...]:
    """Delete the objects, by name, that are not being deleted."""
    return tuple(
        Delete(resource, obj) for _, obj in sorted(objects.items()) if not is_being_deleted(obj)
    )


def create(resource: Resource, desired: Mapping[str, Any], *, exclusive: bool = False) -> Create:
    """Create an object; `exclusive`: never replace one with another owner."""
    event = Event(f"{desired['kind']}Created", f"Created {_place(desired)} because it was missing")
    return Create(resource, desired, (event,), exclusive)


def keep(
    resource: Resource,
    existing: Mapping[str, Object],
    desired: Mapping[str, Any],
    fields: Sequence[str],
) -> tuple[Action, ...]:
    """Create `desired`, or correct its `fields`, labels, annotations and owner.

    For objects that the API server completes: other keys stay. An object with another owner is
    never changed.
    """
    current = existing.get(desired["metadata"]["name"])
    if current is None:
        return (create(resource, desired, exclusive=True),)
    metadata = with_metadata(current, desired)
    changed = [field for field in fields if not contains(current.get(field), desired[field])]
    if metadata == current["metadata"] and not changed:
        return ()
    corrected = {**current, "metadata": metadata, **{field: desired[field] for field in changed}}
    event = _updated(desired, ", ".join(changed) or "metadata")
    return (Replace(resource, corrected, events=(event,)),)


def with_metadata(current: Object, desired: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of `current` with the labels, annotations and owners of `desired`."""
    metadata = dict(current["metadata"])
    for key in ("labels", "annotations"):
        if desired["metadata"].get(key):
            metadata[key] = {**(metadata.get(key) or {}), **desired["metadata"][key]}
    owners = desired["metadata"].get("ownerReferences")
    if owners and not contains(metadata.get("ownerReferences"), owners):
        metadata["ownerReferences"] = owners
    return metadata


def contains(actual: Any, desired: Any) -> bool:
    """Whether `actual` has everything that `desired` has; it may have more keys.

    Empty values may be absent, because the API omits them.
    """
    if actual == desired:  # the usual case, and much faster
        return True
    if isinstance(desired, Mapping):
        if not isinstance(actual, Mapping):
            return actual is None and not desired
        return all(contains(actual.get(key), value) for key, value in desired.items())
    if isinstance(desired, list | tuple):
        if not isinstance(actual, list | tuple):
            return actual is None and not desired
        return len(actual) == len(desired) and all(map(contains, actual, desired))
    return False


def apply(
    resource: Resource,
    existing: Mapping[str, Object],
    desired: Mapping[str, Any],
    fields: Sequence[str],
) -> tuple[Action, ...]:
    """Create `desired`, or correct its `fields` and labels; other keys stay."""
    current = existing.get(desired["metadata"]["name"])
    if current is None:
        return (create(resource, desired),)
    labels = {**(current["metadata"].get("labels") or {}), **desired["metadata"]["labels"]}
    same_labels = labels == (current["metadata"].get("labels") or {})
    changed = [field for field in fields if current.get(field) != desired.get(field)]
    if current.get("type") != desired.get("type"):
        changed.append("type")
    if same_labels and not changed:
        return ()
    corrected = {**current, "metadata": {**current["metadata"], "labels": labels}}
    corrected.update({field: desired[field] for field in fields})
    event = _updated(desired, ", ".join(changed) or "labels")
    if current.get("immutable") or "type" in changed:
        # An immutable object, or a Secret of another type, can only be created again.
        return Delete(resource, current), Create(resource, desired, (event,))
    return (Replace(resource, corrected, events=(event,)),)


def _updated(obj: Mapping[str, Any], what: str) -> Event:
    return Event(f"{obj['kind']}Updated", f"Updated {_place(obj)} because {what} changed")


def _place(obj: Mapping[str, Any]) -> str:
    namespace = obj["metadata"].get("namespace")
    return f"{obj['kind']}/{obj['metadata']['name']}" + (f" -n {namespace}" if namespace else "")
