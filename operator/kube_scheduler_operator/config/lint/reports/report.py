"""What a check of files has found."""

from __future__ import annotations

from dataclasses import dataclass, field

from ....base.findings import ERROR, Severity
from ....base.foreign_text import foreign
from ....base.limits import MESSAGE_LENGTH
from ....base.source.reader import Position
from ..checks import Item, known_scheduler
from ..forms.form import CommandLine


@dataclass(frozen=True, slots=True)
class FileFinding:
    """One finding in a file."""

    file: str  # the display name of the file
    position: Position
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
        """Sanitize the texts: they quote files, which others may have written."""
        for name in ("path", "message", "fix"):
            object.__setattr__(self, name, foreign(getattr(self, name), MESSAGE_LENGTH))

    @property
    def prevents_start(self) -> bool:
        """Whether the scheduler would not start because of it."""
        return self.severity == ERROR and not self.raised


@dataclass(frozen=True, slots=True)
class IgnoredFinding:
    """A warning that the user ignores, and why."""

    finding: FileFinding
    justification: str


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """All findings of some files."""

    findings: tuple[FileFinding, ...]  # errors and warnings, by file and position
    documents: tuple[tuple[str, str], ...]  # (file, kind) of every checked document, in order
    # (file, kind) of objects that do not configure a scheduler
    others: tuple[tuple[str, str], ...] = ()
    items: tuple[Item, ...] = ()  # the checked documents that configure a scheduler
    commands: tuple[CommandLine, ...] = ()  # the schedulers that they start
    remarks: tuple[str, ...] = ()  # about files that were not checked
    # warnings that a comment or a flag ignores; not in `findings`
    ignored: tuple[IgnoredFinding, ...] = ()
    accepted: tuple[FileFinding, ...] = ()  # findings that are in the baseline; not in `findings`
    # the programs that the files show as readers, such as `kube-scheduler 1.35`; empty: a document
    # has no visible reader and was checked for the version of the run
    readers: tuple[str, ...] = ()
    is_on_record: bool = True  # False: a reader is older than the versions of the check

    def count(self, severity: Severity) -> int:
        return sum(finding.severity == severity for finding in self.findings)

    @property
    def starts(self) -> bool | None:
        """Whether the scheduler would start; None: not known, its version is not on record."""
        if not self.is_on_record:
            return None
        return not any(finding.prevents_start for finding in (*self.findings, *self.accepted))

    @property
    def is_empty(self) -> bool:
        return not self.documents

    @property
    def notes(self) -> tuple[str, ...]:
        """The versions that configurations were checked for, where files show them, and remarks."""
        note_of = {}
        for item in self.items:
            reader, third = item.reader, known_scheduler(item.reader)
            if not (item.place or reader) or (item.version or third) is None:
                continue
            owner = item.place.owner if item.place else item.file
            what = f"kube-scheduler {item.version.short if item.version else ''}"
            if third is not None:
                what = f"{third.name} {third.version} (kube-scheduler {third.kubernetes.short})"
            source = ""
            if reader is not None and reader.image and reader.label != owner:
                change = ", which a Kustomization sets" if reader.kustomized else ""
                source = f", as in the image of {reader.label}{change}"
            if third is not None and third.newer:
                source += f"; its version {third.newer} is not on record, so plugins and arguments"
                source += " of its own were not checked"
            note_of[owner] = f"{owner} was checked for {what}{source}"
        return (*note_of.values(), *self.remarks)
