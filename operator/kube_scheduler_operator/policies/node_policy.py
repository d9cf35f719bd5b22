"""A policy that judges each node by itself: tables, rejections with reasons, unknown nodes.

Subclasses say what they look at and write their formulas over arrays of nodes; how the answer is
kept and brought up to date is settled here.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, ClassVar

from .arrays import UNKNOWN, Matrix, clip, np
from .node_loads import Loads
from .policy import BEST, Policy, Rejections
from .tables import Changes, Tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .arrays import Bools, Floats, Ints, MatrixColumn
    from .cluster import Cluster, Node
    from .pods import Pod


class NodePolicy(Policy):
    """A policy whose score for a node depends on this node and the kind of pod alone.

    A kind is all that the formula takes from a pod, e.g. its CPU and memory requests: pods of one
    kind share what has been worked out.

    Attributes:
        resources: of these the node's amounts are in `allocatable` and `capacity`.
        singly: `score_one` and `rejects_one` are there, for a node that a pod has come to; a pod
            that is placed is the most frequent change, and arrays take as long for one node as for
            a hundred.
        preemption_helps: a node that is rejected may take the pod if others are evicted from it.
        allocatable: resource to what pods may have, NaN where nothing is known.
        capacity: resource to what the machine has.
        allocatables, capacities: the same together, in the order of `resources`.
        loads: what nodes say of their load; None: it is of no interest.
    """

    resources: ClassVar[tuple[str, ...]] = ()
    singly: ClassVar[bool] = False
    preemption_helps: bool = False
    allocatable: dict[str, MatrixColumn]
    capacity: dict[str, MatrixColumn]
    loads: Loads | None = None

    def __init__(self, arguments: Any, cluster: Cluster) -> None:
        super().__init__(arguments, cluster)
        self.allocatables = Matrix(len(self.resources))
        self.capacities = Matrix(len(self.resources))
        self.allocatable = {
            name: self.allocatables.column(at) for at, name in enumerate(self.resources)
        }
        self.capacity = {name: self.capacities.column(at) for at, name in enumerate(self.resources)}
        self._changes = Changes()
        score, rejects = (self.score_one, self.rejects_one) if self.singly else (None, None)
        self._scores = Tables(cluster, self._changes, self.scores_of, score)
        self._rejected = Tables(cluster, self._changes, self._rejects, rejects)
        self.start()
        # Also of names: a node of which nothing else is known has a row in the tables.
        self.listen(on_name=self._named, on_node=self._node)

    # --- what subclasses say --------------------------------------------------------------------

    def start(self) -> None:
        """Make what is needed before the first node is told of."""

    def on_node(self, index: int, node: Node | None) -> bool:
        """A node has come, changed or gone; returns whether more of it matters than the columns."""
        return False

    def on_load(self, index: int) -> None:
        """What is known of a node's load has changed."""

    def kind(self, pod: Pod) -> Hashable:
        """What the score takes from a pod."""
        return None

    def filter_kind(self, pod: Pod) -> Hashable:
        """What the filter takes from a pod; None: it accepts this pod everywhere."""
        return self.kind(pod)

    def scores_of(self, kind: Hashable, indices: Ints) -> Floats:
        """The score of each node, a whole number 0..BEST; NaN where it is unknown."""
        raise NotImplementedError

    def score_one(self, kind: Hashable, index: int) -> float:
        """The same to the last digit, for one node; see `singly`."""
        raise NotImplementedError

    def rejects(self, kind: Hashable, indices: Ints) -> Bools:
        """Whether each node is refused; where nothing is known it is not."""
        raise NotImplementedError

    def rejects_one(self, kind: Hashable, index: int) -> bool:
        """The same for one node; see `singly`."""
        raise NotImplementedError

    def reasons(self, kind: Hashable, indices: Ints) -> list[tuple[str, str]]:
        """Why nodes are refused: for each the reason and its figures; see Rejections."""
        raise NotImplementedError

    def details(self, kind: Hashable, indices: Ints) -> list[dict[str, Any]]:
        """Inputs and intermediate values for each node."""
        return [{} for _ in indices]

    # --- how it is done -------------------------------------------------------------------------

    def filter(self, pod: Pod, indices: Ints) -> Rejections | None:
        """See Policy."""
        if not self.filters:
            return None
        self.refresh()
        kind = self.filter_kind(pod)
        if kind is None:
            return None
        table = self._rejected.table(kind)
        if table is None:
            rejected, texts = self.rejects(kind, indices).astype(np.intp), {}
        else:
            rejected, texts = table.values.take(indices), table.texts
        positions: list[int] = rejected.nonzero()[0].tolist()
        if not positions:
            return None
        those: list[int] = indices.take(positions).tolist()
        missing = [index for index in those if index not in texts]
        if missing:
            reasons = self.reasons(kind, np.array(missing, np.intp))
            texts.update(zip(missing, reasons, strict=True))
        found = Rejections()
        for position, index in zip(positions, those, strict=True):
            found.reasons[position], found.figures[position] = texts[index]
        if not self.preemption_helps:
            found.unresolvable.update(positions)
        return found

    def score(self, pod: Pod, indices: Ints) -> Ints:
        """See Policy."""
        self.refresh()
        return self.settle(self._scores.values(self.kind(pod), indices))

    def settle(self, found: Ints) -> Ints:
        """Give unknown nodes the median of the known ones: neither drawn to nor kept away."""
        if len(found) and np.minimum.reduce(found) < 0:
            unknown = found < 0
            known = np.sort(found[~unknown])
            found[unknown] = known[(len(known) - 1) // 2] if len(known) else 0
        return found

    def refresh(self) -> None:
        """Whatever changes by time alone."""
        if self.loads is not None:
            self.loads.expire()

    def explain(self, pod: Pod, indices: Ints) -> list[dict[str, Any]]:
        """See Policy."""
        self.refresh()
        indices = np.asarray(indices, np.intp)
        rejected = self.filter(pod, indices) if self.filters else None
        scores = self.score(pod, indices).tolist() if self.scores else [None] * len(indices)
        kind = self.kind(pod)
        rows = []
        for position, (detail, score) in enumerate(
            zip(self.details(kind, indices), scores, strict=True)
        ):
            row = {"node": self.cluster.names[int(indices[position])], **detail}
            if score is not None:
                row["score"] = score
            if rejected and position in rejected.reasons:
                row["rejected"] = rejected.told(position)
            rows.append(row)
        return rows

    def changed(self, index: int) -> None:
        """Something that the formulas look at has changed for a node."""
        self._changes.mark(index, len(self.cluster))

    def _named(self, index: int, name: str) -> None:
        self.changed(index)

    def _node(self, index: int, node: Node | None) -> None:
        changed = self.on_node(index, node)
        for name in self.resources:
            allocatable = (node.allocatable.get(name) if node else None) or UNKNOWN
            capacity = (node.capacity.get(name) if node else None) or allocatable
            for column, amount in (
                (self.allocatable[name], allocatable),
                (self.capacity[name], capacity),
            ):
                if column[index] != amount:  # or both are NaN, which does no harm
                    column[index] = amount
                    changed = True
        if self.loads is not None and self.loads.read(index, node):
            self.on_load(index)
            changed = True
        if changed or node is None:
            self.changed(index)

    def _rejects(self, kind: Hashable, indices: Ints) -> Floats:
        return self.rejects(kind, indices).astype(np.float64)


def rounded(values: Floats) -> Floats:
    """To whole numbers, halves up; what is NaN stays NaN."""
    return np.floor(values + 0.5)


def ten(percent: Floats) -> Floats:
    """A score of 0..100, as plugins of the scheduler have it, as one of an extender."""
    return clip(rounded(percent * (BEST / 100.0)), 0.0, float(BEST))


def ten_one(percent: float) -> float:
    """The same of one score."""
    return (
        min(max(math.floor(percent * (BEST / 100.0) + 0.5), 0), BEST)
        if percent == percent
        else percent
    )


def shown(column: Floats, digits: int = 6) -> Sequence[float | None]:
    """Figures for `explain`: rounded, None for NaN."""
    return [None if value != value else round(value, digits) for value in column.tolist()]
