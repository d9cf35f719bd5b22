"""What is worked out for all nodes beforehand, and again only for those that have changed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Final

from .arrays import np

if TYPE_CHECKING:
    from .arrays import Floats, Ints
    from .cluster import Cluster

Compute = Callable[[Hashable, "Ints"], "Floats"]
"""(kind of pod, node indices) to one value each: a whole number, 0 or more; NaN: unknown."""

Together = Callable[[Sequence[Hashable], "Ints"], "Floats"]
"""The same of several kinds at a time (float64[kinds, n])."""

NONE: Final = -1
"""In a table: nothing is known of the node."""

KEPT: Final = 64
"""Tables a policy keeps: as many kinds of pods can come in turns without computing all anew."""

_AT_ONCE: Final = 4096
"""So many values of several kinds are computed together: with few, numpy takes as long for one."""

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
        together: see Together; None: each kind is computed by itself.
    """

    def __init__(
        self,
        cluster: Cluster,
        changes: Changes,
        compute: Compute,
        together: Together | None = None,
    ) -> None:
        self._cluster, self._changes = cluster, changes
        self._compute, self._together = compute, together
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
        """Bring a table up to date, and the others with it: pods of several kinds come in turns."""
        epoch, read = self._changes.epoch, table.read
        which = np.array(sorted(set(self._changes.log[read:])), np.intp)
        if self._together is not None:
            # Those that have read less are of kinds that come seldom: they wait for their turn.
            those = {
                other: each
                for other, each in self._tables.items()
                if each is not None and each.epoch == epoch and each.read >= read
            }
            if 1 < len(those) <= _AT_ONCE // len(which):
                found = self._together(list(those), which)
                for each, values in zip(those.values(), found, strict=True):
                    self._write(each, which, values)
                return
        self._write(table, which, self._compute(kind, which))

    def _write(self, table: Table, which: Ints, values: Floats) -> None:
        if table.texts:
            for index in which.tolist():
                table.texts.pop(index, None)
        table.read = len(self._changes.log)
        missing = len(self._cluster) - len(table.values)
        if missing > 0:
            room = np.full(max(missing, len(table.values) // 2, 64), NONE, np.intp)
            table.values = np.concatenate((table.values, room))
        table.values[which] = _whole(values)


def _whole(values: Floats) -> Ints:
    return np.where(np.isnan(values), NONE, values).astype(np.intp)
