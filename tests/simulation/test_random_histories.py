"""Random histories, 2,000 of them unless KSO_HISTORIES is set.

KSO_HISTORIES=N plays N of them, KSO_SEED=S the one that failed.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from .histories import play

COUNT = int(os.environ.get("KSO_HISTORIES", "2000"))
SEED = os.environ.get("KSO_SEED")
CHUNK = 10
CHUNKS = [range(first, min(first + CHUNK, COUNT)) for first in range(0, COUNT, CHUNK)]


@pytest.mark.parametrize(
    "seeds",
    [[int(SEED)]] if SEED else CHUNKS,
    ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}",
)
def test_every_history_keeps_the_invariants_and_ends_well(
    seeds: list[int], record_property: Callable[[str, object], None]
) -> None:
    played = [play(seed) for seed in seeds]
    record_property("histories", len(played))
    record_property("disturbances", sum(history.disturbances for history in played))
    record_property("checks", sum(history.world.invariants.checks for history in played))
