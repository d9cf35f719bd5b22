"""A change that helps, as text and JSON show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..base.field_types import named
from .constraint import Rank
from .edits import Edit


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
