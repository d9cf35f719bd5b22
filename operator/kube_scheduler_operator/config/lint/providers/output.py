"""From objects to the files of a provider."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ....base import names
from ....base.findings import ERROR, WARNING, Finding, Problem, Severity
from ...effective.control_plane.compose import Composition
from ...language.versions import Version
from .desired import read_desired
from .provider_format import ProviderFinding, ProviderFormat, ProviderOutput

_OF_THE_OPERATOR: Final = names.OVERRIDES_UPGRADEABLE
"""The condition whose message is about the operator's own clusters."""


def provider_output(
    provider: ProviderFormat,
    release: Version | None,
    composition: Composition,
    beside: Iterable[str] = (),
) -> ProviderOutput:
    """Return the provider's files and all findings; no files if kube-scheduler would not start.

    `beside` has the objects that the operator runs beside a provider's scheduler, as `Kind/name`.
    """
    findings = [*_composed(composition), *_beside(beside, provider)]
    if composition.blocking:
        return ProviderOutput((), tuple(findings))
    output = provider.write(read_desired(composition), release)
    return ProviderOutput(output.files, (*findings, *output.findings))


def _composed(composition: Composition) -> Iterator[ProviderFinding]:
    for finding in composition.findings:
        if finding.condition != _OF_THE_OPERATOR:
            degraded = finding.blocking or finding.condition.endswith("Degraded")
            yield _from(finding, error=degraded)
    for result in (*composition.results, *composition.extenders):
        for finding in result.warnings:
            yield _from(finding, error=False)


def _from(finding: Finding, *, error: bool) -> ProviderFinding:
    wrong, fix = Problem(finding.reason, (), finding.message).parts
    severity: Severity = ERROR if error else WARNING
    return ProviderFinding(finding.reason, finding.path, wrong, fix, severity)


def _beside(objects: Iterable[str], provider: ProviderFormat) -> Iterator[ProviderFinding]:
    for obj in objects:
        yield ProviderFinding(
            "RunsInTheCluster",
            obj,
            f"the operator runs it in the cluster; it is not part of the files for {provider.name}",
            "apply it to the cluster",
            WARNING,
        )
