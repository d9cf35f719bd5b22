"""What users decide about a report: ignored warnings, severities and a baseline, in this order.

An error cannot be lowered: that kube-scheduler does not start is not a matter of opinion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from ....base.findings import ERROR, WARNING, did_you_mean, listing
from .report import Diagnosis, ValidationReport
from .suppressions import Suppression, comments_of, ignore

Chosen = Literal["error", "warning", "off"]
CHOICES: Final[tuple[Chosen, ...]] = ("error", "warning", "off")


@dataclass(frozen=True, slots=True)
class Severities:
    """The severities of warnings: of single rules, and of all with `--strict`."""

    by_rule: Mapping[str, Chosen] = field(default_factory=dict)  # rule -> severity of its warnings
    strict: bool = False  # whether all other warnings are errors

    @classmethod
    def parse(cls, texts: Iterable[str], *, strict: bool) -> Severities:
        """Read `RULE=SEVERITY` texts; several may be in one, separated by commas.

        Raises:
            ValueError: a rule or a severity is unknown, or the rule has no warnings.
        """
        from ..rules import RULES  # most runs choose nothing

        chosen: dict[str, Chosen] = {}
        for choice_text in (part for text in texts for part in text.split(",") if part):
            rule, _, severity = (part.strip() for part in choice_text.partition("="))
            if rule not in RULES:
                hint = did_you_mean(rule, RULES) or "; --explain lists all rules"
                raise ValueError(f'"{rule}" is not a rule{hint}')
            choice = next((known for known in CHOICES if known == severity), None)
            if choice is None:
                raise ValueError(f'"{severity}" is not a severity; use {listing(CHOICES)}')
            if WARNING not in RULES[rule].severities and choice != ERROR:
                raise ValueError(
                    f"{rule} is an error with which no scheduler starts, and cannot be lowered; "
                    "correct it, or record it in a --baseline"
                )
            chosen[rule] = choice
        return cls(chosen, strict)

    def applied(self, findings: Iterable[Diagnosis]) -> Iterator[Diagnosis]:
        """Yield the findings with these severities, without those that are off."""
        for finding in findings:
            if finding.severity == WARNING:
                choice = self.by_rule.get(finding.reason, ERROR if self.strict else WARNING)
                if choice == ERROR:
                    yield replace(finding, severity=ERROR, raised=True)
                elif choice == WARNING:
                    yield finding
            else:
                yield finding


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
    """Return (report after all decisions, number of baseline entries that match no finding)."""
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
