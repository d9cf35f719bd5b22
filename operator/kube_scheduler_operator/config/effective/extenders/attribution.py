"""Attributes a refusal by kube-scheduler to the SchedulerExtender whose entry caused it.

kube-scheduler names an extender by its index in validation errors. In errors about files of its TLS
configuration, it names only the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from ....base.findings import Path, format_path
from ....base.objects import mapping
from ..attachment import EXTENDER, REFUSED, Refusal
from .entry import field_of
from .validate import ExtenderResult

# `extenders[1].weight: Invalid value: …`
_READING: Final = re.compile(r"\bextenders\[(\d+)\]((?:\.\w+|\[\d+\])*)")
_PART: Final = re.compile(r"\.(\w+)|\[(\d+)\]")
_FILES: Final = ("caFile", "certFile", "keyFile")


def attribute_extenders(
    results: Iterable[ExtenderResult], refusal: Refusal | None
) -> tuple[ExtenderResult, ...]:
    """Add a finding to each result whose entry kube-scheduler's error names."""
    if refusal is None:
        return tuple(results)
    refused = refusal.config.get("extenders")
    named = list(_named_entries(refusal.words, refused if isinstance(refused, list) else []))
    attributed = []
    for result in results:
        # The error does not apply to an entry that has changed since.
        path = next((path for entry, path in named if entry == result.entry), None)
        if path is not None and result.spec is not None:
            where = format_path((*result.root.split("."), *field_of(path, result.spec)))
            finding = EXTENDER.finding(result.name, REFUSED, where, refusal.message)
            result = replace(result, findings=(*result.findings, finding))
        attributed.append(result)
    return tuple(attributed)


def _named_entries(words: str, refused: list[Any]) -> Iterator[tuple[Mapping[str, Any], Path]]:
    """Yield (entry, path in it) of each entry that the error names; the first path counts."""
    for match in _READING.finditer(words):
        index = int(match[1])
        if index < len(refused):
            parts = _PART.findall(match[2])
            path = tuple(int(position) if position else key for key, position in parts)
            yield mapping(refused[index]), path
    for entry in map(mapping, refused):
        tls = mapping(entry.get("tlsConfig"))
        for key in _FILES:
            if tls.get(key) and str(tls[key]) in words:
                yield entry, ("tlsConfig", key)
