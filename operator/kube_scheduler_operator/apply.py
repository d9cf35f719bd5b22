"""Keep an object of ours as it should be: made if it is missing, corrected where it differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .plan import Action, Create, Delete, Event, Replace

if TYPE_CHECKING:
    from .kube.resource import Resource
    from .snapshot import Object


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
