"""Keep a Deployment or a DaemonSet of ours as it should be, although the API server completes it.

What such an object says cannot be compared with what was written. But its generation grows with
every edit of its spec: one beyond that of our last write is somebody's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ..base import names
from ..base.objects import annotation
from .apply import contains, with_metadata
from .plan import Action, Create, Event, Replace

if TYPE_CHECKING:
    from ..base.objects import Object
    from ..kube.resource import Resource

HASH_LENGTH: Final = 10

_RESTART: Final = "kubectl.kubernetes.io/restartedAt"


def digest(text: str) -> str:
    """The first digits of SHA-256: enough to tell versions of one object apart."""
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_LENGTH]


def keep_workload(
    resource: Resource,
    found: Object | None,
    wanted: Mapping[str, Any],
    spec_hash: str,
    *,
    what: str,
    why: str,
) -> tuple[Action, ...]:
    """Make the workload, or have it run what `wanted` says.

    Args:
        resource: its kind.
        found: as it is; None: it is missing.
        wanted: as it should be.
        spec_hash: over the spec of `wanted`.
        what: the version that it is to run, for the event of its making.
        why: what the reason would be if its spec is another one now, for the event.
    """
    kind, metadata = resource.kind, wanted["metadata"]
    where = f"{kind}/{metadata['name']} -n {metadata['namespace']}"
    generation = int(found["metadata"].get("generation") or 0) if found else 0
    notes = {
        names.SPEC_HASH_ANNOTATION: spec_hash,
        names.WRITTEN_GENERATION_ANNOTATION: str(generation + 1),
    }
    noted = {
        **wanted,
        "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), **notes}},
    }
    if found is None:
        event = Event(f"{kind}Created", f"Created {where} with {what}")
        return (Create(resource, noted, (event,), exclusive=True),)
    reason = f"{kind}Updated"
    written = annotation(found, names.WRITTEN_GENERATION_ANNOTATION)
    edited = not written.isdecimal() or generation > int(written)
    if annotation(found, names.SPEC_HASH_ANNOTATION) == spec_hash and not edited:
        kept = with_metadata(found, wanted)
        if kept == found["metadata"]:
            return ()
        event = Event(reason, f"Updated {where} because metadata changed")
        return (Replace(resource, {**found, "metadata": kept}, events=(event,)),)
    wanted = _with_restart(wanted, found)
    if edited and contains(found.get("spec"), wanted["spec"]):
        # Nothing that matters: `kubectl rollout restart`, say.
        noted["metadata"]["annotations"][names.WRITTEN_GENERATION_ANNOTATION] = str(generation)
        event = Event(reason, f"Took note of generation {generation} of {where}")
        kept = with_metadata(found, noted)
        return (Replace(resource, {**found, "metadata": kept}, events=(event,)),)
    changed = {**found, "metadata": with_metadata(found, noted), "spec": wanted["spec"]}
    because = "somebody changed it" if edited else why
    event = Event(reason, f"Updated {where} because {because}")
    return (Replace(resource, changed, events=(event,)),)


def _with_restart(wanted: Mapping[str, Any], found: Object) -> Mapping[str, Any]:
    """`wanted` with the mark that `kubectl rollout restart` leaves, which is nobody's mistake."""
    template = (found.get("spec") or {}).get("template") or {}
    mark = ((template.get("metadata") or {}).get("annotations") or {}).get(_RESTART)
    if mark is None:
        return wanted
    spec = wanted["spec"]
    metadata = spec["template"]["metadata"]
    annotations = {**(metadata.get("annotations") or {}), _RESTART: mark}
    marked = {**spec["template"], "metadata": {**metadata, "annotations": annotations}}
    return {**wanted, "spec": {**spec, "template": marked}}
