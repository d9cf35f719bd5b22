"""Random histories of backup, restore, older CRDs, other clients and clocks.

They take long: KSO_HISTORIES=N plays N/10 of them, KSO_TROUBLE=S the one that failed.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from .histories import play
from .troubles import Troubles

COUNT = int(os.environ.get("KSO_HISTORIES", "2000")) // 10
SEED = os.environ.get(Troubles.seed_variable)
CHUNK = 10
CHUNKS = [range(first, min(first + CHUNK, COUNT)) for first in range(0, COUNT, CHUNK)]


@pytest.mark.parametrize(
    "seeds",
    [[int(SEED)]] if SEED else CHUNKS,
    ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}",
)
def test_every_history_with_troubles_ends_well_with_bounded_writes(
    seeds: list[int], record_property: Callable[[str, object], None]
) -> None:
    played = [play(seed, Troubles) for seed in seeds]
    record_property("histories", len(played))
    record_property("disturbances", sum(history.disturbances for history in played))
    record_property("checks", sum(history.world.invariants.checks for history in played))
