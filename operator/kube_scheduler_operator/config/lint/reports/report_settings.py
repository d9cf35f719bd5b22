"""What users decide about a report: ignored warnings, severities and a baseline, in this order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from .report import Diagnosis, ValidationReport
from .severities import Severities
from .suppressions import Suppression, comments_of, ignore


@dataclass(frozen=True, slots=True)
class ReportSettings:
    """The decisions of flags; comments in the files add to them."""

    severities: Severities = field(default_factory=Severities)  # of warnings
    ignored: tuple[Suppression, ...] = ()  # what flags ignore
    baseline: frozenset[str] | None = None  # fingerprints of accepted findings; None: no baseline


def with_settings(
    report: ValidationReport,
    files: Sequence[tuple[str, str | bytes]],
    settings: ReportSettings,
) -> tuple[ValidationReport, int]:
    """Return (report after all decisions, number of baseline entries that match no finding).

    Args:
        report: of the files.
        files: (name, content).
        settings: the decisions of flags.
    """
    suppressions = list(settings.ignored)
    invalid: list[Diagnosis] = []
    for file, content in files:
        comments, wrong = comments_of(file, content)
        suppressions += comments
        invalid += wrong
    remaining, ignored = ignore(report.findings, suppressions)
    first = files[0][0] if files else ""
    remaining = [finding if finding.file else replace(finding, file=first) for finding in remaining]
    findings = list(settings.severities.applied(remaining + invalid))
    order = {name: index for index, (name, _) in enumerate(files)}
    findings.sort(key=lambda finding: (order.get(finding.file, 0), finding.position, finding.path))
    report = replace(report, findings=tuple(findings), ignored=tuple(ignored))
    if settings.baseline is None:
        return report, 0
    from .baseline import divided  # hashes are not needed otherwise

    new, accepted, fixed = divided(findings, settings.baseline)
    return replace(report, findings=tuple(new), accepted=tuple(accepted)), fixed
