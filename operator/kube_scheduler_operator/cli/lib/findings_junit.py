"""Findings as JUnit XML, which most CI systems show as test results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from ...base import names
from ...base.findings import ERROR
from ...base.foreign_text import one_line
from ...offline.report import Diagnosis, ValidationReport
from .finding_text import place, sentence

_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""The characters that XML 1.0 does not allow, not even escaped."""


def as_junit(result: ValidationReport, version: str) -> str:
    """A test suite for each file, a test for each finding: an error is a failure.

    A warning is a test that passes, with the warning as its output. A file without findings has one
    test, so that it is shown as checked.
    """
    files = dict.fromkeys([*(file for file, _ in result.documents), *_files(result)])
    by_file: dict[str, list[Diagnosis]] = {file: [] for file in files}
    for each in result.findings:
        by_file[each.file].append(each)
    who = f"kube-scheduler {version}"
    suites = [line for file, found in by_file.items() for line in _suite(file, found, who)]
    failures = result.count(ERROR)
    tests = sum(max(len(found), 1) for found in by_file.values())
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="{names.PROGRAM} validate" tests="{tests}" failures="{failures}">',
        *suites,
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _files(result: ValidationReport) -> Iterator[str]:
    return (each.file for each in result.findings)


def _suite(file: str, found: list[Diagnosis], scheduler: str) -> Iterator[str]:
    failures = sum(each.severity == ERROR for each in found)
    yield (
        f'  <testsuite name={_attribute(file)} tests="{max(len(found), 1)}" '
        f'failures="{failures}" errors="0" skipped="0">'
    )
    if not found:
        yield f"    <testcase classname={_attribute(file)} name={_valid_for(scheduler)}/>"
    for each in found:
        where = f"{each.reason} {each.path}".strip()
        name = _attribute(f"{where} (line {each.position.line})")
        yield f"    <testcase classname={_attribute(file)} name={name}>"
        text = one_line(escape(_clean(f"{place(each)}: {sentence(each)}")), _reference)
        if each.severity == ERROR:
            failure = f"<failure type={_attribute(each.reason)} message={_attribute(each.message)}"
            yield f"      {failure}>{text}</failure>"
        else:
            yield f"      <system-out>{text}</system-out>"
        yield "    </testcase>"
    yield "  </testsuite>"


def _valid_for(scheduler: str) -> str:
    return _attribute(f"valid for {scheduler}")


def _attribute(text: str) -> str:
    return one_line(quoteattr(_clean(text)), _reference)


def _reference(character: str) -> str:
    return f"&#{ord(character)};"


def _clean(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
