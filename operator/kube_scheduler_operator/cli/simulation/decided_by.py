"""Which kube-scheduler decided an answer, with which configuration: the same for all commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...config.language.versions import Version
from ...simulate.cluster_version import ClusterVersion

DEFAULTS: Final = "its defaults"


@dataclass(frozen=True, slots=True)
class DecidingConfiguration:
    scheduler: str  # for messages
    names: tuple[str, ...]  # the schedulerNames that it serves
    origin: str  # what it is, for messages: a file, a revision, the defaults
    configuration: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DecidedBy:
    """The program and the configurations behind an answer."""

    version: Version | None  # of the program; None: not known
    image: str  # that a Job runs; empty: a program of this machine
    chosen: str  # the flag or variable that chose the program; empty: its version did
    cluster: ClusterVersion  # what would decide in the cluster
    configurations: tuple[DecidingConfiguration, ...]

    @property
    def is_substitute(self) -> bool:
        """Whether another minor version decided than would in the cluster."""
        own, used = self.cluster.version, self.version
        return own is not None and used is not None and own.short != used.short

    def of(self, scheduler_name: str) -> DecidedBy:
        """Return it for one schedulerName."""
        serving = tuple(one for one in self.configurations if scheduler_name in one.names)[:1]
        return DecidedBy(self.version, self.image, self.chosen, self.cluster, serving)

    def document(self) -> dict[str, Any]:
        return {
            "version": _number(self.version),
            "image": self.image,
            "cluster": {
                "version": _number(self.cluster.version),
                "origin": self.cluster.origin,
            },
            "configurations": [
                {
                    "scheduler": one.scheduler,
                    "schedulerNames": list(one.names),
                    "origin": one.origin,
                    "configuration": one.configuration,
                }
                for one in self.configurations
            ],
        }

    def first_line(self) -> Iterator[str]:
        """Yield a sentence that comes before the answer: that another version decided."""
        if not self.is_substitute:
            return
        instead = f"{_number(self.cluster.version)} ({self.cluster.origin})"
        decides = f"kube-scheduler {_number(self.version)} decides here, not {instead}"
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
            program = f"kube-scheduler {_number(self.version)}"
        unknown = "" if self.cluster.version else " (nothing shows the version of the cluster)"
        return f"{program} decides{unknown}"

    def note(self) -> str:
        """Say which version decides, with which configurations."""
        origins = [one.origin for one in self.configurations]
        if len(origins) > 1:
            origins = [f"{one.scheduler} with {one.origin}" for one in self.configurations]
            return f"{self.program()}: {'; '.join(origins)}"
        return f"{self.program()}, with {''.join(origins)}"


def _number(version: Version | None) -> str | None:
    return str(version).removeprefix("v") if version is not None else None
