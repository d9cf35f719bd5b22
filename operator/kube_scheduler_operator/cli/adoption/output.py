"""Prints what adoption does: as text on one screen, or as a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ...base.findings import Finding
from ...config.migrate.changes import Severity
from ...operator.controlplane.adoption.preview import (
    HIDDEN,
    AdoptionPreview,
    Outcome,
    PreviewedSetting,
    config_text,
    shown,
)
from ...operator.controlplane.revision.history import read
from ..console.output import counted, format_table, text_of
from .input import AdoptionInput

_WIDEST: Final = 44
"""Characters of a value in a table; `-o json` has all of it."""


def as_document(adoption: AdoptionInput, preview: AdoptionPreview) -> dict[str, Any]:
    return {
        "adoptable": preview.adoptable,
        "platform": adoption.snapshot.platform.name,
        "nodes": [
            {
                "node": node.node,
                "image": node.image,
                "configFile": node.file,
                "configFileRead": _source(adoption, node.node) if node.file else "",
                "settings": [_setting(setting) for setting in node.settings],
                "converted": [
                    {"effect": change.severity.value, "change": change.text}
                    for change in node.converted
                ],
            }
            for node in preview.nodes
        ],
        "problems": [_finding(finding) for finding in preview.findings],
        "notVisible": [
            {"node": node, "path": path} for node, path in sorted(preview.unseen.items())
        ],
        "warnings": [_finding(warning) for warning in preview.warnings],
        "notes": [*preview.notes],
        "arguments": preview.arguments,
        "configuration": preview.configuration or None,
    }


def _setting(setting: PreviewedSetting) -> dict[str, Any]:
    return {
        "name": setting.name,
        "value": None if setting.value == HIDDEN else setting.value,
        "outcome": setting.outcome.value,
        "note": setting.note,
    }


def _finding(finding: Finding) -> dict[str, str]:
    return {"reason": finding.reason, "path": finding.path, "message": finding.message}


def _source(adoption: AdoptionInput, node: str) -> str:
    if node in adoption.recorded:
        return "by the operator"
    return "from -f" if node in adoption.reports else "not yet"


def lines(adoption: AdoptionInput, preview: AdoptionPreview) -> Iterator[str]:
    """Yield the text output: problems last, where users look."""
    nodes = [node.node for node in preview.nodes]
    images = ", ".join(sorted({node.image for node in preview.nodes}))
    verb = "predates" if len(nodes) == 1 else "predate"
    yield f"{counted(len(nodes), 'scheduler')} {verb} the operator: {', '.join(nodes)} ({images})"
    yield ""
    yield from format_table(list(_rows(preview)))
    same = sorted({s.name for n in preview.nodes for s in n.settings if s.outcome is Outcome.SAME})
    if same:
        yield ""
        yield f"The operator's schedulers have the same {', '.join(same)}."
    yield f"Everything else is as {adoption.snapshot.platform.name} writes it."
    for title, entries in (
        ("Converted to v1 (-o json has all changes)", list(_converted(preview))),
        ("Blocks", [finding.text for finding in preview.findings]),
        ("Not visible", list(_unseen(preview))),
        ("Not in a manifest", list(preview.notes)),
        ("Warnings", [warning.text for warning in preview.warnings]),
    ):
        if entries:
            yield ""
            yield f"{title}:"
            yield from (f"  * {entry}" for entry in entries)
    yield ""
    yield _conclusion(preview)


def _converted(preview: AdoptionPreview) -> Iterator[str]:
    yield from dict.fromkeys(
        f"{change.severity.value}: {change.text}"
        for node in preview.nodes
        for change in node.converted
        if change.severity is not Severity.SAME
    )


def _rows(preview: AdoptionPreview) -> Iterator[list[str]]:
    """Yield one row for each setting and value, with the nodes that have it if not all do."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for node in preview.nodes:
        for setting in node.settings:
            if setting.outcome is not Outcome.SAME:
                lost = setting.outcome in (Outcome.BLOCKS, Outcome.UNKNOWN)
                outcome = setting.outcome.value.upper() if lost else setting.outcome.value
                # The note of a lost setting, with the way to keep it, is below the table.
                text = outcome if lost or not setting.note else f"{outcome}: {setting.note}"
                rows.setdefault((setting.name, setting.value, text), []).append(node.node)
    count = len(preview.nodes)
    differ = any(len(nodes) < count for nodes in rows.values())
    heading = ["SETTING", "VALUE", "ADOPTION"]
    yield ["NODES", *heading] if differ else heading
    for (name, value, text), nodes in rows.items():
        cells = [name, _short(value), text]
        where = "all" if len(nodes) == count else ", ".join(nodes)
        yield [where, *cells] if differ else cells
    if not rows:
        empty = ["(none)", "", "kubeadm's own scheduler has no settings of users"]
        yield ["all", *empty] if differ else empty


def _short(value: str) -> str:
    line = " ".join(value.split())
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 1]}…"


def _unseen(preview: AdoptionPreview) -> Iterator[str]:
    for node, path in sorted(preview.unseen.items()):
        yield (
            f'{path} of node "{node}": the API does not show files of nodes. The operator reads it '
            f"there before it touches a node, with a Pod that sees nothing else; to see the result "
            f"now, copy it: -f {node}=FILE"
        )


def _conclusion(preview: AdoptionPreview) -> str:
    if preview.adoptable:
        return "All of it is adopted; no setting is lost."
    if preview.findings:
        return "Adoption is blocked until this is changed; the schedulers keep running as they are."
    return "What is visible is adopted; the rest is not known yet."


def as_record(adoption: AdoptionInput, preview: AdoptionPreview) -> dict[str, Any]:
    """Return what was adopted before, as data."""
    settings = [
        {"name": name, "value": None if value == HIDDEN else value}
        for name, value in _recorded(adoption, preview)
    ]
    return {"adopted": True, "revision": _revision(adoption), "settings": settings}


def record_text(adoption: AdoptionInput, preview: AdoptionPreview) -> str:
    """Return what was adopted before, as text."""
    rows = [[name, _short(value)] for name, value in _recorded(adoption, preview)]
    if not rows:
        return "The schedulers are adopted; they had no settings of users."
    revision = _revision(adoption)
    head = f"The schedulers are adopted; revision {revision} has what they were started with:"
    return text_of([head, "", *format_table([["SETTING", "VALUE"], *rows])])


def _recorded(adoption: AdoptionInput, preview: AdoptionPreview) -> Iterator[tuple[str, str]]:
    """Yield (setting, value as text) of the record, and the flags that were adopted."""
    observed: Mapping[str, Any] = adoption.snapshot.spec.get("observedConfig") or {}
    for name, values in sorted((observed.get("arguments") or {}).items()):
        yield f"flags.{name}", shown(f"flags.{name}", ", ".join(values))
    for key, value in sorted(preview.adopted.config.items()):
        yield f"config.{key}", config_text(key, value)
    for name, value in preview.adopted.settings.names():
        yield name, shown(name, value)


def _revision(adoption: AdoptionInput) -> int:
    history = read(adoption.snapshot.config_maps, adoption.snapshot.platform.parts)
    return max((revision.number for revision in history if revision.ready), default=0)
