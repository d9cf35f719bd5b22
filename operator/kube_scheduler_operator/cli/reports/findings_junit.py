"""Findings as JUnit XML, which most CI systems show as test results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from ...base import names
from ...base.findings import ERROR
from ...base.foreign_text import one_line
from ...config.lint.reports.report import Diagnosis, ValidationReport
from .findings_output import place, sentence

_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""The characters that XML 1.0 does not allow, not even escaped."""


def report_text(report: ValidationReport, version: str) -> str:
    """Return a test suite for each file with a test for each finding: an error is a failure.

    A warning is a test that passes, with the warning as its output. A file without findings has one
    test, so that it is shown as checked.
    """
    by_file: dict[str, list[Diagnosis]] = {file: [] for file, _ in report.documents}
    for finding in report.findings:
        by_file.setdefault(finding.file, []).append(finding)
    suites = [
        line
        for file, findings in by_file.items()
        for line in _suite(file, findings, f"kube-scheduler {version}")
    ]
    failures = report.count(ERROR)
    tests = sum(max(len(findings), 1) for findings in by_file.values())
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="{names.PROGRAM} validate" tests="{tests}" failures="{failures}">',
        *suites,
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _suite(file: str, findings: list[Diagnosis], scheduler: str) -> Iterator[str]:
    failures = sum(finding.severity == ERROR for finding in findings)
    yield (
        f'  <testsuite name={_attribute(file)} tests="{max(len(findings), 1)}" '
        f'failures="{failures}" errors="0" skipped="0">'
    )
    if not findings:
        name = _attribute(f"valid for {scheduler}")
        yield f"    <testcase classname={_attribute(file)} name={name}/>"
    for finding in findings:
        where = f"{finding.reason} {finding.path}".strip()
        name = _attribute(f"{where} (line {finding.position.line})")
        yield f"    <testcase classname={_attribute(file)} name={name}>"
        text = one_line(escape(_clean(f"{place(finding)}: {sentence(finding)}")), _reference)
        if finding.severity == ERROR:
            reason, message = _attribute(finding.reason), _attribute(finding.message)
            yield f"      <failure type={reason} message={message}>{text}</failure>"
        else:
            yield f"      <system-out>{text}</system-out>"
        yield "    </testcase>"
    yield "  </testsuite>"


def _attribute(text: str) -> str:
    return one_line(quoteattr(_clean(text)), _reference)


def _reference(character: str) -> str:
    return f"&#{ord(character)};"


def _clean(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
