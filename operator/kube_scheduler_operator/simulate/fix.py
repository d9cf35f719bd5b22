"""A change that helps, as text and JSON show it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from ..base.field_types import named
from .constraint import Rank
from .edits import Edit

_NODE: Final = re.compile(r"(?<=[ =])NODE(?![\w.-])")
_TEMPLATE: Final = "=VALUE"
"""In a command whose value differs from node to node."""


@dataclass(frozen=True, slots=True)
class Fix:
    """A change with which the pod, or its group, fits."""

    DERIVED: ClassVar = ("kind",)

    text: str  # the change, in the imperative
    nodes: tuple[str, ...]  # where it fits then
    changes: int = 1
    size: int = named("", 0)  # how much a change takes away, to compare single changes: 0 is least
    rank: int = named("", Rank.DROP)  # one of Rank
    object: str = ""  # Kind namespace/name of what a user edits; empty: the text names it
    field: str = ""  # the path of the field there
    patch: tuple[Edit, ...] = ()  # the change that was tried; empty: not that of known objects

    @property
    def kind(self) -> str:
        return Rank(self.rank).name.lower()


def naming_node(text: str, nodes: Sequence[str]) -> str:
    """Return a change whose commands name one of its nodes in the place of NODE."""
    if not nodes or not _NODE.search(text) or (_TEMPLATE in text and len(nodes) > 1):
        return text
    node = min(nodes)
    others = f" ({node} is one of {len(nodes)} such nodes)" if len(nodes) > 1 else ""
    return _NODE.sub(lambda _: node, text) + others
