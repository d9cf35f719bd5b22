"""Precomputed values of all nodes, updated only for nodes that have changed."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from .arrays import Floats, Ints, np
from .cluster import Cluster

Compute = Callable[[Hashable, "Ints"], "Floats"]
"""(kind of Pod, node indices) to values: integers of 0 or more, or NaN if unknown."""

ComputeOne = Callable[[Hashable, int], float]
"""Return the same for one node."""

NONE: Final = -1
"""In a table: the value is unknown."""

MAX_TABLES: Final = 64
"""Tables per policy: the number of kinds of Pods that can alternate without recomputation."""

_FEW: Final = 16
"""Up to this number, nodes are computed one by one, which is faster than numpy."""

_LOG: Final = 1024
"""After more changes than this and than nodes, tables are recomputed in full."""


class ChangeLog:
    """The changed nodes in order; each reader keeps its position."""

    __slots__ = ("epoch", "log")

    def __init__(self) -> None:
        self.log: list[int] = []
        self.epoch = 0

    def mark(self, index: int, size: int) -> None:
        """Add a changed node; `size` is the number of nodes."""
        log = self.log
        if len(log) > max(size, _LOG):
            self.mark_all()
        else:
            log.append(index)

    def mark_all(self) -> None:
        """Invalidate all tables."""
        self.epoch += 1
        self.log.clear()


class NodeTable:
    """The values of all nodes for one kind of Pod."""

    __slots__ = ("epoch", "read", "texts", "values")

    def __init__(self, epoch: int, read: int, values: Ints) -> None:
        self.epoch, self.read = epoch, read  # position in the change log
        self.values = values  # one per node; NONE if unknown (intp, at least the number of nodes)
        # cached reasons and figures by node, removed when the node changes
        self.texts: dict[int, tuple[str, str]] = {}


class NodeTables:
    """One integer per node for each kind of Pod.

    The first request with a kind computes only the requested nodes, the second one all nodes; from
    then on only changed nodes are recomputed; single ones with `compute`, without `compute_one`.
    """

    def __init__(
        self,
        cluster: Cluster,
        changes: ChangeLog,
        compute: Compute,
        compute_one: ComputeOne | None = None,
    ) -> None:
        self._cluster, self._changes = cluster, changes
        self._compute, self._compute_one = compute, compute_one
        self._tables: dict[Hashable, NodeTable | None] = {}

    def values(self, kind: Hashable, indices: Ints) -> Ints:
        """Return the values at `indices`; NONE if unknown (intp[len(indices)])."""
        table = self.table(kind)
        if table is None:
            return _whole(self._compute(kind, indices))
        return table.values.take(indices)

    def table(self, kind: Hashable) -> NodeTable | None:
        """Return the values of all nodes; None for the first request with a kind."""
        tables = self._tables
        if kind not in tables:
            if len(tables) >= MAX_TABLES:
                del tables[next(iter(tables))]
            tables[kind] = None
            return None
        table, changes = tables[kind], self._changes
        if table is None or table.epoch != changes.epoch:
            table = tables[kind] = self._all(kind)
        elif table.read != len(changes.log):
            self._renew(kind, table)
        return table

    def _all(self, kind: Hashable) -> NodeTable:
        every = np.arange(len(self._cluster))
        values = _whole(self._compute(kind, every))
        return NodeTable(self._changes.epoch, len(self._changes.log), values)

    def _renew(self, kind: Hashable, table: NodeTable) -> None:
        which = set(self._changes.log[table.read :])
        missing = len(self._cluster) - len(table.values)
        if missing > 0:
            room = np.full(max(missing, len(table.values) // 2, 64), NONE, np.intp)
            table.values = np.concatenate((table.values, room))
        if table.texts:
            for index in which:
                table.texts.pop(index, None)
        compute_one = self._compute_one
        if compute_one is None or len(which) > _FEW:
            many = np.array(sorted(which), np.intp)
            table.values[many] = _whole(self._compute(kind, many))
        else:
            for index in which:
                value = compute_one(kind, index)
                table.values[index] = value if value == value else NONE
        table.read = len(self._changes.log)


def _whole(values: Floats) -> Ints:
    return np.where(np.isnan(values), NONE, values).astype(np.intp)
