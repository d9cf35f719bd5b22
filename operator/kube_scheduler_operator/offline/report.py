"""What a check of files has found."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..base.findings import ERROR, Severity
from ..base.foreign_text import foreign
from ..base.limits import MESSAGE_LENGTH
from ..schedulerconfig.source import Position
from .checks import Item
from .reader_target import known_scheduler


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One finding in a file.

    Attributes:
        file: the display name of the file.
        position: line and column.
        kind: the kind of the document; empty if it has none.
        path: the field; empty for the document as a whole.
        reason: a CamelCase identifier, for programs.
        message: what is wrong, or what will happen.
        fix: the remedy.
        severity: an error keeps the scheduler from starting.
        subject: the object and the field, with names in place of list indices, so that it stays
            the same when lines and entries move.
        raised: whether it is an error only by the user's settings, so that the scheduler starts.
    """

    file: str
    position: Position
    kind: str
    path: str
    reason: str
    message: str
    fix: str
    severity: Severity
    subject: str = field(default="", compare=False)
    raised: bool = False

    def __post_init__(self) -> None:
        """The texts quote what is in files, which others may have written."""
        for name in ("path", "message", "fix"):
            object.__setattr__(self, name, foreign(getattr(self, name), MESSAGE_LENGTH))

    @property
    def prevents_start(self) -> bool:
        """Whether the scheduler would not start because of it."""
        return self.severity == ERROR and not self.raised


@dataclass(frozen=True, slots=True)
class IgnoredFinding:
    """A warning that the user ignores, and why."""

    finding: Diagnosis
    justification: str


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """All findings of some files.

    Attributes:
        findings: errors and warnings, by file and position.
        documents: (file, kind) of every checked document, in order.
        others: (file, kind) of objects that do not configure a scheduler.
        items: the checked documents that configure a scheduler.
        remarks: about files that were not checked.
        ignored: warnings that a comment or a flag ignores; not in `findings`.
        accepted: findings that are in the baseline; not in `findings`.
        readers: the programs that the files show as readers, `kube-scheduler 1.35` for example;
            empty: of a document they show none, and it was checked for the version of the run.
    """

    findings: tuple[Diagnosis, ...]
    documents: tuple[tuple[str, str], ...]
    others: tuple[tuple[str, str], ...] = ()
    items: tuple[Item, ...] = ()
    remarks: tuple[str, ...] = ()
    ignored: tuple[IgnoredFinding, ...] = ()
    accepted: tuple[Diagnosis, ...] = ()
    readers: tuple[str, ...] = ()

    def count(self, severity: Severity) -> int:
        """The number of findings of this severity."""
        return sum(finding.severity == severity for finding in self.findings)

    @property
    def starts(self) -> bool:
        """Whether the scheduler would start."""
        return not any(each.prevents_start for each in (*self.findings, *self.accepted))

    @property
    def is_empty(self) -> bool:
        """Whether the files have nothing to check."""
        return not self.documents

    @property
    def notes(self) -> tuple[str, ...]:
        """For which version configurations were checked whose kube-scheduler the files show."""
        note_of = {}
        for item in self.items:
            third = known_scheduler(item.reader)
            shown = item.version or third
            is_changed = item.reader is not None and item.reader.kustomized
            change = ", which a Kustomization sets" if is_changed else ""
            if (item.place or item.reader) and shown is not None:
                owner = item.place.owner if item.place else item.file
                version = item.version.short if item.version else ""
                reader = item.reader
                image = reader is not None and reader.image and reader.label != owner
                source = f", as in the image of {reader.label}{change}" if reader and image else ""
                what = f"kube-scheduler {version}"
                if third is not None:
                    what = f"{third.name} {third.version} (kube-scheduler {third.kubernetes.short})"
                note_of[owner] = f"{owner} was checked for {what}{source}"
        return (*note_of.values(), *self.remarks)
