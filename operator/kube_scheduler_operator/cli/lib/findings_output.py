"""Findings as text and as annotations of GitHub; other formats are in modules of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Final

from ...base.findings import ERROR, WARNING
from ...offline.report import Diagnosis, ValidationReport
from .finding_text import file_path, place, sentence
from .output import counted, text_of


def as_text(result: ValidationReport, version: str) -> str:
    """`file:line:column: severity: path: message` and the fix per finding, then a summary."""
    lines = []
    for each in result.findings:
        path = f"{each.path}: " if each.path else ""
        lines.append(f"{place(each)}: {each.severity}: {path}{each.message} [{each.reason}]")
        lines.append(f"    fix: {each.fix}")
    lines += [f"note: {note}" for note in result.notes]
    warnings = result.count(WARNING)
    counts = [
        counted(number, what)
        for number, what in ((result.count(ERROR), "error"), (warnings, "warning"))
        if number
    ]
    who = " and ".join(result.readers) if result.readers else f"kube-scheduler {version}"
    would, would_not = f"{who} would start with", f"{who} would not start with"
    if len(result.readers) > 1:
        would_not = f"not all of {who} would start with"
    documents = counted(len(result.documents), "document")
    if result.documents and result.others:
        documents += f" ({counted(len(result.others), 'other')} not checked)"
    if result.ignored:
        counts.append(f"{counted(len(result.ignored), 'warning')} ignored")
    if result.accepted:
        counts.append(f"{counted(len(result.accepted), 'finding')} in the baseline")
    summary = f": {', '.join(counts)}" if counts else ""
    lines.append(f"{would if result.starts else would_not} {documents}{summary}")
    return text_of(lines) + "\n"


def as_github(result: ValidationReport, version: str) -> str:  # noqa: ARG001
    """Workflow commands of GitHub Actions, which annotate the lines."""
    return "".join(f"{line}\n" for line in _commands(result))


def _commands(result: ValidationReport) -> Iterator[str]:
    for each in result.findings:
        properties = {
            "file": file_path(each.file),
            "line": str(each.position.line),
            "col": str(each.position.column),
            **_end(each),
            "title": each.reason,
        }
        text = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
        yield f"::{each.severity} {text}::{_data(sentence(each))}"


def _end(each: Diagnosis) -> dict[str, str]:
    """Where the annotation ends, if it is known; GitHub takes it in one line only."""
    end = each.position.end_column
    return {} if end is None else {"endLine": str(each.position.line), "endColumn": str(end)}


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


_HERE: Final[dict[str, Callable[[ValidationReport, str], str]]] = {
    "text": as_text,
    "github": as_github,
}


def report_text(result: ValidationReport, version: str, output: str) -> str:
    """The report in one of the formats; the module of a format is loaded when it is chosen."""
    if output in _HERE:
        return _HERE[output](result, version)
    module = import_module(f".findings_{output}", __package__)
    written: str = getattr(module, f"as_{output}")(result, version)
    return written
