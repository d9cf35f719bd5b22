"""The existing revisions: `revision-status-N` and the copies that it owns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ....base import names
from ....base.json_text import parse_json
from ....base.objects import Object, annotation
from ....base.revision_number import revision_number
from ....config.effective.attachment import Refusal
from ...model import operand_pods
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
    if rejected is None:
        return None
    try:
        config = parse_json(rejected.copies[names.CONFIG]["data"][names.CONFIG_KEY])
    except (KeyError, TypeError, ValueError):
        return None
    if not isinstance(config, Mapping):
        return None  # the copy was edited
    did = "refused" if rejected.outcome == names.OUTCOME_REFUSED else "did not stay healthy with"
    state = f"kube-scheduler {did} revision {rejected.number}; correct or revert this setting"
    return Refusal(config, rejected.message, state)
