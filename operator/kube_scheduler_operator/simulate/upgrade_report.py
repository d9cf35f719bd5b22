"""The report of `check --upgrade`, of which its text and its document are made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from ..base.field_types import document_of
from ..base.findings import listing
from ..base.foreign_text import foreign
from ..base.limits import MESSAGE_LENGTH
from ..config.language.versions import Version
from .edit_effect import EditEffect

NOTHING, CHANGES, NOT_KNOWN = 0, 1, 2
"""Exit codes, as those of `check` and `simulate`."""
_CHANGE: Final = "the upgrade"
_MOST_LINES: Final = 16
_LONGEST_LINE: Final = 450
"""Of a message, together within MESSAGE_LENGTH."""
_WORDS: Final = {NOTHING: "nothing", CHANGES: "changes", NOT_KNOWN: "notKnown"}


@dataclass(frozen=True, slots=True)
class Placements:
    """How the Pods of a scheduler fare with two versions of kube-scheduler."""

    before: Version
    after: Version
    effect: EditEffect

    @property
    def changes(self) -> bool:
        effect = self.effect
        return bool(effect.worse or effect.elsewhere or effect.newly_fitting)

    def document(self) -> dict[str, Any]:
        return {
            "before": str(self.before),
            "after": str(self.after),
            **document_of(self.effect),
            "notKnown": list(self.effect.unknown(_CHANGE)),
        }

    def lines(self) -> Iterator[str]:
        compared = f"pods, compared with {self.before}"
        for sentence in self.effect.known(f"with {self.before}"):
            yield f"{compared}: {sentence}"
        for sentence in self.effect.unknown(_CHANGE):
            yield f"not known: {compared}: {sentence}"
        for sentence in self.effect.omissions():
            yield f"{compared}: {sentence}"


@dataclass(frozen=True, slots=True)
class SchedulerStep:
    """What a minor version changes for one scheduler."""

    scheduler: str
    version: Version  # the minor version
    errors: tuple[str, ...] = ()  # why it would not start, or would serve a profile no longer
    extenders: tuple[str, ...] = ()  # what its extenders have to do
    program: Version | None = None  # of the kube-scheduler that was given configuration and flags
    answer: str = ""  # the error with which that ends; empty: it starts
    without: tuple[str, ...] = ()  # the refused feature gates that it was not given
    placements: tuple[Placements, ...] = ()
    unknown: tuple[str, ...] = ()  # what is not known, and why

    def __post_init__(self) -> None:
        """Bound the texts: they quote objects, files and programs of others."""
        for name in ("errors", "extenders", "unknown"):
            texts = tuple(foreign(text, MESSAGE_LENGTH) for text in getattr(self, name))
            object.__setattr__(self, name, texts)

    @property
    def changes(self) -> bool:
        moved = any(placements.changes for placements in self.placements)
        return bool(self.errors or self.extenders or moved)

    @property
    def is_known(self) -> bool:
        return not self.unknown and all(each.effect.is_known for each in self.placements)

    def document(self) -> dict[str, Any]:
        return {
            "scheduler": self.scheduler,
            "errors": list(self.errors),
            "extenders": list(self.extenders),
            "program": {
                "version": str(self.program),
                "error": self.answer,
                "withoutFeatureGates": list(self.without),
            }
            if self.program
            else None,
            "placements": [each.document() for each in self.placements],
            "notKnown": list(self.unknown),
        }

    def lines(self) -> Iterator[str]:
        for error in self.errors:
            yield f"refused: {error}"
        for duty in self.extenders:
            yield f"extenders: {duty}"
        if self.program is not None:
            rest = f" without {listing(self.without)}" if self.without else ""
            accepts = f"accepts configuration and flags{rest}"
            result = f"ends: {self.answer}" if self.answer else accepts
            yield f"tried: kube-scheduler {self.program} {result}"
        for placements in self.placements:
            yield from placements.lines()
        for text in self.unknown:
            yield f"not known: {text}"


@dataclass(frozen=True, slots=True)
class UpgradeReport:
    target: Version
    current: Mapping[str, Version]  # by scheduler
    steps: Sequence[SchedulerStep] = ()  # one minor version after the other
    notes: Sequence[str] = ()

    @property
    def code(self) -> int:
        """The exit code."""
        if any(step.changes for step in self.steps):
            return CHANGES
        return NOTHING if all(step.is_known for step in self.steps) else NOT_KNOWN

    @property
    def _by_version(self) -> Iterator[tuple[str, list[SchedulerStep]]]:
        steps = sorted(self.steps, key=lambda step: step.version)
        for version, own in groupby(steps, key=lambda step: step.version):
            yield version.short, list(own)

    def document(self) -> dict[str, Any]:
        return {
            "target": self.target.short,
            "result": _WORDS[self.code],
            "schedulers": [
                {"scheduler": title, "version": str(version)}
                for title, version in self.current.items()
            ],
            "steps": [
                {"version": version, "schedulers": [step.document() for step in steps]}
                for version, steps in self._by_version
            ],
            "notes": list(self.notes),
        }

    def lines(self) -> Iterator[str]:
        yield self._summary()
        for version, steps in self._by_version:
            yield ""
            yield f"{version}:"
            for step in steps:
                yield f"  {step.scheduler}"
                yield from (f"    {line}" for line in step.lines())
        if self.notes:
            yield ""
            yield from (f"note: {note}" for note in self.notes)

    def described(self) -> str:
        """Return the most important lines, for messages."""
        lines = [
            f"{step.version.short}, {step.scheduler}: {line}"
            for _, steps in self._by_version
            for step in steps
            for line in step.lines()
        ]
        lines += [f"note: {note}" for note in self.notes]
        shown = [foreign(line, _LONGEST_LINE) for line in lines[:_MOST_LINES]]
        if more := len(lines) - len(shown):
            command = f"kubectl scheduler check --upgrade {self.target.short}"
            shown.append(f"and {more} more lines: `{command}` prints all")
        return "\n".join((self._summary(), *shown))

    def _summary(self) -> str:
        by_version = dict(self._by_version)
        changing = [
            version for version, steps in by_version.items() if any(step.changes for step in steps)
        ]
        unknown = [
            version
            for version, steps in by_version.items()
            if not all(step.is_known for step in steps)
        ]
        head = f"Kubernetes {min(self.current.values()).short} to {self.target.short}"
        found = f"something changes in {', '.join(changing)}" if changing else "no change was found"
        rest = f"; not all is known of {', '.join(unknown)}" if unknown else ""
        return f"{head}: {found}{rest}"
