"""Findings as a Code Quality report of GitLab (the CodeClimate issues that it reads)."""

from __future__ import annotations

from typing import Final

from ...offline.baseline import fingerprints
from ...offline.report import ValidationReport
from .finding_text import file_path, sentence
from .output import json_text

_SEVERITIES: Final = {"error": "critical", "warning": "minor"}


def as_gitlab(result: ValidationReport, version: str) -> str:  # noqa: ARG001
    """A list of issues; GitLab shows in a merge request those with a new fingerprint."""
    return json_text(
        [
            {
                "description": sentence(each),
                "check_name": each.reason,
                "fingerprint": fingerprint,
                "severity": _SEVERITIES[each.severity],
                "location": {"path": file_path(each.file), "lines": {"begin": each.position.line}},
            }
            for each, fingerprint in zip(
                result.findings, fingerprints(result.findings), strict=True
            )
        ]
    )
