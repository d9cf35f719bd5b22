"""Findings as a log in the Static Analysis Results Interchange Format, 2.1.0 (OASIS)."""

from __future__ import annotations

from typing import Any, Final

from ... import __version__
from ...base import names
from ...offline.baseline import fingerprints
from ...offline.report import Diagnosis, ValidationReport
from ...offline.rules import HOME, RULES, Rule
from ...schedulerconfig.source_tree import Position
from .finding_text import file_uri, sentence
from .output import json_text
from .rule_output import rule_markdown, rule_text

VERSION: Final = "2.1.0"
FINGERPRINT: Final = "kubeSchedulerOperator/v1"
_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def as_sarif(result: ValidationReport, version: str) -> str:
    """The log, with all rules, also if there is no finding; ignored findings are left out."""
    indices = {name: index for index, name in enumerate(sorted(RULES))}
    driver = {
        "name": names.PROGRAM,
        "version": __version__,
        "informationUri": HOME,
        "rules": [_rule(RULES[name]) for name in indices],
    }
    results = zip(result.findings, fingerprints(result.findings), strict=True)
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "properties": {"kubernetesVersion": version, "starts": result.starts},
        "results": [_result(each, indices.get(each.reason), one) for each, one in results],
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
    """Where a finding is; its end, which is exclusive, only if it is known."""
    region = {"startLine": position.line, "startColumn": position.column}
    end = position.end_column
    return region if end is None else {**region, "endLine": position.line, "endColumn": end}


def _result(each: Diagnosis, rule: int | None, fingerprint: str) -> dict[str, Any]:
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": file_uri(each.file)},
            "region": _region(each.position),
        }
    }
    if each.path:
        location["logicalLocations"] = [{"fullyQualifiedName": each.path}]
    return {
        "ruleId": each.reason,
        **({} if rule is None else {"ruleIndex": rule}),
        "level": each.severity,
        "message": {"text": sentence(each)},
        "locations": [location],
        "partialFingerprints": {FINGERPRINT: fingerprint},
    }
