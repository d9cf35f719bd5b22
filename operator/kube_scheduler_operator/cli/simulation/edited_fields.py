"""Which fields of which objects a change edits, below the change in the text of an answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ...simulate.fix import Fix
from ...simulate.kinds import PODS, RESOURCE_CLAIMS
from ..console.output import counted, first_names

_OBJECTS: Final = 3
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
        yield f"    in {title}: {first_names(paths)}{_how(title, paths)}"
    if len(fields) > _OBJECTS:
        yield f"    in {counted(len(fields) - _OBJECTS, 'more object')}"


def _how(title: str, paths: Sequence[str]) -> str:
    """Return how fields are changed that the API server lets no client edit."""
    kind = title.partition(" ")[0]
    if kind not in (PODS.kind, RESOURCE_CLAIMS.kind):
        return ""
    if all(path.startswith(_MUTABLE) or path.endswith(_RESIZED) for path in paths):
        return ""
    return f" (immutable: create the {kind} again)"
