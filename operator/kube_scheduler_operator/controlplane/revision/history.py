"""Reading the revisions that exist: `revision-status-N` and the copies it owns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...base import names
from ...base.objects import Object, annotation
from .content import Content


@dataclass(frozen=True, slots=True)
class Revision:
    """One numbered revision as the API has it.

    Attributes:
        number: 1, 2, 3 ...
        status: the ConfigMap `revision-status-N`.
        ready: all copies exist and it may be installed.
        hash: identity of its content; empty if unknown.
        outcome: names.OUTCOME_*, empty while it is on its way.
        message: why, for refused and failed ones.
        quarantined: hashes of content that this revision replaced because it failed.
        parts: the names of the ConfigMaps that it should be copies of.
        copies: name of the part -> the copy, those that exist.
    """

    number: int
    status: Object
    ready: bool
    hash: str
    outcome: str
    message: str
    quarantined: frozenset[str]
    parts: tuple[str, ...]
    copies: Mapping[str, Object]

    @property
    def bad(self) -> bool:
        """Whether no node may be moved to it any more."""
        return self.outcome in (names.OUTCOME_REFUSED, names.OUTCOME_FAILED)

    @property
    def withdrawn(self) -> bool:
        """Whether nobody asks for it any more although nothing is wrong with it."""
        return self.outcome == names.OUTCOME_WITHDRAWN

    @property
    def complete(self) -> bool:
        """Whether every part is there."""
        return not self.missing

    @property
    def missing(self) -> tuple[str, ...]:
        """The copies that are not there, by name."""
        return tuple(copy_name(p, self.number) for p in self.parts if p not in self.copies)

    @property
    def content(self) -> Content:
        """Its content as the copies have it; only meaningful when complete."""
        parts = {name: dict(copy.get("data") or {}) for name, copy in self.copies.items()}
        return Content(parts, self.inputs)

    @property
    def inputs(self) -> str:
        """What users had set for it; empty where the operator that cut it did not record that."""
        return str((self.status.get("data") or {}).get(names.INPUTS_KEY, ""))

    @property
    def intact(self) -> bool:
        """Whether every part is there and is what it was when the revision was made."""
        return self.complete and self.content.hash == self.hash


def copy_name(part: str, number: int) -> str:
    """The name of a numbered copy, for example `config-7`."""
    return f"{part}-{number}"


def status_name(number: int) -> str:
    """The name of the ConfigMap that stands for a revision."""
    return f"{names.REVISION_STATUS}-{number}"


def read(config_maps: Mapping[str, Object], parts: tuple[str, ...]) -> tuple[Revision, ...]:
    """All revisions among `config_maps`, oldest first; names without a number are not ours.

    Args:
        config_maps: those of the target namespace, by name.
        parts: what revisions consist of (Platform.parts).
    """
    found = []
    prefix = f"{names.REVISION_STATUS}-"
    for name, obj in config_maps.items():
        digits = name.removeprefix(prefix)
        if not name.startswith(prefix) or not digits.isdecimal():
            continue
        number = int(digits)
        copies = {
            part: config_maps[copy_name(part, number)]
            for part in parts
            if copy_name(part, number) in config_maps
        }
        found.append(
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
    return tuple(sorted(found, key=lambda revision: revision.number))


def last_good(history: Sequence[Revision], before: int) -> Revision | None:
    """The newest revision older than `before` that was installed and whose content is worth a try.

    Content that was refused or failed again under a later number is not.
    """
    spoiled: set[str] = set()
    for revision in reversed(history):
        if revision.bad:
            spoiled.add(revision.hash)
        elif (
            revision.number < before
            and revision.outcome == names.OUTCOME_INSTALLED
            and revision.hash not in spoiled
            and revision.intact
        ):
            return revision
    return None
