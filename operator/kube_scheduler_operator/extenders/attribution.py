"""Which SchedulerExtender is to be mended when kube-scheduler does not start with its entry.

kube-scheduler names extenders by their index where it validates them, and only the file where it
cannot read one that their TLS configuration has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from ..base.findings import Path, format_path
from ..base.objects import mapping
from ..model.attachment import EXTENDER, REFUSED
from .entry import field_of
from .validate import ExtenderVerdict

# `extenders[1].weight: Invalid value: …`
_READING: Final = re.compile(r"\bextenders\[(\d+)\]((?:\.\w+|\[\d+\])*)")
_PART: Final = re.compile(r"\.(\w+)|\[(\d+)\]")
_FILES: Final = ("caFile", "certFile", "keyFile")


def attribute_extenders(
    verdicts: Iterable[ExtenderVerdict], words: str, refused: Any, state: str
) -> tuple[ExtenderVerdict, ...]:
    """The verdicts, with a finding in each whose entry kube-scheduler blames.

    Args:
        verdicts: of the SchedulerExtenders of one scheduler.
        words: what kube-scheduler said.
        refused: the extenders of the file that it said it of; nobody promises that they are some.
        state: what was refused and what runs instead, for the message.
    """
    blamed = list(_blamed(words, refused if isinstance(refused, list) else [])) if words else []
    found = []
    for verdict in verdicts:
        # One that has changed since is not blamed for what it was.
        path = next((path for entry, path in blamed if entry == verdict.entry), None)
        if path is not None and verdict.spec is not None:
            where = format_path((*verdict.root.split("."), *field_of(path, verdict.spec)))
            finding = EXTENDER.finding(verdict.name, REFUSED, where, f"{state}: {words}")
            verdict = replace(verdict, findings=(*verdict.findings, finding))
        found.append(verdict)
    return tuple(found)


def _blamed(words: str, refused: list[Any]) -> Iterator[tuple[Mapping[str, Any], Path]]:
    """(entry, where in it) of all that are named; of several places the first one counts."""
    for match in _READING.finditer(words):
        index = int(match[1])
        if index < len(refused):
            path = tuple(int(at) if at else key for key, at in _PART.findall(match[2]))
            yield mapping(refused[index]), path
    for one in refused:
        tls = mapping(mapping(one).get("tlsConfig"))
        for key in _FILES:
            if tls.get(key) and str(tls[key]) in words:
                yield mapping(one), ("tlsConfig", key)
