"""What every offline check uses: documents, their readers, options and results."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from ...base.findings import ERROR, WARNING, Finding, Path, Problem, Severity, format_path
from ...base.go_values import boolean
from ...base.images import ALLOWED_BY_DEFAULT, AllowedImages
from ...base.objects import mapping
from ...base.platform import KUBEADM, Platform
from ...base.source.reader import Document, Position
from ..language.feature_gates import FLAG, Gates, parse_gates
from ..language.flags import ELECTION_FIELDS
from ..language.plugins.known_schedulers import KnownScheduler, scheduler_of_image
from ..language.schema import KIND
from ..language.validation.configuration import Target
from ..language.versions import Version
from ..language.warnings.configuration import SUBDOMAIN, ConfiguredScheduler, object_name
from .forms.form import CommandLine, Embedding
from .forms.volcano import PROGRAM, is_volcano
from .forms.workload import is_stock

if TYPE_CHECKING:
    from ..effective.attachment import ValidationResult

NOT_READ: Final = "NotRead"
NEVER_READ: Final = "NeverRead"
OTHER_SCHEDULER: Final = "OtherScheduler"
INVALID_NAME: Final = "InvalidName"
NAME_PATH: Final[Path] = ("metadata", "name")

_PART: Final = re.compile(
    r"""\[(\d+)\]|\[('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]|\.?([A-Za-z0-9_*-]+)"""
)


@dataclass(frozen=True, slots=True)
class Item:
    """A document in a file."""

    file: str  # the display name of the file
    document: Document
    value: Mapping[str, Any]  # without nulls
    place: Embedding | None = None  # where in another document it is; None: in none
    reader: CommandLine | None = None  # the kube-scheduler that reads it, if the files show one

    @property
    def kind(self) -> str:
        return str(self.value.get("kind", ""))

    @property
    def api_version(self) -> str:
        return str(self.value.get("apiVersion") or "")

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def name(self) -> str:
        """metadata.name; empty if it is missing."""
        return str(mapping(self.value.get("metadata")).get("name") or "")

    @property
    def label(self) -> str:
        """The file in messages about others."""
        return f"{self.place.owner} in {self.file}" if self.place else self.file

    def position(self, path: Path) -> Position:
        position = self.document.position(path)
        return self.place.in_file(position) if self.place else position

    def shown_path(self, path: Path) -> str:
        """Return a field as users see it in the file."""
        return format_path(self.place.outer_path(path) if self.place else path)

    @property
    def version(self) -> Version | None:
        """The version of the kube-scheduler that reads it, if the files show it."""
        shown = self.place.version if self.place else None
        return shown or (self.reader.version if self.reader else None)


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """What a check depends on besides the documents."""

    gates: Gates  # version and feature gates of the kube-scheduler that will read them
    platform: Platform = KUBEADM
    stock: bool = True  # False if the image may have plugins that Kubernetes' own does not have
    images: AllowedImages = ALLOWED_BY_DEFAULT  # the images that the operator is known to allow
    scheduler: str = ""  # a known third-party scheduler, as in `Target`; empty: none
    place: str = ""  # the provider or scheduler of `--for` (places.py); empty: none
    # whether `gates.version` is that of every kube-scheduler, whatever the files show
    pinned: bool = False

    def version_of(self, shown: Version | None) -> Version:
        """Return the version of a kube-scheduler of which files show this one; None: none."""
        return self.gates.version if self.pinned else shown or self.gates.version

    @property
    def target(self) -> Target:
        """The kube-scheduler that will read the documents."""
        return Target(self.gates, stock=self.stock, scheduler=self.scheduler)


# --- the scheduler that reads a document ---------------------------------------------------------


def known_scheduler(command: CommandLine | None) -> KnownScheduler | None:
    """Return the third-party scheduler in the image of a command line."""
    return scheduler_of_image(command.image) if command is not None and command.image else None


def stock_of(command: CommandLine | None) -> bool:
    """Report whether a command line runs Kubernetes' own kube-scheduler or an unknown image."""
    return command is None or not command.image or is_stock(command.image)


def gates_of(gates: Gates, version: Version | None, command: CommandLine | None) -> Gates:
    """Return the gates of a run for a kube-scheduler with a version and flags of its own."""
    explicit = dict(gates.explicit)
    with suppress(ValueError):  # reported as a problem of the flag
        explicit |= parse_gates(command.flags.get(FLAG, ()) if command else ())
    return replace(gates, version=version or gates.version, explicit=explicit)


def target_of(item: Item, options: CheckOptions) -> Target:
    gates = gates_of(options.gates, options.version_of(item.version), item.reader)
    known = known_scheduler(item.reader)
    if known is not None:
        gates = replace(gates, version=known.rules)
        own_build = not (options.stock or options.scheduler)  # --custom-image
        return Target(gates, stock=False, scheduler="" if own_build else known.key)
    stock = not options.scheduler and options.stock and stock_of(item.reader)
    return Target(gates, stock=stock, scheduler=options.scheduler)


def is_read_by_volcano(item: Item) -> bool:
    return item.reader is not None and item.reader.program == PROGRAM


def is_of_volcano(item: Item) -> bool:
    """Report whether a document is Volcano's configuration, by its format or its reader."""
    return is_volcano(item.value) or (is_read_by_volcano(item) and item.kind != KIND)


def kube_scheduler_of(item: Item, options: CheckOptions) -> str:
    """Return the kube-scheduler that reads a document, according to files or `--for`; or empty."""
    if item.reader is not None:
        return "" if is_read_by_volcano(item) else f"the kube-scheduler of {item.reader.label}"
    return f"the kube-scheduler of --for {options.place}" if options.place else ""


def election_of(config: Mapping[str, Any], reader: CommandLine | None) -> dict[str, Any]:
    """Merge a configuration's leaderElection with the flags of the kube-scheduler that reads it."""
    election = dict(mapping(config.get("leaderElection")))
    for name, key in ELECTION_FIELDS.items():
        argument = reader.last(name) if reader else None
        if argument is None:
            continue
        election[key] = argument.value
        if name == "leader-elect":
            with suppress(ValueError):  # reported as a problem of the flag
                election[key] = boolean(argument.value)
    return election


def has_unknown_election(reader: CommandLine | None) -> bool:
    """Report whether only the cluster knows the value of a flag of leader election."""
    return reader is not None and not reader.unknown.isdisjoint(ELECTION_FIELDS)


# --- results and checkers ------------------------------------------------------------------------


@dataclass(slots=True)
class Checked:
    problems: list[tuple[Item, Problem]] = field(default_factory=list)
    # the schedulers that would run, to be compared with each other
    processes: list[tuple[Item, ConfiguredScheduler]] = field(default_factory=list)


Checker = Callable[[Sequence[Item], CheckOptions], Checked]


@dataclass(frozen=True, slots=True)
class Kind:
    """How the documents of one kind are checked."""

    version: str  # the API version that the check supports
    # receives all documents of all kinds that share it: Scheduler and KubeScheduler, for example,
    # make one configuration
    checker: Checker
    definition: str = ""  # the file of its CustomResourceDefinition in crds/; empty: none


def by_name(items: Iterable[Item]) -> tuple[dict[str, Item], list[tuple[Item, Problem]]]:
    """Return (objects of one kind by name, problems of those with a missing or duplicate name)."""
    named: dict[str, Item] = {}
    problems = []
    for item in items:
        if not item.name:
            message = f"{item.kind} has no metadata.name; add one"
            problems.append((item, Problem(NOT_READ, NAME_PATH, message)))
        elif item.name in named:
            message = f'a {item.kind} "{item.name}" is already defined; rename one of them'
            problems.append((item, Problem(NOT_READ, NAME_PATH, message)))
        else:
            named[item.name] = item
            if not SUBDOMAIN.fullmatch(item.name):
                message = f'the API server rejects the name "{item.name}"'
                example = object_name(item.name)
                fix = f"use lowercase letters, digits and hyphens, for example {example}"
                problems.append((item, Problem(INVALID_NAME, NAME_PATH, message, fix)))
    return named, problems


def problem_of(finding: Finding) -> Problem:
    """Convert a finding to a problem of a document's field."""
    severity: Severity = ERROR if finding.blocking else WARNING
    return Problem(finding.reason, parse_path(finding.path), finding.message, severity=severity)


def problems_of(
    judged: ValidationResult, items: Mapping[str, Item]
) -> Iterator[tuple[Item, Problem]]:
    """Convert the errors and warnings of a validated object to problems."""
    errors = (replace(finding, blocking=True) for finding in judged.findings)
    for finding in (*errors, *judged.warnings):
        in_object = replace(finding, path=finding.path.partition(" ")[2])
        yield items[judged.name], problem_of(in_object)


def parse_path(text: str) -> Path:
    """Invert `format_path`."""
    parts: list[str | int] = []
    for index, quoted, key in _PART.findall(text):
        parts.append(int(index) if index else key or str(ast.literal_eval(quoted)))
    return tuple(parts)
