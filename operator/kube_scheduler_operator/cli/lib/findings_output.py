"""Findings as people, programs, GitHub and SARIF viewers read them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from ... import __version__
from ...base import names
from ...base.findings import ERROR
from ...offline.validate import Diagnosis, Verdict

SARIF_VERSION: Final = "2.1.0"
_SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def as_text(verdict: Verdict, version: str) -> str:
    """`file:line:column: severity: path: sentence`, the fix below, and a last line in words."""
    lines = []
    for each in verdict.findings:
        path = f"{each.path}: " if each.path else ""
        lines.append(f"{_place(each)}: {each.severity}: {path}{each.message} [{each.reason}]")
        lines.append(f"    fix: {each.fix}")
    warnings = verdict.count("warning")
    counts = [
        _count(number, what)
        for number, what in ((verdict.count(ERROR), "error"), (warnings, "warning"))
        if number
    ]
    would = "would start" if verdict.starts else "would not start"
    documents = _count(len(verdict.documents), "document")
    if verdict.documents and verdict.others:
        documents += f" ({_count(len(verdict.others), 'other')} beside, not checked)"
    told = f": {', '.join(counts)}" if counts else ""
    lines.append(f"kube-scheduler {version} {would} with {documents}{told}")
    return "\n".join(lines) + "\n"


def as_json(verdict: Verdict, version: str) -> str:
    """Everything, for programs."""
    document = {
        "kubernetesVersion": version,
        "starts": verdict.starts,
        "errors": verdict.count("error"),
        "warnings": verdict.count("warning"),
        "documents": [{"file": file, "kind": kind} for file, kind in verdict.documents],
        "others": [{"file": file, "kind": kind} for file, kind in verdict.others],
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
            for each in verdict.findings
        ],
    }
    return _json(document)


def as_github(verdict: Verdict, version: str) -> str:  # noqa: ARG001  # all have one shape
    """Workflow commands of GitHub Actions, which become annotations of the lines."""
    return "".join(f"{line}\n" for line in _commands(verdict))


def _commands(verdict: Verdict) -> Iterator[str]:
    for each in verdict.findings:
        properties = {
            "file": each.file,
            "line": str(each.position.line),
            "col": str(each.position.column),
            "title": each.reason,
        }
        told = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
        yield f"::{each.severity} {told}::{_data(_sentence(each))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def as_sarif(verdict: Verdict, version: str) -> str:
    """A log of the Static Analysis Results Interchange Format, 2.1.0 (OASIS)."""
    reasons = sorted({each.reason for each in verdict.findings})
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
        "results": [_result(each, reasons.index(each.reason)) for each in verdict.findings],
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
    """A URI reference: relative stays relative, as code scanning wants it."""
    from pathlib import Path
    from urllib.parse import quote

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


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _json(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


FORMATS: Final[dict[str, Callable[[Verdict, str], str]]] = {
    "text": as_text,
    "json": as_json,
    "github": as_github,
    "sarif": as_sarif,
}
