"""What is worked out for all nodes beforehand, and again only for those that have changed."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Final

from .arrays import np

if TYPE_CHECKING:
    from .arrays import Floats, Ints
    from .cluster import Cluster

Compute = Callable[[Hashable, "Ints"], "Floats"]
"""(kind of pod, node indices) to one value each: a whole number, 0 or more; NaN: unknown."""

One = Callable[[Hashable, int], float]
"""The same of one node."""

NONE: Final = -1
"""In a table: nothing is known of the node."""

KEPT: Final = 64
"""Tables a policy keeps: as many kinds of pods can come in turns without computing all anew."""

_FEW: Final = 16
"""So many nodes are computed one by one: with few, numpy takes as long as for one."""

_LOG: Final = 1024
"""When more changes than that and than there are nodes have piled up, all is computed anew."""


class Changes:
    """Which nodes have changed, in order; readers remember how far they have read."""

    __slots__ = ("epoch", "log")

    def __init__(self) -> None:
        self.log: list[int] = []
        self.epoch = 0

    def mark(self, index: int, size: int) -> None:
        """A node has changed; there are `size` of them."""
        log = self.log
        if len(log) > max(size, _LOG):
            self.mark_all()
        else:
            log.append(index)

    def mark_all(self) -> None:
        """Whatever was read before is worth nothing now."""
        self.epoch += 1
        self.log.clear()


class Table:
    """Values of all nodes for one kind of pod.

    Attributes:
        values: one a node, NONE for an unknown one (intp[at least as many as there are nodes]).
        texts: by node what somebody wants to say of its value, and with what figures; forgotten
            when that may change.
        epoch, read: which changes it has seen.
    """

    __slots__ = ("epoch", "read", "texts", "values")

    def __init__(self, epoch: int, read: int, values: Ints) -> None:
        self.epoch, self.read, self.values = epoch, read, values
        self.texts: dict[int, tuple[str, str]] = {}


class Tables:
    """Whole numbers, one a node, for each kind of pod.

    A kind that is seen for the first time is computed for the nodes that are asked for alone; the
    second time all nodes are, once, and from then on only those that change.

    Args:
        cluster: whose nodes.
        changes: of whatever `compute` looks at.
        compute: see Compute.
        one: see One; None: one node is computed as many are.
    """

    def __init__(
        self,
        cluster: Cluster,
        changes: Changes,
        compute: Compute,
        one: One | None = None,
    ) -> None:
        self._cluster, self._changes = cluster, changes
        self._compute, self._one = compute, one
        self._tables: dict[Hashable, Table | None] = {}

    def values(self, kind: Hashable, indices: Ints) -> Ints:
        """The values at `indices`, NONE for what is unknown (intp[len(indices)])."""
        table = self.table(kind)
        if table is None:
            return _whole(self._compute(kind, indices))
        return table.values.take(indices)

    def table(self, kind: Hashable) -> Table | None:
        """The values of all nodes; None if the kind has not been seen before."""
        tables = self._tables
        if kind not in tables:
            if len(tables) >= KEPT:
                del tables[next(iter(tables))]
            tables[kind] = None
            return None
        table, changes = tables[kind], self._changes
        if table is None or table.epoch != changes.epoch:
            table = tables[kind] = self._all(kind)
        elif table.read != len(changes.log):
            self._renew(kind, table)
        return table

    def _all(self, kind: Hashable) -> Table:
        every = np.arange(len(self._cluster))
        values = _whole(self._compute(kind, every))
        return Table(self._changes.epoch, len(self._changes.log), values)

    def _renew(self, kind: Hashable, table: Table) -> None:
        which = set(self._changes.log[table.read :])
        missing = len(self._cluster) - len(table.values)
        if missing > 0:
            room = np.full(max(missing, len(table.values) // 2, 64), NONE, np.intp)
            table.values = np.concatenate((table.values, room))
        if table.texts:
            for index in which:
                table.texts.pop(index, None)
        one = self._one
        if one is None or len(which) > _FEW:
            many = np.array(sorted(which), np.intp)
            table.values[many] = _whole(self._compute(kind, many))
        else:
            for index in which:
                value = one(kind, index)
                table.values[index] = value if value == value else NONE
        table.read = len(self._changes.log)


def _whole(values: Floats) -> Ints:
    return np.where(np.isnan(values), NONE, values).astype(np.intp)
