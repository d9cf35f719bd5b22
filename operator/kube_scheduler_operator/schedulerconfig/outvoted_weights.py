"""Score weights with which some plugins cannot decide anything any more.

A plugin scores a node with an integer from 0 to 100, an extender with one from 0 to 10 that counts
ten times. The node with the greatest weighted sum wins. Take the heaviest scorers, and let g be the
greatest common divisor of what one point of each is worth: their sum is a multiple of g, so two
nodes that differ in it differ by at least g. All the others together can make up at most the sum of
their own greatest contributions. If that is less than g, they only choose among nodes on which the
heavy ones agree to the point: they are silenced.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

MAX_NODE_SCORE: Final = 100
EXTENDER_POINTS: Final = 10
"""What one point of an extender, of its 10, is worth beside a plugin's 100."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """Something that scores nodes.

    Attributes:
        name: of the plugin, or how to call the extender.
        point: what one point of it adds to a node's sum, at least 1.
        most: what its greatest score adds.
        optional: True for one that does not score every pod, so that nothing follows from it.
    """

    name: str
    point: int
    most: int
    optional: bool = False

    @classmethod
    def plugin(cls, name: str, weight: int) -> Scorer:
        """A plugin with its weight, 0 counting as 1; below zero it tells nodes apart as well."""
        point = abs(weight) or 1
        return cls(name, point, MAX_NODE_SCORE * point)

    @classmethod
    def extender(cls, name: str, weight: int, *, optional: bool) -> Scorer:
        """An extender with its weight."""
        return cls(name, EXTENDER_POINTS * weight, MAX_NODE_SCORE * weight, optional)


@dataclass(frozen=True, slots=True)
class Silence:
    """Who decides alone.

    Attributes:
        loud: those who decide, heaviest first.
        silent: those who only break their ties.
        unit: the least difference between two nodes in the sum of the loud ones.
        reach: the most that the silent ones can make up together; less than `unit`.
    """

    loud: tuple[str, ...]
    silent: tuple[str, ...]
    unit: int
    reach: int


def silenced(scorers: Iterable[Scorer]) -> Silence | None:
    """The fewest scorers that silence all others; None if everybody has a say."""
    ordered = sorted(scorers, key=lambda scorer: -scorer.point)
    for count in range(1, len(ordered)):
        loud, quiet = ordered[:count], ordered[count:]
        if loud[-1].optional:
            return None
        unit = math.gcd(*(scorer.point for scorer in loud))
        reach = sum(scorer.most for scorer in quiet)
        if unit > reach:
            return Silence(_names(loud), _names(quiet), unit, reach)
    return None


def _names(scorers: Sequence[Scorer]) -> tuple[str, ...]:
    return tuple(scorer.name for scorer in scorers)
