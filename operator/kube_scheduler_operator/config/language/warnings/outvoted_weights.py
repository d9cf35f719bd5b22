"""Score weights with which some plugins can only break ties.

A plugin scores a node from 0 to 100 in integers, an extender from 0 to 10, multiplied by ten. The
node with the greatest weighted sum wins. Take the heaviest scorers, and let g be the greatest
common divisor of the weighted values of one point of each: their sum is a multiple of g, so two
nodes that differ in it differ by at least g. All other scorers together contribute at most the sum
of their maximum scores. If that is less than g, they only choose among nodes with equal scores of
the heavy ones: they are outvoted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

MAX_NODE_SCORE: Final = 100
EXTENDER_POINTS: Final = 10
"""Points of a plugin's 100 that one of an extender's 10 points is worth."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """A plugin or an extender that scores nodes."""

    name: str  # of the plugin, or a label for the extender
    point: int  # weighted value of one point, at least 1
    most: int  # weighted value of the maximum score
    optional: bool = False  # whether it only scores some pods, and so cannot outvote others

    @classmethod
    def plugin(cls, name: str, weight: int) -> Scorer:
        """Create a plugin; weight 0 means 1, and a negative weight counts like a positive one."""
        point = abs(weight) or 1
        return cls(name, point, MAX_NODE_SCORE * point)

    @classmethod
    def extender(cls, name: str, weight: int, *, optional: bool) -> Scorer:
        return cls(name, EXTENDER_POINTS * weight, MAX_NODE_SCORE * weight, optional)


@dataclass(frozen=True, slots=True)
class Outvoted:
    deciding: tuple[str, ...]  # scorers that decide alone, heaviest first
    outvoted: tuple[str, ...]  # scorers that only break ties
    unit: int  # smallest difference of two nodes in the sum of the deciding scorers
    reach: int  # maximum sum of the outvoted scorers, less than `unit`


def outvoted(scorers: Iterable[Scorer]) -> Outvoted | None:
    """Find the smallest set of scorers that outvotes all others; None if no set does."""
    ordered = sorted(scorers, key=lambda scorer: -scorer.point)
    for count in range(1, len(ordered)):
        deciding, others = ordered[:count], ordered[count:]
        if deciding[-1].optional:
            return None
        unit = math.gcd(*(scorer.point for scorer in deciding))
        reach = sum(scorer.most for scorer in others)
        if unit > reach:
            return Outvoted(_names(deciding), _names(others), unit, reach)
    return None


def _names(scorers: Sequence[Scorer]) -> tuple[str, ...]:
    return tuple(scorer.name for scorer in scorers)
