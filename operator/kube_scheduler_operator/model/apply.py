"""Writes that keep one of the operator's objects in its desired state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..base.objects import Object
from ..kube.resource import Resource
from .plan import Action, Create, Delete, Event, Replace


def keep(
    resource: Resource,
    existing: Mapping[str, Object],
    desired: Mapping[str, Any],
    fields: Sequence[str],
) -> tuple[Action, ...]:
    """Create `desired`, or correct its `fields`, labels, annotations and owner.

    For objects that the API server completes: additional keys stay. An object with another owner is
    never changed.
    """
    name, kind = desired["metadata"]["name"], desired["kind"]
    namespace = desired["metadata"].get("namespace")
    where = f"{kind}/{name}" + (f" -n {namespace}" if namespace else "")
    found = existing.get(name)
    if found is None:
        event = Event(f"{kind}Created", f"Created {where} because it was missing")
        return (Create(resource, desired, (event,), exclusive=True),)
    metadata = with_metadata(found, desired)
    changed = [field for field in fields if not contains(found.get(field), desired[field])]
    if metadata == found["metadata"] and not changed:
        return ()
    corrected = {**found, "metadata": metadata, **{field: desired[field] for field in changed}}
    what = ", ".join(changed) or "metadata"
    event = Event(f"{kind}Updated", f"Updated {where} because {what} changed")
    return (Replace(resource, corrected, events=(event,)),)


def with_metadata(found: Object, desired: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of `found` with the labels, annotations and owners of `desired`."""
    metadata = dict(found["metadata"])
    for key in ("labels", "annotations"):
        if desired["metadata"].get(key):
            metadata[key] = {**(metadata.get(key) or {}), **desired["metadata"][key]}
    owners = desired["metadata"].get("ownerReferences")
    if owners and not contains(metadata.get("ownerReferences"), owners):
        metadata["ownerReferences"] = owners
    return metadata


def contains(found: Any, desired: Any) -> bool:
    """Whether `found` has everything that `desired` has; it may have more keys.

    Empty values may be absent, because the API omits them.
    """
    if found == desired:  # the usual case, and much faster than the comparison below
        return True
    if isinstance(desired, Mapping):
        if not isinstance(found, Mapping):
            return found is None and not desired
        return all(contains(found.get(key), value) for key, value in desired.items())
    if isinstance(desired, list | tuple):
        if not isinstance(found, list | tuple):
            return found is None and not desired
        return len(found) == len(desired) and all(map(contains, found, desired))
    return False


def apply(
    resource: Resource,
    existing: Mapping[str, Object],
    desired: Mapping[str, Any],
    fields: Sequence[str],
) -> tuple[Action, ...]:
    """Create `desired`, or correct its `fields` and labels; other keys stay."""
    name, kind = desired["metadata"]["name"], desired["kind"]
    where = f"{kind}/{name} -n {desired['metadata']['namespace']}"
    found = existing.get(name)
    if found is None:
        event = Event(f"{kind}Created", f"Created {where} because it was missing")
        return (Create(resource, desired, (event,)),)
    labels = {**(found["metadata"].get("labels") or {}), **desired["metadata"]["labels"]}
    same_labels = labels == (found["metadata"].get("labels") or {})
    changed = [field for field in fields if found.get(field) != desired.get(field)]
    if found.get("type") != desired.get("type"):
        changed.append("type")
    if same_labels and not changed:
        return ()
    corrected = {**found, "metadata": {**found["metadata"], "labels": labels}}
    corrected.update({field: desired[field] for field in fields})
    what = ", ".join(changed) or "labels"
    event = Event(f"{kind}Updated", f"Updated {where} because {what} changed")
    if found.get("immutable") or "type" in changed:
        # An immutable object, or a Secret of another type, can only be created again.
        return Delete(resource, found), Create(resource, desired, (event,))
    return (Replace(resource, corrected, events=(event,)),)
