"""Findings as a log in the Static Analysis Results Interchange Format, 2.1.0 (OASIS)."""

from __future__ import annotations

from typing import Any, Final

from ... import __version__
from ...base import names
from ...base.source.tree import Position
from ...config.lint.reports.baseline import fingerprints
from ...config.lint.reports.report import Diagnosis, ValidationReport
from ...config.lint.rules import HOME, RULES, Rule
from ..console.output import json_text
from .findings_output import file_uri, sentence
from .rule_output import rule_markdown, rule_text

VERSION: Final = "2.1.0"
FINGERPRINT: Final = "kubeSchedulerOperator/v1"
_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def report_text(report: ValidationReport, version: str) -> str:
    """Return the log with all rules, also without findings; ignored findings are left out."""
    indices = {name: index for index, name in enumerate(sorted(RULES))}
    driver = {
        "name": names.PROGRAM,
        "version": __version__,
        "informationUri": HOME,
        "rules": [_rule(RULES[name]) for name in indices],
    }
    findings = report.findings
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "properties": {"kubernetesVersion": version, "starts": report.starts},
        "results": [
            _result(finding, indices.get(finding.reason), fingerprint)
            for finding, fingerprint in zip(findings, fingerprints(findings), strict=True)
        ],
    }
    return json_text({"$schema": _SCHEMA, "version": VERSION, "runs": [run]})


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.name,
        "name": rule.name,
        "shortDescription": {"text": f"{rule.title}."},
        "fullDescription": {"text": rule.meaning},
        "helpUri": rule.link,
        "help": {"text": rule_text(rule), "markdown": rule_markdown(rule)},
        "defaultConfiguration": {"level": rule.severity},
    }


def _region(position: Position) -> dict[str, int]:
    """Return where a finding is; its end, which is exclusive, only if it is known."""
    region = {"startLine": position.line, "startColumn": position.column}
    end = position.end_column
    return region if end is None else {**region, "endLine": position.line, "endColumn": end}


def _result(finding: Diagnosis, rule: int | None, fingerprint: str) -> dict[str, Any]:
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": file_uri(finding.file)},
            "region": _region(finding.position),
        }
    }
    if finding.path:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.path}]
    return {
        "ruleId": finding.reason,
        **({} if rule is None else {"ruleIndex": rule}),
        "level": finding.severity,
        "message": {"text": sentence(finding)},
        "locations": [location],
        "partialFingerprints": {FINGERPRINT: fingerprint},
    }
