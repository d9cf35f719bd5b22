"""The writes that create a revision: `revision-status-N`, its copies, "ready" and its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....base import names
from ....base.limits import MESSAGE_LENGTH
from ....base.objects import Object
from ....kube.resource import CONFIG_MAPS
from ...model.apply import new_object
from ...model.plan import Action, Create, Delete, Event, Replace
from ...model.snapshot import Snapshot
from .content import RevisionContent
from .history import Revision, copy_name, status_name


def record_outcome(
    revision: Revision, outcome: str, message: str, time: str, *events: Event
) -> tuple[Action, ...]:
    """Record the outcome in `revision-status-N`; empty if it is recorded already."""
    if revision.outcome == outcome and revision.message == message:
        return ()
    metadata = dict(revision.status["metadata"])
    annotations = dict(metadata.get("annotations") or {})
    annotations[names.OUTCOME_ANNOTATION] = outcome
    annotations[names.OUTCOME_TIME_ANNOTATION] = time
    annotations.pop(names.OUTCOME_MESSAGE_ANNOTATION, None)
    if message:
        annotations[names.OUTCOME_MESSAGE_ANNOTATION] = message
    metadata["annotations"] = annotations
    return (Replace(CONFIG_MAPS, {**revision.status, "metadata": metadata}, events=events),)


def mark_ready(revision: Revision) -> tuple[Action, ...]:
    """Record that all copies exist: the revision can now be advertised and installed."""
    metadata = dict(revision.status["metadata"])
    metadata["annotations"] = {
        **(metadata.get("annotations") or {}),
        names.REVISION_READY_ANNOTATION: "true",
    }
    reason = (revision.status.get("data") or {}).get("reason", "")
    event = Event("RevisionTriggered", f'new revision {revision.number} triggered by "{reason}"')
    ready = {**revision.status, "metadata": metadata, "immutable": True}
    return (Replace(CONFIG_MAPS, ready, events=(event,)),)


def make_copies(
    snapshot: Snapshot, revision: Revision, content: RevisionContent
) -> tuple[Action, ...]:
    actions: list[Action] = []
    for part in revision.parts:
        desired = _copy(snapshot, revision, part, content.parts[part])
        existing = snapshot.config_maps.get(copy_name(part, revision.number))
        if existing is None:
            actions.append(Create(CONFIG_MAPS, desired))
        elif (existing.get("data") or {}) != desired["data"] or not existing.get("immutable"):
            # An immutable object cannot be corrected, only recreated.
            actions.append(Delete(CONFIG_MAPS, existing))
            actions.append(Create(CONFIG_MAPS, desired))
        elif _owner(existing) != revision.status["metadata"]["uid"]:
            metadata = {**existing["metadata"]}
            metadata["ownerReferences"] = desired["metadata"]["ownerReferences"]
            actions.append(Replace(CONFIG_MAPS, {**existing, "metadata": metadata}))
    return tuple(actions)


def _owner(obj: Object) -> str:
    owners = obj["metadata"].get("ownerReferences") or [{}]
    return str(owners[0].get("uid", ""))


def status_object(
    snapshot: Snapshot,
    number: int,
    content: RevisionContent,
    reason: str,
    quarantined: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """The initial `revision-status-N`, which is not ready.

    `reason` is why it is created, for users; `quarantined` are hashes of failed content that it
    replaces.
    """
    annotations = {names.REVISION_READY_ANNOTATION: "false"}
    if quarantined:
        annotations[names.QUARANTINED_HASH_ANNOTATION] = ",".join(sorted(quarantined))
    if content.placements:
        annotations[names.PLACEMENT_CHECK_ANNOTATION] = content.placements[:MESSAGE_LENGTH]
    data = {"revision": str(number), "reason": reason, "hash": content.hash}
    if content.inputs:
        data[names.INPUTS_KEY] = content.inputs
    namespace = snapshot.platform.target_namespace
    made = new_object(CONFIG_MAPS, status_name(number), namespace, annotations=annotations)
    return {**made, "data": data}


def _copy(
    snapshot: Snapshot, revision: Revision, part: str, data: Mapping[str, str]
) -> dict[str, Any]:
    metadata = revision.status["metadata"]
    owner = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    name = copy_name(part, revision.number)
    namespace = snapshot.platform.target_namespace
    copy = new_object(CONFIG_MAPS, name, namespace, ownerReferences=[owner])
    return {**copy, "data": dict(data), "immutable": True}
