"""What templates make of the typed answers of nodes, waiting Pods, why and what if.

The sentences are those of the commands: the functions here only arrange them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...base.foreign_text import one_line
from ...base.source.yaml_text import yaml_text
from ...simulate.constraint import quantity_text
from ...simulate.decided_by import DecidedBy
from ...simulate.diagnosis import Diagnosis
from ...simulate.edits import Edit
from ...simulate.fix import Fix
from ...simulate.pending import WaitingGroup
from ...simulate.placements import Spread
from ..console.output import counted, first_names
from ..simulation.answer import SimulationAnswer
from ..simulation.answer_text import answer_lines, figure_rows, figures_note
from ..simulation.edited_fields import edited_fields
from ..simulation.explanation_text import (
    TextPart,
    absent_lines,
    fix_sentence,
    pod_parts,
    score_table,
    scores_title,
    waiting_rows,
    waiting_title,
)
from ..simulation.nodes_text import biggest_text, fragmentation_text, measured_text
from ..simulation.picture import bars, highest_of
from .node_views import by_load, by_requests

NODES_SHOWN: Final = 50
_EDITS: Final = 20
_VALUE: Final = 2000


@dataclass(frozen=True, slots=True)
class ShownEdit:
    object: str
    field: str
    before: str
    after: str


_COMMAND: Final = re.compile(
    r"\bkubectl (scheduler (?:check|history|pending|rollout undo|status --verbose))\b"
)
"""The commands of hints that need no argument."""


def _commands_in(hint: str) -> list[list[str]]:
    """Return the commands that a hint names and that can be copied as they are."""
    return [found.split() for found in dict.fromkeys(_COMMAND.findall(hint))]


def _parts(diagnosis: Diagnosis) -> list[TextPart]:
    parts = [TextPart(each.kind, list(each.lines)) for each in pod_parts(diagnosis, NODES_SHOWN)]
    return [part for part in parts if part.lines]


def _patch(fix: Fix) -> list[ShownEdit]:
    return [
        ShownEdit(edit.object, edit.field, _value(edit.from_, edit), _value(edit.to, edit))
        for edit in fix.patch[:_EDITS]
    ]


def _value(value: Any, edit: Edit) -> str:
    if value is None:
        return "none" if edit.field else ""
    text = value if isinstance(value, str) else yaml_text([value]).removeprefix("---\n").strip()
    return text if len(text) <= _VALUE else f"{text[: _VALUE - 1]}…"


def _sentences(decided_by: DecidedBy | None) -> list[str]:
    """Return what comes before an answer: why it may not be that of the cluster."""
    return list(decided_by.first_lines()) if decided_by is not None else []


def _notes(decided_by: DecidedBy | None, notes: Sequence[str]) -> list[str]:
    """Return what comes after an answer."""
    return [*([decided_by.note()] if decided_by is not None else []), *notes]


def _by_kind(groups: Sequence[WaitingGroup]) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    for group in groups:
        counts[group.kind] = counts.get(group.kind, 0) + len(group.pods)
    return counts


def _simulation_lines(answer: SimulationAnswer) -> list[str]:
    return [one_line(line) for line in answer_lines(answer, NODES_SHOWN)]


def _fullness(answer: SimulationAnswer, resource: str) -> list[list[Spread]]:
    return [each.fullness[resource] for each in answer.configurations]


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "absent_lines": absent_lines,
    "amount_text": quantity_text,
    "bars": bars,
    "biggest_text": biggest_text,
    "by_kind": _by_kind,
    "by_load": by_load,
    "by_requests": by_requests,
    "commands_in": _commands_in,
    "counted": counted,
    "edited_fields": edited_fields,
    "figure_rows": figure_rows,
    "figures_note": figures_note,
    "first_names": first_names,
    "fix_sentence": fix_sentence,
    "measured_text": measured_text,
    "notes_of": _notes,
    "patch_of": _patch,
    "pod_parts": _parts,
    "fragmentation_text": fragmentation_text,
    "fullness_of": _fullness,
    "highest_of": highest_of,
    "score_table": score_table,
    "scores_title": scores_title,
    "sentences_before": _sentences,
    "simulation_lines": _simulation_lines,
    "waiting_rows": waiting_rows,
    "waiting_title": waiting_title,
}
"""The functions of templates, by name."""

VALUES: Final = {"NODES_SHOWN": NODES_SHOWN}
