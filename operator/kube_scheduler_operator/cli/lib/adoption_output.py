"""Prints what adoption does: as text on one screen, or as a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ...base.findings import Finding
from ...controlplane.adoption.preview import (
    HIDDEN,
    AdoptionPreview,
    Outcome,
    PreviewedSetting,
    config_text,
    shown,
)
from ...controlplane.revision.history import read
from ...migrate.changes import Severity
from .adoption_input import AdoptionInput
from .output import counted, format_table, text_of

_WIDEST: Final = 44
"""Characters of a value in a table; `-o json` has all of it."""


def as_document(found: AdoptionInput, seen: AdoptionPreview) -> dict[str, Any]:
    return {
        "adoptable": seen.adoptable,
        "platform": found.snapshot.platform.name,
        "nodes": [
            {
                "node": node.node,
                "image": node.image,
                "configFile": node.file,
                "configFileRead": _source(found, node.node) if node.file else "",
                "settings": [_setting(one) for one in node.settings],
                "converted": [
                    {"effect": one.severity.value, "change": one.text} for one in node.converted
                ],
            }
            for node in seen.nodes
        ],
        "problems": [_finding(one) for one in seen.findings],
        "notVisible": [{"node": node, "path": path} for node, path in sorted(seen.unseen.items())],
        "warnings": [_finding(one) for one in seen.warnings],
        "notes": [*seen.notes],
        "arguments": seen.arguments,
        "configuration": seen.configuration or None,
    }


def _setting(one: PreviewedSetting) -> dict[str, Any]:
    return {
        "name": one.name,
        "value": None if one.value == HIDDEN else one.value,
        "outcome": one.outcome.value,
        "note": one.note,
    }


def _finding(finding: Finding) -> dict[str, str]:
    return {"reason": finding.reason, "path": finding.path, "message": finding.message}


def _source(found: AdoptionInput, node: str) -> str:
    if node in found.recorded:
        return "by the operator"
    return "from -f" if node in found.reports else "not yet"


def as_text(found: AdoptionInput, seen: AdoptionPreview) -> str:
    return text_of(_lines(found, seen))


def _lines(found: AdoptionInput, seen: AdoptionPreview) -> Iterator[str]:
    nodes = [one.node for one in seen.nodes]
    images = ", ".join(sorted({one.image for one in seen.nodes}))
    yield f"{counted(len(nodes), 'scheduler')} before the operator: {', '.join(nodes)} ({images})"
    yield ""
    yield from format_table(list(_rows(seen)))
    same = sorted({s.name for n in seen.nodes for s in n.settings if s.outcome is Outcome.SAME})
    if same:
        yield ""
        yield f"The operator's schedulers have the same {', '.join(same)}."
    yield f"Everything else is as {found.snapshot.platform.name} writes it."
    for title, entries in (
        ("Converted to v1 (-o json has all changes)", list(_converted(seen))),
        ("Blocks", [one.text for one in seen.findings]),
        ("Not visible", [*_unseen(seen)]),
        ("Not in a manifest", list(seen.notes)),
        ("Warnings", [one.text for one in seen.warnings]),
    ):
        if entries:
            yield ""
            yield f"{title}:"
            yield from (f"  * {entry}" for entry in entries)
    yield ""
    yield _conclusion(seen)


def _converted(seen: AdoptionPreview) -> Iterator[str]:
    """Yield what works differently in v1."""
    yield from dict.fromkeys(
        f"{one.severity.value}: {one.text}"
        for node in seen.nodes
        for one in node.converted
        if one.severity is not Severity.SAME
    )


def _rows(seen: AdoptionPreview) -> Iterator[list[str]]:
    """Yield one row for each setting and value, with the nodes that have it if not all do."""
    nodes = [one.node for one in seen.nodes]
    rows: dict[tuple[str, str, str], list[str]] = {}
    for node in seen.nodes:
        for one in node.settings:
            if one.outcome is not Outcome.SAME:
                lost = one.outcome in (Outcome.BLOCKS, Outcome.UNKNOWN)
                what = one.outcome.value.upper() if lost else one.outcome.value
                # Below the table, with the way to keep it.
                text = what if lost or not one.note else f"{what}: {one.note}"
                rows.setdefault((one.name, one.value, text), []).append(node.node)
    differ = any(len(having) < len(nodes) for having in rows.values())
    heading = ["SETTING", "VALUE", "ADOPTION"]
    yield ["NODES", *heading] if differ else heading
    for (name, value, text), having in rows.items():
        cells = [name, _short(value), text]
        where = "all" if len(having) == len(nodes) else ", ".join(having)
        yield [where, *cells] if differ else cells
    if not rows:
        empty = ["(none)", "", "kubeadm's own scheduler has no settings of users"]
        yield ["all", *empty] if differ else empty


def _short(value: str) -> str:
    line = " ".join(value.split())
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 1]}…"


def _unseen(seen: AdoptionPreview) -> Iterator[str]:
    for node, path in sorted(seen.unseen.items()):
        yield (
            f'{path} of node "{node}": the API does not show files of nodes. The operator reads it '
            f"there before it touches a node, with a Pod that sees nothing else; to see the result "
            f"now, copy it: -f {node}=FILE"
        )


def _conclusion(seen: AdoptionPreview) -> str:
    if seen.adoptable:
        return "All of it is adopted; no setting is lost."
    if seen.findings:
        return "Adoption is blocked until this is changed; the schedulers keep running as they are."
    return "What is visible is adopted; the rest is not known yet."


def as_record(found: AdoptionInput, seen: AdoptionPreview) -> dict[str, Any]:
    """Return what was adopted before, as data."""
    settings = [
        {"name": name, "value": None if value == HIDDEN else value}
        for name, value in _recorded(found, seen)
    ]
    return {"adopted": True, "revision": _revision(found), "settings": settings}


def record_text(found: AdoptionInput, seen: AdoptionPreview) -> str:
    """Return what was adopted before, as text."""
    entries = list(_recorded(found, seen))
    if not entries:
        return "The schedulers are adopted; they had no settings of users."
    head = (
        f"The schedulers are adopted; revision {_revision(found)} has what they were started with:"
    )
    rows = [["SETTING", "VALUE"], *([name, _short(value)] for name, value in entries)]
    return text_of([head, "", *format_table(rows)])


def _recorded(found: AdoptionInput, seen: AdoptionPreview) -> Iterator[tuple[str, str]]:
    """Yield (setting, value as text) of the record, and the flags that were adopted."""
    observed: Mapping[str, Any] = found.snapshot.spec.get("observedConfig") or {}
    for name, values in sorted((observed.get("arguments") or {}).items()):
        yield f"flags.{name}", shown(f"flags.{name}", ", ".join(values))
    for key, value in sorted(seen.adopted.config.items()):
        yield f"config.{key}", config_text(key, value)
    for name, value in seen.adopted.settings.names():
        yield name, shown(name, value)


def _revision(found: AdoptionInput) -> int:
    history = read(found.snapshot.config_maps, found.snapshot.platform.parts)
    return max((one.number for one in history if one.ready), default=0)
