"""What a source says of a node, and what is written of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ...load.policy import METRICS, Rules

KEYS: Final = (
    *METRICS,
    "free_cpu_mean", "free_cpu_std", "free_cpu_forecast",
    "free_memory_mean", "free_memory_std", "free_memory_forecast",
    "congestion",
)  # fmt: skip
"""The figures of our annotation, in its order. Usage is a fraction of capacity, free CPU is in
thousandths of a core, free memory in bytes, congestion 0..100."""

AMOUNTS: Final[Mapping[str, str]] = {"cpu": "cpu", "mem": "memory"}
"""Prefix of usage to the name in amounts."""

UNKNOWN: Final = math.nan


class SourceError(Exception):
    """A source has nothing to say of a node, or of any; the text says why."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a source says of one node at one time.

    Attributes:
        at: when it was measured, seconds since 1970.
        usage: metric -> fraction of capacity, of METRICS; what the source knows.
        active: resource ("cpu", "mem") -> fraction of capacity at the moment.
        mean: resource -> mean usage over a long time.
        std: resource -> its standard deviation.
        cpu: capacity in thousandths of a core; 0 if the source does not know.
        memory: capacity in bytes; 0 if the source does not know.
    """

    at: float
    usage: Mapping[str, float] = field(default_factory=dict)
    active: Mapping[str, float] = field(default_factory=dict)
    mean: Mapping[str, float] = field(default_factory=dict)
    std: Mapping[str, float] = field(default_factory=dict)
    cpu: float = 0.0
    memory: float = 0.0


@dataclass(frozen=True, slots=True)
class Load:
    """What there is to say of a node.

    Attributes:
        at: when it was measured, seconds since 1970.
        source: the type of the source.
        values: one for each of KEYS; NaN if it is not known.
        capacities: what `free_*` can be at most: cpu, memory.
    """

    at: float
    source: str
    values: tuple[float, ...]
    capacities: tuple[float, float] = (0.0, 0.0)

    def __getitem__(self, key: str) -> float:
        return self.values[KEYS.index(key)]


def congestion(usage: Mapping[str, float], rules: Rules) -> float:
    """How far a node is beyond its limits: 0 below all of them, 100 where nothing is left.

    kube-safe-scheduler takes this figure as given (its annotation `congestion-factor`, 0 to 100);
    here it is the worst of (usage - limit) / (1 - limit), percent.
    """
    worst = 0.0
    for predicate in rules.predicates:
        value = usage.get(predicate.name, UNKNOWN)
        if value > predicate.limit:
            left = 1.0 - predicate.limit
            worst = max(worst, (value - predicate.limit) / left if left > 0 else 1.0)
    return min(worst, 1.0) * 100.0


def score(values: Mapping[str, float], rules: Rules) -> float:
    """Crane's score without hot values, 0..100; what is not known counts for nothing.

    Source: gocrane/crane-scheduler, pkg/plugins/dynamic/stats.go, getNodeScore.
    """
    total = weights = 0.0
    for priority in rules.priorities:
        value = values.get(priority.name, UNKNOWN)
        if not math.isnan(value):
            total += (1.0 - value) * priority.weight * 100.0
            weights += priority.weight
    return min(max(total / weights, 0.0), 100.0) if weights > 0 else 0.0
