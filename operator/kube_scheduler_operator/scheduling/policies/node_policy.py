"""The base class of policies that evaluate each node independently.

Subclasses define their inputs and formulas over arrays of nodes; this class caches and updates the
results, and handles rejections and nodes without data.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar

from .arrays import UNKNOWN, Bools, Floats, Ints, Matrix, MatrixColumn, clip, np
from .cluster import Cluster, Node
from .in_flight import InFlight
from .node_loads import LoadColumns
from .pods import Pod
from .policy import BEST, Policy, Rejections
from .tables import ChangeLog, NodeTables


class NodePolicy(Policy):
    """A policy whose score for a node depends only on this node and the kind of the Pod.

    The kind is everything that the formula uses of a Pod, e.g. its CPU and memory requests: Pods of
    one kind share the results.
    """

    resources: ClassVar[tuple[str, ...]] = ()  # in `allocatable` and `capacity`
    # Whether `score_one` and `rejects_one` exist. They update the node of a Pod that was bound, the
    # most frequent change: array operations take as long for one node as for a hundred.
    singly: ClassVar[bool] = False
    preemption_helps: bool = False  # whether a rejected node may accept the Pod after an eviction
    allocatable: dict[str, MatrixColumn]  # by resource; NaN where unknown
    capacity: dict[str, MatrixColumn]
    # The metrics of nodes in `loads`, from the annotations that the argument `annotations` names; a
    # policy with other needs creates `loads` in `start`.
    load_metrics: ClassVar[tuple[str, ...]] = ()
    loads: LoadColumns | None = None  # None: unused
    in_flight: InFlight | None = None  # the Pods that `loads` does not include yet; None: unused

    def __init__(self, arguments: Any, cluster: Cluster) -> None:
        super().__init__(arguments, cluster)
        self.allocatables = Matrix(len(self.resources))
        self.capacities = Matrix(len(self.resources))
        self.allocatable = {
            name: self.allocatables.column(at) for at, name in enumerate(self.resources)
        }
        self.capacity = {name: self.capacities.column(at) for at, name in enumerate(self.resources)}
        self._changes = ChangeLog()
        score, rejects = (self.score_one, self.rejects_one) if self.singly else (None, None)
        self._scores = NodeTables(cluster, self._changes, self.scores_of, score)
        self._rejected = NodeTables(cluster, self._changes, self._rejects, rejects)
        if self.load_metrics:
            annotations = arguments.annotations
            self.loads = LoadColumns(
                cluster, self.load_metrics, self.changed, annotations=annotations
            )
        self.start()
        # Also to names: a node without other data has a row in the tables.
        on_pod = self._pod if self.pods or self.in_flight is not None else None
        self.listen(on_name=self._named, on_node=self._node, on_pod=on_pod)

    # --- overridden by subclasses ---------------------------------------------------------------

    def start(self) -> None:
        """Initialize the policy before it receives the first node."""

    def on_node(self, index: int, node: Node | None) -> bool:
        """Process a change of a node; returns whether more than the columns has changed."""
        return False

    def kind(self, pod: Pod) -> Hashable:
        """Return the inputs of the score from a Pod."""
        return None

    def filter_kind(self, pod: Pod) -> Hashable:
        """Return the inputs of the filter from a Pod; None: all nodes are accepted."""
        return self.kind(pod)

    def scores_of(self, kind: Hashable, indices: Ints) -> Floats:
        """Return the score of each node, an integer 0..BEST; NaN where unknown."""
        raise NotImplementedError

    def score_one(self, kind: Hashable, index: int) -> float:
        """Return exactly the same for one node; see `singly`."""
        raise NotImplementedError

    def rejects(self, kind: Hashable, indices: Ints) -> Bools:
        """Report whether each node is rejected; nodes without data are not."""
        raise NotImplementedError

    def rejects_one(self, kind: Hashable, index: int) -> bool:
        """Return the same for one node; see `singly`."""
        raise NotImplementedError

    def reasons(self, kind: Hashable, indices: Ints) -> list[tuple[str, str]]:
        """Return for each rejected node the reason and its figures; see Rejections."""
        raise NotImplementedError

    def details(self, kind: Hashable, indices: Ints) -> list[dict[str, Any]]:
        """Return inputs and intermediate values for each node."""
        return [{} for _ in indices]

    # --- implementation -------------------------------------------------------------------------

    def filter(self, pod: Pod, indices: Ints) -> Rejections | None:
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
        rejected_nodes: list[int] = indices.take(positions).tolist()
        missing = [index for index in rejected_nodes if index not in texts]
        if missing:
            reasons = self.reasons(kind, np.array(missing, np.intp))
            texts.update(zip(missing, reasons, strict=True))
        rejections = Rejections()
        for position, index in zip(positions, rejected_nodes, strict=True):
            rejections.reasons[position], rejections.figures[position] = texts[index]
        if not self.preemption_helps:
            rejections.unresolvable.update(positions)
        return rejections

    def score(self, pod: Pod, indices: Ints) -> Ints:
        self.refresh()
        return self.settle(self._scores.values(self.kind(pod), indices))

    def settle(self, scores: Ints) -> Ints:
        """Give nodes without data the median of the others, a neutral score."""
        if len(scores) and np.minimum.reduce(scores) < 0:
            unknown = scores < 0
            known = np.sort(scores[~unknown])
            scores[unknown] = known[(len(known) - 1) // 2] if len(known) else 0
        return scores

    def refresh(self) -> None:
        """Update everything that changes with time."""
        if self.loads is not None:
            self.loads.expire()

    def explain(self, pod: Pod, indices: Ints) -> list[dict[str, Any]]:
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
                row["rejected"] = rejected.describe(position)
            rows.append(row)
        return rows

    def changed(self, index: int) -> None:
        """Mark a node whose inputs have changed."""
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
                if column[index] != amount:  # also if both are NaN, which is harmless
                    column[index] = amount
                    changed = True
        if self.loads is not None and self.loads.read(index, node):
            if self.in_flight is not None:
                self.in_flight.renew(index)
            changed = True
        if changed or node is None:
            self.changed(index)

    def _pod(self, index: int, pod: Pod, added: bool) -> None:
        if self.in_flight is not None and self.in_flight.pod(index, pod, added):
            self.changed(index)

    def _rejects(self, kind: Hashable, indices: Ints) -> Floats:
        return self.rejects(kind, indices).astype(np.float64)


def rounded(values: Floats) -> Floats:
    """Round to integers, halves up; NaN unchanged."""
    return np.floor(values + 0.5)


def ten(percent: Floats) -> Floats:
    """Return scores 0..100 of scheduler plugins as scores of an extender."""
    return clip(rounded(percent * (BEST / 100.0)), 0.0, float(BEST))


def ten_one(percent: float) -> float:
    """Return the same for one score."""
    return (
        min(max(math.floor(percent * (BEST / 100.0) + 0.5), 0), BEST)
        if percent == percent
        else percent
    )


def shown(column: Floats, digits: int = 6) -> Sequence[float | None]:
    """Round values for `explain`; None for NaN."""
    return [None if value != value else round(value, digits) for value in column.tolist()]


def rows_of(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Transpose named columns into one row per node."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
