"""What every offline check uses: its input, its options, its result, and helpers."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from ..base.findings import ERROR, WARNING, Finding, Path, Problem, Severity
from ..base.images import ALLOWED_BY_DEFAULT, AllowedImages
from ..base.platform import KUBEADM, Platform
from ..schedulerconfig.feature_gates import Gates
from ..schedulerconfig.source import Document, Position
from ..schedulerconfig.validation import Target
from ..schedulerconfig.warnings import SUBDOMAIN, ConfiguredScheduler, object_name
from .config_maps import CONFIG_MAP, MountedFile

if TYPE_CHECKING:
    from ..model.attachment import ValidationResult

NOT_READ: Final = "NotRead"
INVALID_NAME: Final = "InvalidName"

_PART: Final = re.compile(
    r"""\[(\d+)\]|\[('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]|\.?([A-Za-z0-9_*-]+)"""
)


@dataclass(frozen=True, slots=True)
class Item:
    """A document in a file.

    Attributes:
        file: the display name of the file.
        document: the document with the positions of its fields.
        value: its data without nulls, a map.
        mounted: the file in a ConfigMap that has it; None: the file itself has it.
    """

    file: str
    document: Document
    value: Mapping[str, Any]
    mounted: MountedFile | None = None

    @property
    def kind(self) -> str:
        """The `kind` field."""
        return str(self.value.get("kind", ""))

    @property
    def name(self) -> str:
        """metadata.name; empty if it is missing."""
        metadata = self.value.get("metadata")
        return str(metadata.get("name") or "") if isinstance(metadata, Mapping) else ""

    @property
    def label(self) -> str:
        """The file in messages about others."""
        mounted = self.mounted
        return f"{CONFIG_MAP} {mounted.config_map} in {self.file}" if mounted else self.file

    def position(self, path: Path) -> Position:
        """Position of a field in the file."""
        position = self.document.position(path)
        return self.mounted.in_manifest(position) if self.mounted else position

    def gates(self, options: CheckOptions) -> Gates:
        """The version and gates of the kube-scheduler that reads it."""
        version = self.mounted.version if self.mounted else None
        return replace(options.gates, version=version) if version else options.gates


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """What a check depends on besides the documents.

    Attributes:
        gates: version and feature gates of the kube-scheduler that will read them.
        platform: the kind of cluster.
        stock: False if the image may have plugins that Kubernetes' own does not have.
        images: the images that the operator is known to allow.
    """

    gates: Gates
    platform: Platform = KUBEADM
    stock: bool = True
    images: AllowedImages = ALLOWED_BY_DEFAULT

    @property
    def target(self) -> Target:
        """The kube-scheduler that will read the documents."""
        return Target(self.gates, stock=self.stock)


@dataclass(slots=True)
class Checked:
    """The result of a check.

    Attributes:
        problems: each with the document that has it.
        processes: the schedulers that would run, to be compared with each other.
    """

    problems: list[tuple[Item, Problem]] = field(default_factory=list)
    processes: list[tuple[Item, ConfiguredScheduler]] = field(default_factory=list)


Checker = Callable[[Sequence[Item], CheckOptions], Checked]


@dataclass(frozen=True, slots=True)
class Kind:
    """How the documents of one kind are checked.

    Attributes:
        version: the API version that the check supports.
        checker: receives all documents of all kinds that share it: Scheduler and KubeScheduler,
            for example, make one configuration.
        definition: the file of its CustomResourceDefinition in crds/; empty: none.
    """

    version: str
    checker: Checker
    definition: str = ""


def by_name(items: Iterable[Item]) -> tuple[dict[str, Item], list[tuple[Item, Problem]]]:
    """(objects of one kind by name, problems of those with a missing or duplicate name)."""
    found: dict[str, Item] = {}
    problems = []
    for item in items:
        if not item.name:
            message = f"{item.kind} has no metadata.name; add one"
            problems.append((item, Problem(NOT_READ, ("metadata", "name"), message)))
        elif item.name in found:
            message = f'a {item.kind} "{item.name}" is already defined; rename one of them'
            problems.append((item, Problem(NOT_READ, ("metadata", "name"), message)))
        else:
            found[item.name] = item
            if not SUBDOMAIN.fullmatch(item.name):
                message = f'the API server rejects the name "{item.name}"'
                example = object_name(item.name)
                fix = f"use lowercase letters, digits and hyphens, for example {example}"
                problems.append((item, Problem(INVALID_NAME, ("metadata", "name"), message, fix)))
    return found, problems


def problem_of(finding: Finding) -> Problem:
    """The problem of a finding with the path of a document's field."""
    severity: Severity = ERROR if finding.blocking else WARNING
    return Problem(finding.reason, parse_path(finding.path), finding.message, severity=severity)


def problems_of(
    judged: ValidationResult, items: Mapping[str, Item]
) -> Iterator[tuple[Item, Problem]]:
    """The errors and warnings of a validated object."""
    by_severity: tuple[tuple[Severity, tuple[Finding, ...]], ...] = (
        (ERROR, judged.findings),
        (WARNING, judged.warnings),
    )
    for severity, findings in by_severity:
        for finding in findings:
            path = parse_path(finding.path.partition(" ")[2])
            problem = Problem(finding.reason, path, finding.message, severity=severity)
            yield items[judged.name], problem


def parse_path(text: str) -> Path:
    """The inverse of `format_path`."""
    found: list[str | int] = []
    for index, quoted, key in _PART.findall(text):
        found.append(int(index) if index else key or str(ast.literal_eval(quoted)))
    return tuple(found)
