"""The severities that users choose for warnings: of single rules, and of all with `--strict`.

An error cannot be lowered: that kube-scheduler does not start is not a matter of opinion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from ....base.findings import ERROR, WARNING, did_you_mean, listing
from .report import Diagnosis

Chosen = Literal["error", "warning", "off"]
CHOICES: Final[tuple[Chosen, ...]] = ("error", "warning", "off")


@dataclass(frozen=True, slots=True)
class Severities:
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
