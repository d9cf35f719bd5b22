"""The revisions: `revision-status-N` and the copies that it owns, and the writes that make them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....base import names
from ....base.limits import MESSAGE_LENGTH
from ....base.objects import Object, annotation
from ....base.revision_number import revision_number
from ....config.effective.attachment import Refusal
from ....kube.resource import CONFIG_MAPS
from ...model import operand_pods
from ...model.apply import annotated, new_object
from ...model.plan import Action, Create, Delete, Event, Replace
from ...model.snapshot import Snapshot
from .content import RevisionContent


@dataclass(frozen=True, slots=True)
class Revision:
    number: int
    status: Object  # the ConfigMap `revision-status-N`
    ready: bool  # whether all copies exist and it may be installed
    hash: str  # identity of its content; empty if unknown
    outcome: str  # names.OUTCOME_*; empty until it has ended
    message: str  # why it was refused or failed
    quarantined: frozenset[str]  # hashes of failed content that this revision replaced
    parts: tuple[str, ...]  # names of the ConfigMaps that it has copies of
    copies: Mapping[str, Object]  # part -> its copy, for those that exist

    @property
    def bad(self) -> bool:
        """Whether it was refused or failed, so that no node may be moved to it."""
        return self.outcome in (names.OUTCOME_REFUSED, names.OUTCOME_FAILED)

    @property
    def ending(self) -> str:
        """What happened to it, as a sentence with the recorded reason."""
        if f"revision {self.number} " in self.message:
            return self.message
        reason = f": {self.message}" if self.message else ""
        return f"revision {self.number} {ended(self.outcome)}{reason}"

    @property
    def withdrawn(self) -> bool:
        """Whether its edit was reverted before any node ran it."""
        return self.outcome == names.OUTCOME_WITHDRAWN

    @property
    def complete(self) -> bool:
        return not self.missing

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(copy_name(part, self.number) for part in self.parts if part not in self.copies)

    @property
    def content(self) -> RevisionContent:
        """The content of its copies; only meaningful when complete."""
        parts = {name: dict(copy.get("data") or {}) for name, copy in self.copies.items()}
        return RevisionContent(parts, self.inputs)

    @property
    def inputs(self) -> str:
        """The settings of users for it; empty if an earlier operator did not record them."""
        return str((self.status.get("data") or {}).get(names.INPUTS_KEY, ""))

    @property
    def was_ready(self) -> bool:
        """Whether it was complete once: it is sealed since, whatever its annotations are now."""
        return self.ready or (bool(self.status.get("immutable")) and self.intact)

    @property
    def intact(self) -> bool:
        """Whether every copy exists and is unchanged since the revision was made."""
        return self.complete and self.content.hash == self.hash


def ended(outcome: str) -> str:
    """What happened to a configuration with this outcome, as a predicate."""
    return "failed" if outcome == names.OUTCOME_FAILED else f"was {outcome}"


def copy_name(part: str, number: int) -> str:
    return f"{part}-{number}"


def status_name(number: int) -> str:
    return f"{names.REVISION_STATUS}-{number}"


def read(config_maps: Mapping[str, Object], parts: tuple[str, ...]) -> tuple[Revision, ...]:
    """All revisions among the ConfigMaps, oldest first; `parts` are the ConfigMaps of each."""
    revisions = []
    prefix = f"{names.REVISION_STATUS}-"
    for name, obj in config_maps.items():
        number = revision_number(name.removeprefix(prefix)) if name.startswith(prefix) else 0
        if not number:
            continue
        copies = {
            part: config_maps[copy_name(part, number)]
            for part in parts
            if copy_name(part, number) in config_maps
        }
        revisions.append(
            Revision(
                number=number,
                status=obj,
                ready=annotation(obj, names.REVISION_READY_ANNOTATION) == "true",
                hash=(obj.get("data") or {}).get("hash", ""),
                outcome=annotation(obj, names.OUTCOME_ANNOTATION),
                message=annotation(obj, names.OUTCOME_MESSAGE_ANNOTATION),
                quarantined=frozenset(
                    annotation(obj, names.QUARANTINED_HASH_ANNOTATION).replace(",", " ").split()
                ),
                parts=parts,
                copies=copies,
            )
        )
    return tuple(sorted(revisions, key=lambda revision: revision.number))


def newest_first(history: Sequence[Revision]) -> Iterator[Revision]:
    """Those that are installed or being rolled out, then those replaced before they were."""
    for outcomes in (("", names.OUTCOME_INSTALLED), (names.OUTCOME_SUPERSEDED,)):
        yield from (revision for revision in reversed(history) if revision.outcome in outcomes)


def runs_revision(snapshot: Snapshot) -> bool:
    """Whether some node runs a revision, as far as the API shows it."""
    entries = snapshot.status.get("nodeStatuses") or ()
    return any(revision_number(entry.get("currentRevision")) for entry in entries) or any(
        operand_pods.read(pod).ours for pod in snapshot.operand_pods.values()
    )


def last_good(history: Sequence[Revision], before: int) -> Revision | None:
    """The newest installed revision older than `before` whose content never failed.

    Content that was refused or failed under a later number does not count.
    """
    bad: set[str] = set()
    for revision in reversed(history):
        if revision.bad:
            bad.add(revision.hash)
        elif (
            revision.number < before
            and revision.outcome == names.OUTCOME_INSTALLED
            and revision.hash not in bad
            and revision.intact
        ):
            return revision
    return None


def configurations_in_use(snapshot: Snapshot) -> Iterator[str]:
    """The configurations, as JSON, that schedulers run, are about to run or would return to."""
    target = (snapshot.config_maps.get(names.CONFIG) or {}).get("data") or {}
    yield str(target.get(names.CONFIG_KEY, ""))
    numbers = {
        int(entry.get(key) or 0)
        for entry in snapshot.status.get("nodeStatuses") or ()
        for key in ("currentRevision", "targetRevision")
    }
    history = read(snapshot.config_maps, snapshot.platform.parts)
    installable = ("", names.OUTCOME_INSTALLED)
    numbers |= {revision.number for revision in history[-1:] if revision.outcome in installable}
    for revision in history:
        if revision.number in numbers:
            copy = revision.copies.get(names.CONFIG) or {}
            yield str((copy.get("data") or {}).get(names.CONFIG_KEY, ""))


def refusal_of(rejected: Revision | None) -> Refusal | None:
    """kube-scheduler's error and its configuration; None if either does not exist."""
    config = rejected.content.config if rejected is not None else {}
    if rejected is None or not config:
        return None
    did = "refused" if rejected.outcome == names.OUTCOME_REFUSED else "did not stay healthy with"
    state = f"kube-scheduler {did} revision {rejected.number}; correct or revert this setting"
    return Refusal(config, rejected.message, state)


