"""Random histories: 1,000 of them, 20,000 with KSO_SOAK.

KSO_HISTORIES=N plays N of them, KSO_SEED=S the one that failed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ..seeds import chunks, number, some_in_presubmit
from .histories import play

CHUNKS = chunks(number("KSO_HISTORIES", 1_000, soak=20_000), 10)


@pytest.mark.parametrize(
    "seeds", some_in_presubmit(CHUNKS, 1), ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}"
)
def test_every_history_keeps_the_invariants_and_ends_well(
    seeds: range, record_property: Callable[[str, object], None]
) -> None:
    played: list[Any] = [play(seed) for seed in seeds]
    record_property("histories", len(played))
    record_property("disturbances", sum(history.disturbances for history in played))
    record_property("checks", sum(history.world.invariants.checks for history in played))
