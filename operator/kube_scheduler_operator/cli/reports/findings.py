"""Findings of `validate` as text, JSON, SARIF, JUnit XML, and annotations of GitHub and GitLab.

Also its rules, as text and as a list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from textwrap import fill, indent
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from ... import __version__
from ...base import names
from ...base.findings import ERROR, WARNING, listing
from ...base.foreign_text import one_line
from ...base.source.tree import Position
from ...config.language.plugins.in_tree_plugins import NEWEST, OLDEST
from ...config.lint.reports.report import FileFinding, ValidationReport
from ...config.lint.reports.report_settings import fingerprints
from ..console.output import counted, format_table, json_text, text_of

if TYPE_CHECKING:
    from ...config.lint.providers.provider import ProviderFinding
    from ...config.lint.rules import Rule

_GITLAB_SEVERITIES: Final = {"error": "critical", "warning": "minor"}
_SARIF_VERSION: Final = "2.1.0"
_SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_SARIF_FINGERPRINT: Final = "kubeSchedulerOperator/v1"
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""The characters that XML 1.0 does not allow, not even escaped."""
_WIDTH: Final = 100


def report_text(report: ValidationReport, version: str, output: str) -> str:
    """Return the report in the format `output`; `version` is that of kube-scheduler."""
    return _WRITERS[output](report, version)


def finding_lines(finding: FileFinding | ProviderFinding) -> list[str]:
    """Return `severity: path: message [reason]`, and a line with the fix."""
    path = f"{finding.path}: " if finding.path else ""
    lines = [f"{finding.severity}: {path}{finding.message} [{finding.reason}]"]
    return [*lines, f"    fix: {finding.fix}"] if finding.fix else lines


def _sentence(finding: FileFinding) -> str:
    """Return `path: what is wrong; how to fix it`."""
    path = f"{finding.path}: " if finding.path else ""
    return f"{path}{finding.message}; {finding.fix}"


def _place(finding: FileFinding) -> str:
    """Return `file:line:column`."""
    return f"{one_line(finding.file)}:{finding.position.line}:{finding.position.column}"


def _file_path(file: str) -> str:
    """Return the name of a file without `./`, as CI systems compare it with a repository's."""
    return Path(file).as_posix()


def _file_uri(file: str) -> str:
    """Return a URI reference; a relative path stays relative, as code scanning requires."""
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote(_file_path(file))


def _text(report: ValidationReport, version: str) -> str:
    """Return `file:line:column: severity: path: message` and the fix per finding, and a summary."""
    lines = []
    for finding in report.findings:
        first, *others = finding_lines(finding)
        lines += [f"{_place(finding)}: {first}", *others]
    lines += [f"note: {note}" for note in report.notes]
    counts = [
        counted(number, noun)
        for number, noun in ((report.count(ERROR), "error"), (report.count(WARNING), "warning"))
        if number
    ]
    documents = counted(len(report.documents), "document")
    if report.documents and report.others:
        documents += f" ({counted(len(report.others), 'other')} not checked)"
    if report.ignored:
        counts.append(f"{counted(len(report.ignored), 'warning')} ignored")
    if report.accepted:
        counts.append(f"{counted(len(report.accepted), 'finding')} in the baseline")
    summary = f": {', '.join(counts)}" if counts else ""
    lines.append(f"{_conclusion(report, version)} {documents}{summary}")
    return text_of(lines) + "\n"


def _conclusion(report: ValidationReport, version: str) -> str:
    """Write whether the scheduler would start, up to the number of documents."""
    who = " and ".join(report.readers) if report.readers else f"kube-scheduler {version}"
    if report.starts is None:
        record = f"{OLDEST.short} to {NEWEST.short}"
        return f"only {record} are on record: it is not known whether {who} would start with"
    if report.starts:
        return f"{who} would start with"
    if len(report.readers) > 1:
        return f"not all of {who} would start with"
    return f"{who} would not start with"


# --- JSON ---------------------------------------------------------------------------------------


def _json(report: ValidationReport, version: str) -> str:
    """Return the document whose fields docs/validating.md describes."""
    known = (*report.findings, *report.accepted)
    by_finding = dict(zip(map(id, known), fingerprints(known), strict=True))

    def identified(findings: tuple[FileFinding, ...]) -> list[dict[str, Any]]:
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


def _finding(finding: FileFinding) -> dict[str, Any]:
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


def _github(report: ValidationReport, _: str) -> str:
    """Return workflow commands of GitHub Actions, which annotate the lines."""
    commands = []
    for finding in report.findings:
        properties: dict[str, object] = {
            "file": _file_path(finding.file),
            **_region(finding.position, "line", "col"),
            "title": finding.reason,
        }
        text = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
        commands.append(f"::{finding.severity} {text}::{_escaped(_sentence(finding))}\n")
    return "".join(commands)


