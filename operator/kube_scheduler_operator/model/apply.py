"""Keep an object of ours as it should be: made if it is missing, corrected where it differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .plan import Action, Create, Delete, Event, Replace

if TYPE_CHECKING:
    from ..base.objects import Object
    from ..kube.resource import Resource


def keep(
    resource: Resource,
    existing: Mapping[str, Object],
    wanted: Mapping[str, Any],
    fields: Sequence[str],
) -> tuple[Action, ...]:
    """Create `wanted`, or correct it where it does not have what its `fields` say, or its owner.

    For objects that the API server completes: what it or somebody else adds is kept. Nobody else's
    object is touched.
    """
    name, kind = wanted["metadata"]["name"], wanted["kind"]
    namespace = wanted["metadata"].get("namespace")
    where = f"{kind}/{name}" + (f" -n {namespace}" if namespace else "")
    found = existing.get(name)
    if found is None:
        event = Event(f"{kind}Created", f"Created {where} because it was missing")
        return (Create(resource, wanted, (event,), exclusive=True),)
    metadata = with_metadata(found, wanted)
    changed = [field for field in fields if not contains(found.get(field), wanted[field])]
    if metadata == found["metadata"] and not changed:
        return ()
    corrected = {**found, "metadata": metadata, **{field: wanted[field] for field in changed}}
    what = ", ".join(changed) or "metadata"
    event = Event(f"{kind}Updated", f"Updated {where} because {what} changed")
    return (Replace(resource, corrected, events=(event,)),)


def with_metadata(found: Object, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of `found` with the labels, annotations and owners of `wanted`."""
    metadata = dict(found["metadata"])
    for key in ("labels", "annotations"):
        if wanted["metadata"].get(key):
            metadata[key] = {**(metadata.get(key) or {}), **wanted["metadata"][key]}
    owners = wanted["metadata"].get("ownerReferences")
    if owners and not contains(metadata.get("ownerReferences"), owners):
        metadata["ownerReferences"] = owners
    return metadata


def contains(found: Any, wanted: Any) -> bool:
    """Whether `found` says everything that `wanted` does; it may have more keys.

    Something empty may be missing, because the API leaves it out.
    """
    if found == wanted:  # nearly always, and much faster than to look into them
        return True
    if isinstance(wanted, Mapping):
        if not isinstance(found, Mapping):
            return found is None and not wanted
        return all(contains(found.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list | tuple):
        if not isinstance(found, list | tuple):
            return found is None and not wanted
        return len(found) == len(wanted) and all(map(contains, found, wanted))
    return False


def apply(
    resource: Resource,
    existing: Mapping[str, Object],
    wanted: Mapping[str, Any],
    fields: Sequence[str],
) -> tuple[Action, ...]:
    """Create `wanted`, or correct it where `fields` or its labels differ; other keys are kept."""
    name, kind = wanted["metadata"]["name"], wanted["kind"]
    where = f"{kind}/{name} -n {wanted['metadata']['namespace']}"
    found = existing.get(name)
    if found is None:
        event = Event(f"{kind}Created", f"Created {where} because it was missing")
        return (Create(resource, wanted, (event,)),)
    labels = {**(found["metadata"].get("labels") or {}), **wanted["metadata"]["labels"]}
    same_labels = labels == (found["metadata"].get("labels") or {})
    changed = [field for field in fields if found.get(field) != wanted.get(field)]
    if found.get("type") != wanted.get("type"):
        changed.append("type")
    if same_labels and not changed:
        return ()
    corrected = {**found, "metadata": {**found["metadata"], "labels": labels}}
    corrected.update({field: wanted[field] for field in fields})
    what = ", ".join(changed) or "labels"
    event = Event(f"{kind}Updated", f"Updated {where} because {what} changed")
    if found.get("immutable") or "type" in changed:
        # Somebody sealed it, or it is a Secret of another type: it can only be made again.
        return Delete(resource, found), Create(resource, wanted, (event,))
    return (Replace(resource, corrected, events=(event,)),)
