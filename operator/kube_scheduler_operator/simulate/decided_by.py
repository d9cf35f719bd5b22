"""Which kube-scheduler decided an answer, with which configuration: the same for all commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ..base.field_types import named
from ..config.language.versions import Version

DEFAULTS: Final = "its defaults"


@dataclass(frozen=True, slots=True)
class DecidingConfiguration:
    scheduler: str  # for messages
    names: tuple[str, ...] = named("schedulerNames")  # that it serves
    origin: str = ""  # what it is, for messages: a file, a revision, the defaults
    configuration: Mapping[str, Any] = named("configuration", default_factory=dict)
    left_out: tuple[str, ...] = ()  # extenders that do not take part, and may decide otherwise


@dataclass(frozen=True, slots=True)
class ClusterDecidedBy:
    """What would decide in the cluster."""

    version: str | None = None  # such as 1.37.2; None: nothing shows it
    origin: str = ""  # what shows it


@dataclass(frozen=True, slots=True)
class DecidedBy:
    """The program and the configurations behind an answer."""

    version: str | None = None  # of the program; None: not known
    image: str = ""  # that a Job runs; empty: a program of this machine
    chosen: str = ""  # the flag or variable that chose the program; empty: its version did
    cluster: ClusterDecidedBy = ClusterDecidedBy()
    configurations: tuple[DecidingConfiguration, ...] = ()

    @property
    def is_substitute(self) -> bool:
        """Whether another minor version decided than would in the cluster."""
        own, used = self.cluster.version, self.version
        if own is None or used is None:
            return False
        return Version.parse(own).short != Version.parse(used).short

    def of(self, scheduler_name: str, left_out: Iterable[str] | None = None) -> DecidedBy:
        """Return it for one schedulerName, and with these extenders that are left out."""
        serving = tuple(one for one in self.configurations if scheduler_name in one.names)[:1]
        if left_out is not None:
            serving = tuple(replace(one, left_out=tuple(left_out)) for one in serving)
        return replace(self, configurations=serving)

    def first_lines(self) -> Iterator[str]:
        """Yield what comes before the answer: why it may not be that of the cluster."""
        yield from self.substitute()
        yield from without_extenders((self,))

    def substitute(self) -> Iterator[str]:
        """Yield a sentence that another version decides than in the cluster."""
        if not self.is_substitute:
            return
        instead = f"{self.cluster.version} ({self.cluster.origin})"
        decides = f"kube-scheduler {self.version} decides here, not {instead}"
        if self.image:
            yield f"{decides}: the Job runs {self.image}."
        elif self.chosen:
            yield f"{decides}: {self.chosen} chose it."
        else:
            yield (
                f"{decides}, because no kube-scheduler of that version is on this machine: name "
                "one with --kube-scheduler PATH."
            )

    def program(self) -> str:
        """Say which version decides."""
        program = f"the kube-scheduler of {self.image}"
        if self.version is not None:
            program = f"kube-scheduler {self.version}"
        unknown = "" if self.cluster.version else " (nothing shows the version of the cluster)"
        return f"{program} decides{unknown}"

    def note(self) -> str:
        """Say which version decides, with which configurations."""
        return self.used_by(self.program())

    def used_by(self, what: str) -> str:
        """Say with which configurations something decides."""
        origins = [one.origin for one in self.configurations]
        if len(origins) > 1:
            origins = [f"{one.scheduler} with {one.origin}" for one in self.configurations]
            return f"{what}: {'; '.join(origins)}"
        return f"{what}, with {''.join(origins)}"


def without_extenders(decided: Iterable[DecidedBy | None]) -> Iterator[str]:
    """Yield a sentence about the extenders of the cluster that take no part in an answer."""
    configurations = (one for by in decided if by is not None for one in by.configurations)
    titles = list(dict.fromkeys(title for one in configurations for title in one.left_out))
    if not titles:
        return
    named = " and ".join(titles)
    takes, it = ("takes", "it") if len(titles) == 1 else ("take", "they")
    yield (
        f"{named[0].upper()}{named[1:]} {takes} no part in this answer, although kube-scheduler "
        f"asks {'it' if len(titles) == 1 else 'them'}: {it} may reject nodes, or prefer others."
    )


def framed(
    decided_by: DecidedBy | None,
    lines: Iterable[str],
    notes: Iterable[str],
    *,
    with_configurations: bool = True,
    compared: Iterable[DecidedBy | None] = (),
) -> Iterator[str]:
    """Yield an answer as text: what decided it comes first if it matters, and otherwise last.

    `compared` has what decided the other columns of an answer.
    """
    if decided_by is not None:
        yield from decided_by.substitute()
    yield from without_extenders((decided_by, *compared))
    yield from lines
    if decided_by is not None:
        yield f"note: {decided_by.note() if with_configurations else decided_by.program()}"
    yield from (f"note: {note}" for note in notes)


def number(version: Version | None) -> str | None:
    """Write a version as kube-scheduler's without its letter."""
    return str(version).removeprefix("v") if version is not None else None