def _region(position: Position, line: str, column: str) -> dict[str, int]:
    """Return where a finding is; its end, which is exclusive, only if it is known."""
    region, end = {line: position.line, column: position.column}, position.end_column
    return region if end is None else {**region, "endLine": position.line, "endColumn": end}


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


def _gitlab(report: ValidationReport, _: str) -> str:
    """Return a Code Quality report: GitLab shows in a merge request its new fingerprints."""
    findings = report.findings
    return json_text(
        [
            {
                "description": _sentence(finding),
                "check_name": finding.reason,
                "fingerprint": fingerprint,
                "severity": _GITLAB_SEVERITIES[finding.severity],
                "location": {
                    "path": _file_path(finding.file),
                    "lines": {"begin": finding.position.line},
                },
            }
            for finding, fingerprint in zip(findings, fingerprints(findings), strict=True)
        ]
    )


# --- SARIF (OASIS) ------------------------------------------------------------------------------


def _sarif(report: ValidationReport, version: str) -> str:
    """Return the log with all rules, also without findings; ignored findings are left out."""
    from ...config.lint.rules import RULES

    indices = {name: index for index, name in enumerate(sorted(RULES))}
    driver = {
        "name": names.PROGRAM,
        "version": __version__,
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
    return json_text({"$schema": _SARIF_SCHEMA, "version": _SARIF_VERSION, "runs": [run]})


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.name,
        "name": rule.name,
        "shortDescription": {"text": f"{rule.title}."},
        "fullDescription": {"text": rule.meaning},
        "help": {"text": rule_text(rule), "markdown": rule.markdown},
        "defaultConfiguration": {"level": rule.severity},
    }


def _result(finding: FileFinding, rule: int | None, fingerprint: str) -> dict[str, Any]:
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": _file_uri(finding.file)},
            "region": _region(finding.position, "startLine", "startColumn"),
        }
    }
    if finding.path:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.path}]
    return {
        "ruleId": finding.reason,
        **({} if rule is None else {"ruleIndex": rule}),
        "level": finding.severity,
        "message": {"text": _sentence(finding)},
        "locations": [location],
        "partialFingerprints": {_SARIF_FINGERPRINT: fingerprint},
    }


# --- JUnit XML, which most CI systems show as test results --------------------------------------


def _junit(report: ValidationReport, version: str) -> str:
    """Return a test suite for each file with a test for each finding: an error is a failure.

    A warning is a test that passes, with the warning as its output. A file without findings has one
    test, so that it is shown as checked.
    """
    by_file: dict[str, list[FileFinding]] = {file: [] for file, _ in report.documents}
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


def _suite(file: str, findings: list[FileFinding], scheduler: str) -> Iterator[str]:
    from xml.sax.saxutils import escape

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
        text = one_line(escape(_clean(f"{_place(finding)}: {_sentence(finding)}")), _reference)
        if finding.severity == ERROR:
            reason, message = _attribute(finding.reason), _attribute(finding.message)
            yield f"      <failure type={reason} message={message}>{text}</failure>"
        else:
            yield f"      <system-out>{text}</system-out>"
        yield "    </testcase>"
    yield "  </testsuite>"


def _attribute(text: str) -> str:
    from xml.sax.saxutils import quoteattr

    return one_line(quoteattr(_clean(text)), _reference)


def _reference(character: str) -> str:
    return f"&#{ord(character)};"


def _clean(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


_WRITERS: Final[Mapping[str, Callable[[ValidationReport, str], str]]] = {
    "text": _text,
    "json": _json,
    "github": _github,
    "gitlab": _gitlab,
    "junit": _junit,
    "sarif": _sarif,
}


# --- rules --------------------------------------------------------------------------------------


def rule_named(name: str) -> Rule | None:
    """Return the rule with this name, in upper or lower case; None if no rule has it."""
    from ...config.lint.rules import RULES

    by_lower = {known.lower(): rule for known, rule in RULES.items()}
    return by_lower.get(name.lower())


def rule_list(rules: Iterable[Rule]) -> str:
    rows = [(rule.name, listing(rule.severities), rule.title) for rule in rules]
    return "\n".join(format_table([("RULE", "SEVERITY", "TITLE"), *rows])) + "\n"


def rule_text(rule: Rule) -> str:
    flags = f", checked with {' '.join(rule.flags)}" if rule.flags else ""
    parts = [
        f"{rule.name} ({listing(rule.severities)}, since {rule.since})",
        fill(f"{rule.title}.", _WIDTH),
        fill(rule.meaning, _WIDTH),
        fill(f"Fix: {rule.fix}", _WIDTH),
        f"Example{flags}:",
        indent(rule.example, "    "),
        f"see: {rule.link}",
    ]
    return "\n\n".join(parts) + "\n"
