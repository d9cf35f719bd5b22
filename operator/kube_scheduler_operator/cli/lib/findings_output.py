"""The output formats of findings: text, JSON, GitHub and SARIF."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from ... import __version__
from ...base import names
from ...base.findings import ERROR
from ...offline.validate import Diagnosis, ValidationReport
from .output import counted

SARIF_VERSION: Final = "2.1.0"
_SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def as_text(result: ValidationReport, version: str) -> str:
    """`file:line:column: severity: path: message` and the fix per finding, then a summary."""
    lines = []
    for each in result.findings:
        path = f"{each.path}: " if each.path else ""
        lines.append(f"{_place(each)}: {each.severity}: {path}{each.message} [{each.reason}]")
        lines.append(f"    fix: {each.fix}")
    lines += [f"note: {note}" for note in result.notes]
    warnings = result.count("warning")
    counts = [
        counted(number, what)
        for number, what in ((result.count(ERROR), "error"), (warnings, "warning"))
        if number
    ]
    would = "would start" if result.starts else "would not start"
    documents = counted(len(result.documents), "document")
    if result.documents and result.others:
        documents += f" ({counted(len(result.others), 'other')} not checked)"
    summary = f": {', '.join(counts)}" if counts else ""
    lines.append(f"kube-scheduler {version} {would} with {documents}{summary}")
    return "\n".join(lines) + "\n"


def as_json(result: ValidationReport, version: str) -> str:
    """The whole result as JSON."""
    document = {
        "kubernetesVersion": version,
        "starts": result.starts,
        "errors": result.count("error"),
        "warnings": result.count("warning"),
        "documents": [{"file": file, "kind": kind} for file, kind in result.documents],
        "others": [{"file": file, "kind": kind} for file, kind in result.others],
        "notes": list(result.notes),
        "findings": [
            {
                "file": each.file,
                "line": each.position.line,
                "column": each.position.column,
                "kind": each.kind,
                "path": each.path,
                "severity": each.severity,
                "reason": each.reason,
                "message": each.message,
                "fix": each.fix,
            }
            for each in result.findings
        ],
    }
    return _json(document)


def as_github(result: ValidationReport, version: str) -> str:  # noqa: ARG001
    """Workflow commands of GitHub Actions, which annotate the lines."""
    return "".join(f"{line}\n" for line in _commands(result))


def _commands(result: ValidationReport) -> Iterator[str]:
    for each in result.findings:
        properties = {
            "file": each.file,
            "line": str(each.position.line),
            "col": str(each.position.column),
            "title": each.reason,
        }
        text = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
        yield f"::{each.severity} {text}::{_data(_sentence(each))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def as_sarif(result: ValidationReport, version: str) -> str:
    """A log in the Static Analysis Results Interchange Format, 2.1.0 (OASIS)."""
    reasons = sorted({each.reason for each in result.findings})
    driver = {
        "name": names.PROGRAM,
        "version": __version__,
        "rules": [
            {"id": reason, "shortDescription": {"text": _words(reason)}} for reason in reasons
        ],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "properties": {"kubernetesVersion": version},
        "results": [_result(each, reasons.index(each.reason)) for each in result.findings],
    }
    return _json({"$schema": _SARIF_SCHEMA, "version": SARIF_VERSION, "runs": [run]})


def _result(each: Diagnosis, rule: int) -> dict[str, Any]:
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(each.file)},
            "region": {"startLine": each.position.line, "startColumn": each.position.column},
        }
    }
    if each.path:
        location["logicalLocations"] = [{"fullyQualifiedName": each.path}]
    return {
        "ruleId": each.reason,
        "ruleIndex": rule,
        "level": each.severity,
        "message": {"text": _sentence(each)},
        "locations": [location],
    }


def _uri(file: str) -> str:
    """A URI reference; a relative path stays relative, as code scanning requires."""
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def _words(reason: str) -> str:
    """`SafetyFilterOff` as `Safety filter off`."""
    text = ""
    for index, letter in enumerate(reason):
        after_small = index and letter.isupper() and not reason[index - 1].isupper()
        text += f" {letter}" if after_small else letter
    first, *rest = text.split(" ")
    return " ".join([first, *(word if word.isupper() else word.lower() for word in rest)])


def _sentence(each: Diagnosis) -> str:
    path = f"{each.path}: " if each.path else ""
    return f"{path}{each.message}; {each.fix}"


def _place(each: Diagnosis) -> str:
    return f"{each.file}:{each.position.line}:{each.position.column}"


def _json(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


FORMATS: Final[dict[str, Callable[[ValidationReport, str], str]]] = {
    "text": as_text,
    "json": as_json,
    "github": as_github,
    "sarif": as_sarif,
}
