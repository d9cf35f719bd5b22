"""A baseline: the findings that a repository has already, so that only new ones fail a pipeline.

A finding is recognized by its rule, its file, and its object and field with the names of list
entries, not by its line, its index or its message: it stays known when lines move, when an entry is
inserted before it, and when a later release words it differently.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ....base.objects import mapping
from .report import Diagnosis

VERSION: Final = 1
_DIGITS: Final = 32
"""Length of a fingerprint: 128 bits in hexadecimal."""


def fingerprints(findings: Sequence[Diagnosis]) -> list[str]:
    """Return a fingerprint of each finding, unique among them.

    Equal findings are counted, so that a second one is new.
    """
    seen: dict[str, int] = {}
    digests = []
    for finding in findings:
        parts = (_file(finding.file), finding.reason, finding.subject)
        seen["\0".join(parts)] = count = seen.get("\0".join(parts), 0) + 1
        text = "\0".join((*parts, str(count)))
        digests.append(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS])
    return digests


def _file(name: str) -> str:
    return posixpath.normpath(name.replace("\\", "/"))


def baseline_of(findings: Sequence[Diagnosis]) -> str:
    """Return the content of a baseline file, sorted, so that its changes can be reviewed."""
    entries = [
        {
            "file": _file(finding.file),
            "rule": finding.reason,
            "subject": finding.subject,
            "fingerprint": fingerprint,
        }
        for finding, fingerprint in zip(findings, fingerprints(findings), strict=True)
    ]
    entries.sort(key=lambda entry: tuple(entry.values()))
    document = {"version": VERSION, "findings": entries}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def read_baseline(text: str) -> frozenset[str]:
    """Return the fingerprints in a baseline file.

    Raises:
        ValueError: it is not a baseline, or one of another version.
    """
    try:
        document: Any = json.loads(text)
    except ValueError as error:
        raise ValueError(f"this is not JSON ({error})") from None
    version = mapping(document).get("version")
    entries = mapping(document).get("findings")
    if version != VERSION or not isinstance(entries, list):
        raise ValueError(f"this is not a baseline of version {VERSION}")
    known = [mapping(entry).get("fingerprint") for entry in entries]
    if not all(isinstance(fingerprint, str) for fingerprint in known):
        raise ValueError("an entry has no fingerprint")
    return frozenset(map(str, known))


def divided(
    findings: Sequence[Diagnosis], known: Iterable[str]
) -> tuple[list[Diagnosis], list[Diagnosis], int]:
    """Return (new findings, those in the baseline, entries of the baseline that match none)."""
    baseline = set(known)
    by_state: Mapping[bool, list[Diagnosis]] = {True: [], False: []}
    for finding, fingerprint in zip(findings, fingerprints(findings), strict=True):
        by_state[fingerprint in baseline].append(finding)
        baseline.discard(fingerprint)
    return by_state[False], by_state[True], len(baseline)
