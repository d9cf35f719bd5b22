"""Tables of values are updated with changes."""

from __future__ import annotations

import time
from collections.abc import Hashable
from typing import Any

import numpy as np
import pytest

from kube_scheduler_operator.scheduling.policies.cluster import Cluster
from kube_scheduler_operator.scheduling.policies.tables import NONE, ChangeLog, NodeTables

from .playing import node


class Known:
    """A value for each of 40 nodes, which can be unavailable."""

    def __init__(self, *, singly: bool) -> None:
        self.values = np.arange(40.0)
        self.fails = False
        self.asked: list[int] = []
        cluster = Cluster(time.time)
        for at in range(40):
            cluster.set_node(node(f"n{at:02}"))
        self.changes = ChangeLog()
        self.tables = NodeTables(cluster, self.changes, self._many, self._one if singly else None)

    def change(self, at: int, value: float) -> None:
        self.values[at] = value
        self.changes.mark(at, 40)

    def shown(self) -> list[int]:
        self.asked = []
        found: list[int] = self.tables.values("kind", np.arange(40)).tolist()
        return found

    def _many(self, _: Hashable, indices: Any) -> Any:
        self._ask(indices.tolist())
        return self.values[indices]

    def _one(self, _: Hashable, index: int) -> float:
        self._ask([index])
        return float(self.values[index])

    def _ask(self, indices: list[int]) -> None:
        if self.fails:
            raise RuntimeError("not now")
        self.asked += indices


@pytest.fixture(params=[True, False], ids=["singly", "as arrays"])
def known(request: pytest.FixtureRequest) -> Known:
    made = Known(singly=request.param)
    for _ in range(3):  # asked for, all computed, kept
        assert made.shown() == list(range(40))
    assert not made.asked
    return made


@pytest.mark.parametrize("count", [1, 16, 17, 40])
def test_changed_nodes_are_recomputed_once(known: Known, count: int) -> None:
    for at in range(count):
        known.change(at, 99.0)
        known.change(at, 100.0 + at)
    expected = [100 + at if at < count else at for at in range(40)]
    assert known.shown() == expected
    assert sorted(known.asked) == list(range(count))
    assert known.shown() == expected
    assert not known.asked


@pytest.mark.parametrize("count", [1, 40])
def test_unknown_values_are_none(known: Known, count: int) -> None:
    for at in range(count):
        known.change(at, np.nan)
    assert known.shown()[:count] == [NONE] * count


@pytest.mark.parametrize("count", [1, 40])
def test_a_failed_computation_is_repeated(known: Known, count: int) -> None:
    for at in range(count):
        known.change(at, 7.0)
    known.fails = True
    for _ in range(2):  # and not taken for the old value
        with pytest.raises(RuntimeError):
            known.shown()
    known.fails = False
    assert known.shown()[:count] == [7] * count
