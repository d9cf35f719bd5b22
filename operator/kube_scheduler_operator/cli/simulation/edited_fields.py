"""Which fields of which objects a change edits, below the change in the text of an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ...base.foreign_text import json_text
from ...simulate.fix import Fix
from ...simulate.kinds import PODS, RESOURCE_CLAIMS
from ..console.output import counted, first_names

_OBJECTS: Final = 3
_LONGEST: Final = 120
"""Characters of a value that is shown."""
_ENTRY: Final = re.compile(r"\[\d+\]")
_COMMAND: Final = "kubectl "
"""A change with a command names its object there."""
_MUTABLE: Final = (
    "metadata.",
    "spec.tolerations",  # more can be added
)
_RESIZED: Final = (".requests.cpu", ".requests.memory", ".limits.cpu", ".limits.memory")
"""The ends of the paths that the subresource resize of a Pod changes."""


def edited_fields(fix: Fix) -> Iterator[str]:
    """Yield a line for each object, from the field of a change or from what was tried."""
    fields: dict[str, list[str]] = {fix.object: [fix.field]} if fix.field else {}
    if not fields and _COMMAND not in fix.text:
        for edit in fix.patch:
            if edit.field:
                fields.setdefault(edit.object, []).append(edit.field)
    for title, paths in list(fields.items())[:_OBJECTS]:
        yield f"    in {title}: {_value(fix, title, paths)}{_how(title, paths)}"
    if len(fields) > _OBJECTS:
        yield f"    in {counted(len(fields) - _OBJECTS, 'more object')}"


def _value(fix: Fix, title: str, paths: Sequence[str]) -> str:
    """Return the fields of an object, with what is written there if that is one short value."""
    made = [edit for edit in fix.patch if edit.object == title]
    edit = made[0] if len(made) == 1 and len(paths) == 1 else None
    if edit is None or edit.to is None or not edit.field.startswith(paths[0]):
        return first_names(paths)
    value = json_text(edit.to)
    if len(value) > _LONGEST:
        return first_names(paths)
    # The position in a list is that of the Pod, which may have more entries.
    added = edit.from_ is None and _ENTRY.fullmatch(edit.field.removeprefix(paths[0]))
    return f"{paths[0]}: add {value}" if added else f"{edit.field}: {value}"


def _how(title: str, paths: Sequence[str]) -> str:
    """Return how fields are changed that the API server lets no client edit."""
    kind = title.partition(" ")[0]
    if kind not in (PODS.kind, RESOURCE_CLAIMS.kind):
        return ""
    if all(path.startswith(_MUTABLE) or path.endswith(_RESIZED) for path in paths):
        return ""
    return f" (immutable: create the {kind} again)"
