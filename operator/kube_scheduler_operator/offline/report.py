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
    """One finding in a file."""

    file: str  # the display name of the file
    position: Position  # line and column
    kind: str  # the kind of the document; empty if it has none
    path: str  # the field; empty for the document as a whole
    reason: str  # a CamelCase identifier, for programs
    message: str  # what is wrong, or what will happen
    fix: str  # the remedy
    severity: Severity  # an error keeps the scheduler from starting
    # the object and the field, with names in place of list indices, so that it stays the same when
    # lines and entries move
    subject: str = field(default="", compare=False)
    # whether it is an error only by the user's settings, so that the scheduler starts
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
    """All findings of some files."""

    findings: tuple[Diagnosis, ...]  # errors and warnings, by file and position
    documents: tuple[tuple[str, str], ...]  # (file, kind) of every checked document, in order
    # (file, kind) of objects that do not configure a scheduler
    others: tuple[tuple[str, str], ...] = ()
    items: tuple[Item, ...] = ()  # the checked documents that configure a scheduler
    remarks: tuple[str, ...] = ()  # about files that were not checked
    # warnings that a comment or a flag ignores; not in `findings`
    ignored: tuple[IgnoredFinding, ...] = ()
    accepted: tuple[Diagnosis, ...] = ()  # findings that are in the baseline; not in `findings`
    # the programs that the files show as readers, `kube-scheduler 1.35` for example; empty: of a
    # document they show none, and it was checked for the version of the run
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
