"""Values of a node's load: the measurement of a source, and the load that is annotated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ..load.policy import METRICS, SAFE_KEYS, Rules

KEYS: Final = (*METRICS, *SAFE_KEYS)
"""The metrics of the annotation, in order. Usage is a fraction of capacity, free CPU is in
millicores, free memory in bytes, congestion 0..100."""

AMOUNTS: Final[Mapping[str, str]] = {"cpu": "cpu", "mem": "memory"}
"""Prefix of a usage metric -> name in the keys of amounts."""

UNKNOWN: Final = math.nan


class MeasurementError(Exception):
    """Measuring one node or all nodes failed; the text has the reason."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A source's measurement of one node; optional values may be missing."""

    at: float  # time of the measurement, seconds since 1970
    # metric of METRICS -> fraction of capacity
    usage: Mapping[str, float] = field(default_factory=dict)
    # resource ("cpu", "mem") -> current fraction of capacity
    active: Mapping[str, float] = field(default_factory=dict)
    mean: Mapping[str, float] = field(default_factory=dict)  # resource -> long-term mean usage
    std: Mapping[str, float] = field(default_factory=dict)  # resource -> its standard deviation
    cpu: float = 0.0  # capacity in millicores; 0 if unknown
    memory: float = 0.0  # capacity in bytes; 0 if unknown


@dataclass(frozen=True, slots=True)
class Load:
    at: float  # time of the measurement, seconds since 1970
    source: str  # the type of the source
    values: tuple[float, ...]  # one for each of KEYS; NaN if unknown
    capacities: tuple[float, float] = (0.0, 0.0)  # upper limits of `free_*`: cpu, memory

    def __getitem__(self, key: str) -> float:
        return self.values[KEYS.index(key)]


def congestion(usage: Mapping[str, float], rules: Rules) -> float:
    """Return how far a node exceeds its limits: 0 if it exceeds none, 100 at full usage.

    kube-safe-scheduler does not define this metric (its annotation `congestion-factor`, 0 to 100);
    here it is the maximum of (usage - limit) / (1 - limit) in percent.
    """
    worst = 0.0
    for predicate in rules.predicates:
        value = usage.get(predicate.name, UNKNOWN)
        if value > predicate.limit:
            left = 1.0 - predicate.limit
            worst = max(worst, (value - predicate.limit) / left if left > 0 else 1.0)
    return min(worst, 1.0) * 100.0


def score(values: Mapping[str, float], rules: Rules) -> float:
    """Return Crane's score without hot values, 0..100; unknown metrics are ignored.

    Source: gocrane/crane-scheduler, pkg/plugins/dynamic/stats.go, getNodeScore.
    """
    total = weights = 0.0
    for priority in rules.priorities:
        value = values.get(priority.name, UNKNOWN)
        if not math.isnan(value):
            total += (1.0 - value) * priority.weight * 100.0
            weights += priority.weight
    return min(max(total / weights, 0.0), 100.0) if weights > 0 else 0.0
