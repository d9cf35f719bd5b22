"""Random histories of backup, restore, older CRDs, other clients and clocks.

A quarter of the number of other histories, which KSO_HISTORIES=N sets. KSO_TROUBLE=S plays the one
that failed.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ..seeds import chunks, number, some_in_presubmit
from .histories import play
from .troubles import Troubles

COUNT = number("KSO_HISTORIES", 1_000, soak=20_000) // 4
CHUNKS = chunks(COUNT, 10, Troubles.seed_variable)


@pytest.mark.parametrize(
    "seeds", some_in_presubmit(CHUNKS, 1), ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}"
)
def test_every_history_with_troubles_ends_well_with_bounded_writes(
    seeds: range, record_property: Callable[[str, object], None]
) -> None:
    played = [play(seed, Troubles) for seed in seeds]
    record_property("histories", len(played))
    record_property("disturbances", sum(history.disturbances for history in played))
    record_property("checks", sum(history.world.invariants.checks for history in played))
