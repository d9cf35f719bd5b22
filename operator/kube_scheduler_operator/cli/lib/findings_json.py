"""The whole report of `validate` as JSON."""

from __future__ import annotations

from typing import Any

from ...base.findings import ERROR, WARNING
from ...offline.baseline import fingerprints
from ...offline.report import Diagnosis, ValidationReport
from .output import json_text


def as_json(result: ValidationReport, version: str) -> str:
    """The document; docs/validating.md describes its fields."""
    known = (*result.findings, *result.accepted)
    by_finding = dict(zip(map(id, known), fingerprints(known), strict=True))
    document = {
        "kubernetesVersion": version,
        "starts": result.starts,
        "errors": result.count(ERROR),
        "warnings": result.count(WARNING),
        "documents": [{"file": file, "kind": kind} for file, kind in result.documents],
        "others": [{"file": file, "kind": kind} for file, kind in result.others],
        "notes": list(result.notes),
        "findings": [
            {**_finding(each), "fingerprint": by_finding[id(each)]} for each in result.findings
        ],
        "ignored": [
            {**_finding(each.finding), "justification": each.justification}
            for each in result.ignored
        ],
        "baseline": [
            {**_finding(each), "fingerprint": by_finding[id(each)]} for each in result.accepted
        ],
    }
    return json_text(document)


def _finding(each: Diagnosis) -> dict[str, Any]:
    return {
        "file": each.file,
        "line": each.position.line,
        "column": each.position.column,
        "endColumn": each.position.end_column,
        "kind": each.kind,
        "path": each.path,
        "severity": each.severity,
        "reason": each.reason,
        "message": each.message,
        "fix": each.fix,
    }
