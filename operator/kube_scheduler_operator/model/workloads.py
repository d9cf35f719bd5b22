"""Keep a Deployment or a DaemonSet in its desired state, although the API server adds defaults.

Because of these, the object cannot be compared with the desired one. But every edit of its spec
raises its generation: one above that of the operator's last write is an edit by another client.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..base import names
from ..base.objects import Object, annotation
from ..kube.resource import Resource
from .apply import contains, with_metadata
from .plan import Action, Create, Event, Replace

HASH_LENGTH: Final = 10

CONTROL_PLANE_TOLERATIONS: Final[Sequence[Mapping[str, Any]]] = tuple(
    {"key": f"node-role.kubernetes.io/{role}", "operator": "Exists", "effect": "NoSchedule"}
    for role in ("control-plane", "master")
)
"""Pods may run on control-plane nodes; small clusters have no others."""

_RESTART: Final = "kubectl.kubernetes.io/restartedAt"


def digest(text: str) -> str:
    """The first digits of SHA-256: enough to distinguish versions of one object."""
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
    """Create the workload, or update it if its spec does not have the hash `spec_hash`.

    `what` is the version that it runs, `why` the reason of an update; both are for events.
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
        # A harmless edit, e.g. `kubectl rollout restart`.
        noted["metadata"]["annotations"][names.WRITTEN_GENERATION_ANNOTATION] = str(generation)
        event = Event(reason, f"Recorded generation {generation} of {where}")
        kept = with_metadata(found, noted)
        return (Replace(resource, {**found, "metadata": kept}, events=(event,)),)
    changed = {**found, "metadata": with_metadata(found, noted), "spec": wanted["spec"]}
    because = "another client changed it" if edited else why
    event = Event(reason, f"Updated {where} because {because}")
    return (Replace(resource, changed, events=(event,)),)


def _with_restart(wanted: Mapping[str, Any], found: Object) -> Mapping[str, Any]:
    """`wanted` with the annotation of `kubectl rollout restart`, which is not drift."""
    template = (found.get("spec") or {}).get("template") or {}
    mark = ((template.get("metadata") or {}).get("annotations") or {}).get(_RESTART)
    if mark is None:
        return wanted
    spec = wanted["spec"]
    metadata = spec["template"]["metadata"]
    annotations = {**(metadata.get("annotations") or {}), _RESTART: mark}
    marked = {**spec["template"], "metadata": {**metadata, "annotations": annotations}}
    return {**wanted, "spec": {**spec, "template": marked}}
