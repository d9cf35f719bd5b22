"""What a provider of clusters or an autoscaler is, and what it makes of objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ....base import names
from ....base.findings import ERROR, WARNING, Finding, Problem, Severity
from ...effective.control_plane.compose import Composition
from ...language.versions import Version
from .desired import Desired, read_desired


@dataclass(frozen=True, slots=True)
class ProviderFile:
    """A file or an object for the provider."""

    path: str  # its absolute path on control-plane nodes, or a file name without a directory
    use: str  # how the provider gets it, in one line
    content: Any


@dataclass(frozen=True, slots=True)
class ProviderFinding:
    """A setting that the provider does not support as it is."""

    reason: str  # a CamelCase identifier, for programs
    path: str  # the object and its field: `KubeScheduler/cluster spec.logLevel`
    message: str
    fix: str
    severity: Severity = ERROR  # if the provider's scheduler would differ from the desired one


@dataclass(frozen=True, slots=True)
class ProviderOutput:
    files: tuple[ProviderFile, ...]
    findings: tuple[ProviderFinding, ...] = ()


@dataclass(frozen=True, slots=True)
class ProviderFormat:
    """The files and settings that a provider of clusters or an autoscaler supports."""

    name: str  # in `--for`
    source: str  # the document that defines the format, with its version
    # writes the files for a desired scheduler and a release of the provider (None: unknown)
    write: Callable[[Desired, Version | None], ProviderOutput]
    kubernetes_releases: bool = True  # whether its releases are those of Kubernetes


def provider_output(
    provider: ProviderFormat,
    release: Version | None,
    composition: Composition,
    beside: Iterable[str] = (),
) -> ProviderOutput:
    """Return the provider's files and all findings; no files if kube-scheduler would not start.

    `beside` has the objects that the operator runs beside a provider's scheduler, as `Kind/name`.
    """
    message = (
        f"the operator runs it in the cluster; it is not part of the files for {provider.name}"
    )
    findings = [
        *_composed(composition),
        *(
            ProviderFinding("RunsInTheCluster", obj, message, "apply it to the cluster", WARNING)
            for obj in beside
        ),
    ]
    if composition.blocking:
        return ProviderOutput((), tuple(findings))
    output = provider.write(read_desired(composition), release)
    return ProviderOutput(output.files, (*findings, *output.findings))


def _composed(composition: Composition) -> Iterator[ProviderFinding]:
    for finding in composition.findings:
        # The message of this condition is about the operator's own clusters.
        if finding.condition != names.OVERRIDES_UPGRADEABLE:
            degraded = finding.blocking or finding.condition.endswith("Degraded")
            yield _converted(finding, ERROR if degraded else WARNING)
    for result in (*composition.results, *composition.extenders):
        for finding in result.warnings:
            yield _converted(finding, WARNING)


def _converted(finding: Finding, severity: Severity) -> ProviderFinding:
    wrong, fix = Problem(finding.reason, (), finding.message).parts
    return ProviderFinding(finding.reason, finding.path, wrong, fix, severity)
