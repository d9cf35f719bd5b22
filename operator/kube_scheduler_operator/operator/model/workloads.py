"""Keep a Deployment or a DaemonSet in its desired state, although the API server adds defaults.

With defaults, the object differs from the desired one. But every edit of its spec raises its
generation: one above that of the operator's last write is an edit by another client.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...base import names
from ...base.objects import Object, annotation
from ...kube.resource import Resource
from .apply import annotated, contains, with_metadata
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
    current: Object | None,
    desired: Mapping[str, Any],
    spec_hash: str,
    *,
    what: str,
    why: str,
) -> tuple[Action, ...]:
    """Create the workload, or update it if its spec does not have the hash `spec_hash`.

    `what` is the version that it runs, `why` the reason of an update; both are for events.
    """
    kind, metadata = resource.kind, desired["metadata"]
    where = f"{kind}/{metadata['name']} -n {metadata['namespace']}"
    generation = int(current["metadata"].get("generation") or 0) if current else 0
    notes = {
        names.SPEC_HASH_ANNOTATION: spec_hash,
        names.WRITTEN_GENERATION_ANNOTATION: str(generation + 1),
    }
    noted = annotated(desired, notes)
    if current is None:
        event = Event(f"{kind}Created", f"Created {where} with {what}")
        return (Create(resource, noted, (event,), exclusive=True),)
    reason = f"{kind}Updated"
    written = annotation(current, names.WRITTEN_GENERATION_ANNOTATION)
    edited = not written.isdecimal() or generation > int(written)
    if annotation(current, names.SPEC_HASH_ANNOTATION) == spec_hash and not edited:
        kept = with_metadata(current, desired)
        if kept == current["metadata"]:
            return ()
        event = Event(reason, f"Updated {where} because metadata changed")
        return (Replace(resource, {**current, "metadata": kept}, events=(event,)),)
    desired = _with_restart(desired, current)
    if edited and contains(current.get("spec"), desired["spec"]):
        # A harmless edit, e.g. `kubectl rollout restart`.
        noted["metadata"]["annotations"][names.WRITTEN_GENERATION_ANNOTATION] = str(generation)
        event = Event(reason, f"Recorded generation {generation} of {where}")
        kept = with_metadata(current, noted)
        return (Replace(resource, {**current, "metadata": kept}, events=(event,)),)
    changed = {**current, "metadata": with_metadata(current, noted), "spec": desired["spec"]}
    because = "another client changed it" if edited else why
    event = Event(reason, f"Updated {where} because {because}")
    return (Replace(resource, changed, events=(event,)),)


def _with_restart(desired: Mapping[str, Any], current: Object) -> Mapping[str, Any]:
    """`desired` with the annotation of `kubectl rollout restart`, which is not drift."""
    template = (current.get("spec") or {}).get("template") or {}
    restarted_at = ((template.get("metadata") or {}).get("annotations") or {}).get(_RESTART)
    if restarted_at is None:
        return desired
    spec = desired["spec"]
    restarted = annotated(spec["template"], {_RESTART: restarted_at})
    return {**desired, "spec": {**spec, "template": restarted}}
