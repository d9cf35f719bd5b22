"""Findings as text, JSON and annotations; formats with slow imports are modules of their own."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from ...base.findings import ERROR, WARNING
from ...base.foreign_text import one_line
from ...config.lint.reports.baseline import fingerprints
from ...config.lint.reports.report import Diagnosis, ValidationReport
from ..console.output import counted, json_text, text_of

_GITLAB_SEVERITIES: Final = {"error": "critical", "warning": "minor"}


def report_text(report: ValidationReport, version: str, output: str) -> str:
    """Return the report in the format `output`; `version` is that of kube-scheduler."""
    match output:
        case "text":
            return _text(report, version)
        case "json":
            return _json(report, version)
        case "github":
            return "".join(f"{line}\n" for line in _github_commands(report))
        case "gitlab":
            return _gitlab(report)
    text: str = import_module(f".findings_{output}", __package__).report_text(report, version)
    return text


def sentence(finding: Diagnosis) -> str:
    """Return `path: what is wrong; how to fix it`."""
    path = f"{finding.path}: " if finding.path else ""
    return f"{path}{finding.message}; {finding.fix}"


def place(finding: Diagnosis) -> str:
    """Return `file:line:column`."""
    return f"{one_line(finding.file)}:{finding.position.line}:{finding.position.column}"


def file_path(file: str) -> str:
    """Return the name of a file without `./`, as CI systems compare it with a repository's."""
    return Path(file).as_posix()


def file_uri(file: str) -> str:
    """Return a URI reference; a relative path stays relative, as code scanning requires."""
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote(file_path(file))


def _text(report: ValidationReport, version: str) -> str:
    """Return `file:line:column: severity: path: message` and the fix per finding, and a summary."""
    lines = []
    for finding in report.findings:
        path = f"{finding.path}: " if finding.path else ""
        head = f"{place(finding)}: {finding.severity}"
        lines.append(f"{head}: {path}{finding.message} [{finding.reason}]")
        lines.append(f"    fix: {finding.fix}")
    lines += [f"note: {note}" for note in report.notes]
    counts = [
        counted(number, noun)
        for number, noun in ((report.count(ERROR), "error"), (report.count(WARNING), "warning"))
        if number
    ]
    who = " and ".join(report.readers) if report.readers else f"kube-scheduler {version}"
    would, would_not = f"{who} would start with", f"{who} would not start with"
    if len(report.readers) > 1:
        would_not = f"not all of {who} would start with"
    documents = counted(len(report.documents), "document")
    if report.documents and report.others:
        documents += f" ({counted(len(report.others), 'other')} not checked)"
    if report.ignored:
        counts.append(f"{counted(len(report.ignored), 'warning')} ignored")
    if report.accepted:
        counts.append(f"{counted(len(report.accepted), 'finding')} in the baseline")
    summary = f": {', '.join(counts)}" if counts else ""
    lines.append(f"{would if report.starts else would_not} {documents}{summary}")
    return text_of(lines) + "\n"


# --- JSON ---------------------------------------------------------------------------------------


def _json(report: ValidationReport, version: str) -> str:
    """Return the document whose fields docs/validating.md describes."""
    known = (*report.findings, *report.accepted)
    by_finding = dict(zip(map(id, known), fingerprints(known), strict=True))

    def identified(findings: tuple[Diagnosis, ...]) -> list[dict[str, Any]]:
        return [
            {**_finding(finding), "fingerprint": by_finding[id(finding)]} for finding in findings
        ]

    return json_text(
        {
            "kubernetesVersion": version,
            "starts": report.starts,
            "errors": report.count(ERROR),
            "warnings": report.count(WARNING),
            "documents": [{"file": file, "kind": kind} for file, kind in report.documents],
            "others": [{"file": file, "kind": kind} for file, kind in report.others],
            "notes": list(report.notes),
            "findings": identified(report.findings),
            "ignored": [
                {**_finding(ignored.finding), "justification": ignored.justification}
                for ignored in report.ignored
            ],
            "baseline": identified(report.accepted),
        }
    )


def _finding(finding: Diagnosis) -> dict[str, Any]:
    position = finding.position
    fields = ("kind", "path", "severity", "reason", "message", "fix")
    return {
        "file": finding.file,
        "line": position.line,
        "column": position.column,
        "endColumn": position.end_column,
        **{name: getattr(finding, name) for name in fields},
    }


# --- GitHub and GitLab --------------------------------------------------------------------------


def _github_commands(report: ValidationReport) -> Iterator[str]:
    """Yield workflow commands of GitHub Actions, which annotate the lines."""
    for finding in report.findings:
        properties = {
            "file": file_path(finding.file),
            "line": str(finding.position.line),
            "col": str(finding.position.column),
            **_end(finding),
            "title": finding.reason,
        }
        text = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
        yield f"::{finding.severity} {text}::{_escaped(sentence(finding))}"


def _end(finding: Diagnosis) -> dict[str, str]:
    """Return where the annotation ends, if it is known; GitHub requires that it is on one line."""
    end = finding.position.end_column
    return {} if end is None else {"endLine": str(finding.position.line), "endColumn": str(end)}


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


def _gitlab(report: ValidationReport) -> str:
    """Return a Code Quality report: GitLab shows in a merge request its new fingerprints."""
    findings = report.findings
    return json_text(
        [
            {
                "description": sentence(finding),
                "check_name": finding.reason,
                "fingerprint": fingerprint,
                "severity": _GITLAB_SEVERITIES[finding.severity],
                "location": {
                    "path": file_path(finding.file),
                    "lines": {"begin": finding.position.line},
                },
            }
            for finding, fingerprint in zip(findings, fingerprints(findings), strict=True)
        ]
    )