# --- writes: `revision-status-N`, its copies, "ready" and its outcome ---------------------------


def record_outcome(
    revision: Revision, outcome: str, message: str, time: str, *events: Event
) -> tuple[Action, ...]:
    """Record the outcome in `revision-status-N`; empty if it is recorded already."""
    if revision.outcome == outcome and revision.message == message:
        return ()
    notes = {
        names.OUTCOME_ANNOTATION: outcome,
        names.OUTCOME_TIME_ANNOTATION: time,
        names.OUTCOME_MESSAGE_ANNOTATION: message,
    }
    recorded = annotated(revision.status, notes)
    if not message:
        del recorded["metadata"]["annotations"][names.OUTCOME_MESSAGE_ANNOTATION]
    return (Replace(CONFIG_MAPS, recorded, events=events),)


def mark_ready(revision: Revision) -> tuple[Action, ...]:
    """Record that all copies exist: the revision can now be advertised and installed."""
    noted = annotated(revision.status, {names.REVISION_READY_ANNOTATION: "true"})
    reason = (revision.status.get("data") or {}).get("reason", "")
    event = Event("RevisionTriggered", f'new revision {revision.number} triggered by "{reason}"')
    return (Replace(CONFIG_MAPS, {**noted, "immutable": True}, events=(event,)),)


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
