"""pigeon-holing: optimizes one of three objectives over all nodes of a request.

The agent pigeon of kube-safe-scheduler: LOAD_BALANCE equalizes use, CONSOLIDATE makes nodes full or
empty, A_BINPACK adapts between the two to the variation of the Pods' demands.

Tantawi and Steinder, "Autonomic cloud placement of mixed workload: an adaptive bin packing
algorithm", ICAC 2019, pp. 187-193. The original evaluates the objective over all nodes for
each placement, in n² steps; here sums over all nodes are corrected for the one node that changes,
in n steps (n·log n for CONSOLIDATE). Lower is better.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from ....base.quantities import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from ..arrays import Bools, Floats, Ints, Matrix, np
from ..cluster import Cluster, Node
from ..node_loads import SAFE, LoadColumns
from ..pods import Pod
from ..policy import BEST, Policy, argument

A_BINPACK: Final = "A_BINPACK"
LOAD_BALANCE: Final = "LOAD_BALANCE"
CONSOLIDATE: Final = "CONSOLIDATE"

LEAST: Final = {CPU: 10.0, MEMORY: 16.0 * 2**20, PODS: 1.0}
"""Assumed demand of a Pod without a request: 10 millicores, 16 MiB."""
MEMORY_OF_DEMANDS: Final = 100
"""Number of Pods in the statistics of demand; each further one has a weight of 1/100."""

_STEPS: Final = 1e9
"""Differences of objectives below 1e-9 are rounding errors."""
_TINY: Final = 1e-300


@dataclass(frozen=True, slots=True)
class PigeonHolingArguments:
    objective: str = argument(
        A_BINPACK, "the objective", choices=(A_BINPACK, LOAD_BALANCE, CONSOLIDATE)
    )
    num_resources: int = argument(
        2,
        "number of resources considered, in the order CPU, memory, Pods, GPUs, ephemeral storage",
        least=1,
        most=5,
    )
    gpu_resource: str = argument("nvidia.com/gpu", "resource name of GPUs")
    usage: str = argument(
        "pods",
        "source of a node's use: the requests of its Pods, or the annotations `requested-…` of "
        "kube-safe-scheduler's annotator",
        choices=("pods", "annotations"),
    )
    compatibility: bool = argument(
        default=False,
        text="as in the original: GPUs are named `gpu` and their requests are ignored; a "
        "Pod that requests ephemeral storage fits nowhere; every scheduling attempt of a Pod "
        "counts as a demand",
    )


class PigeonHoling(Policy):
    name = "pigeon-holing"
    Arguments: ClassVar[type] = PigeonHolingArguments
    env: ClassVar = {"POLICY_OBJECTIVE": "objective", "NUM_RESOURCES": "num_resources"}
    scores = True
    arguments: PigeonHolingArguments

    def __init__(self, arguments: PigeonHolingArguments, cluster: Cluster) -> None:
        super().__init__(arguments, cluster)
        gpu = "gpu" if arguments.compatibility else arguments.gpu_resource
        everything = (CPU, MEMORY, PODS, gpu, EPHEMERAL_STORAGE)
        self.resources = everything[: arguments.num_resources]
        self._gpu = gpu
        self._capacity = Matrix(len(self.resources))
        self._inverse = Matrix(len(self.resources))
        self._loads: LoadColumns | None = None
        self._used = Matrix(len(self.resources), 0.0)
        if arguments.usage == "annotations":
            names = [_annotation(name, gpu) for name in self.resources]
            self._loads = LoadColumns(cluster, names, _nothing, annotations=SAFE)
        self._demands = Demands(len(self.resources), each_attempt=arguments.compatibility)
        self.listen(on_node=self._node, on_pod=None if self._loads else self._pod)

    def score(self, pod: Pod, indices: Ints) -> Ints:
        demand = self._demand(pod)
        if self.arguments.objective == A_BINPACK:
            self._demands.add(pod.key, demand)
        values, fits, known = self._values(demand, indices)
        scores = _ranked(values, fits)
        if known is not None:
            those = np.sort(scores[known])
            scores[~known] = those[(len(those) - 1) // 2] if len(those) else 0.0
        return scores.astype(np.intp)

    def explain(self, pod: Pod, indices: Ints) -> list[dict[str, Any]]:
        indices = np.asarray(indices, np.intp)
        demand = self._demand(pod)
        values, fits, known = self._values(demand, indices)
        scores = _ranked(values, fits)
        size = len(self.cluster)
        used = self._used.take(indices, size).tolist()
        capacity = self._capacity.take(indices, size).tolist()
        return [
            {
                "node": self.cluster.names[int(index)],
                "used": {name: used[r][at] for r, name in enumerate(self.resources)},
                "capacity": {name: capacity[r][at] for r, name in enumerate(self.resources)},
                "pod": dict(zip(self.resources, demand, strict=True)),
                "fits": bool(fits[at]),
                "objective": round(float(values[at]), 6) if fits[at] else None,
                "score": int(scores[at]) if known is None or known[at] else None,
            }
            for at, index in enumerate(indices)
        ]

    def _values(self, demand: list[float], indices: Ints) -> tuple[Floats, Bools, Bools | None]:
        """Return (objective with the Pod on each node, whether it fits, known nodes; None: all)."""
        size = len(self.cluster)
        capacity = self._capacity.take(indices, size)
        known = ~np.isnan(capacity[0])
        if known.all():
            return (*self._known_values(demand, indices, capacity), None)
        values, fits = np.zeros(len(indices)), np.zeros(len(indices), np.bool_)
        if known.any():
            values[known], fits[known] = self._known_values(
                demand, indices[known], capacity[:, known]
            )
        return values, fits, known

    def _known_values(
        self, demand: list[float], indices: Ints, capacity: Floats
    ) -> tuple[Floats, Bools]:
        size = len(self.cluster)
        used, inverse = self._used.take(indices, size), self._inverse.take(indices, size)
        after = used + np.array(demand)[:, None]
        fits: Bools = np.logical_and.reduce(after <= capacity)
        objective = self.arguments.objective
        if not len(indices):
            return np.zeros(0), fits
        if objective == LOAD_BALANCE:
            return load_balance(used[0] * inverse[0], after[0] * inverse[0]), fits
        if objective == CONSOLIDATE:
            return consolidate(used[0] * inverse[0], after[0] * inverse[0]), fits
        system = variation(np.minimum(used * inverse, 1.0), np.minimum(after * inverse, 1.0))
        count = np.count_nonzero(capacity, 1).tolist()
        average = [
            total / n if n else 1.0
            for total, n in zip(np.add.reduce(capacity, 1).tolist(), count, strict=True)
        ]
        return np.abs(system - self._demands.variation(average)), fits

    def _demand(self, pod: Pod) -> list[float]:
        demand = []
        for name in self.resources:
            amount = 1.0 if name == PODS else pod.requests.get(name, 0.0)
            if self.arguments.compatibility:
                if name == self._gpu:
                    amount = 0.0
                elif name == EPHEMERAL_STORAGE:
                    amount *= 2.0**30  # bytes that are compared with GiB
            demand.append(amount or LEAST.get(name, 0.0))
        return demand

    def _node(self, index: int, node: Node | None) -> None:
        for at, name in enumerate(self.resources):
            # A node without a resource has 0 of it; a removed node is unknown.
            capacity = node.allocatable.get(name, 0.0) if node else np.nan
            self._capacity[at, index] = capacity
            self._inverse[at, index] = 1.0 / (capacity or 1.0)
        if self._loads is not None:
            self._loads.read(index, node)
            for at in range(len(self.resources)):
                used = self._loads.matrix[at, index]
                self._used[at, index] = used if used == used else 0.0

    def _pod(self, index: int, pod: Pod, added: bool) -> None:
        for at, name in enumerate(self.resources):
            amount = 1.0 if name == PODS else pod.requests.get(name, 0.0)
            if amount:
                self._used[at, index] += amount if added else -amount


class Demands:
    """Running mean and second moments of the demands of Pods, by resource.

    `each_attempt`: whether every scheduling attempt of a Pod counts.
    """

    def __init__(self, count: int, *, each_attempt: bool) -> None:
        self._mean = [0.0] * count
        self._seconds = [[0.0] * count for _ in range(count)]
        self._seen = 0
        self._each_attempt = each_attempt
        self._latest: deque[str] = deque(maxlen=MEMORY_OF_DEMANDS)
        self._among = set[str]()

    def add(self, key: str, demand: Sequence[float]) -> None:
        """Add the demand of a Pod, which `key` identifies."""
        if not self._each_attempt:
            if key in self._among:
                return
            if len(self._latest) == MEMORY_OF_DEMANDS:
                self._among.discard(self._latest[0])
            self._latest.append(key)
            self._among.add(key)
        self._seen = min(self._seen + 1, MEMORY_OF_DEMANDS)
        for index, amount in enumerate(demand):
            self._mean[index] += (amount - self._mean[index]) / self._seen
            row = self._seconds[index]
            for other, also in enumerate(demand):
                row[other] += (amount * also - row[other]) / self._seen

    def variation(self, average: Sequence[float]) -> float:
        """Return the variation of demands relative to the average capacity (each more than 0)."""
        mean = [value / size for value, size in zip(self._mean, average, strict=True)]
        seconds = [
            [value / (size * other) for value, other in zip(row, average, strict=True)]
            for row, size in zip(self._seconds, average, strict=True)
        ]
        return demand_variation(mean, seconds)


def _nothing(_index: int) -> None:
    """Ignore a change: values are read on demand."""


def _annotation(resource: str, gpu: str) -> str:
    return "requested_gpu" if resource == gpu else f"requested_{resource}"


# --- objectives ---------------------------------------------------------------------------------
# `x` is the use of each node, as a fraction of its capacity (float64[n]), and `after` the use with
# the Pod; each function returns the value for the Pod on each node.


def load_balance(x: Floats, after: Floats) -> Floats:
    """Return the standard deviation of use over all nodes."""
    n = len(x)
    mean = x.sum() / n
    y, step = x - mean, after - x
    squares = (y * y).sum() + (2.0 * y + step) * step
    deviation: Floats = np.sqrt(np.maximum(squares / n - (step / n) ** 2, 0.0))
    return deviation


def consolidate(x: Floats, after: Floats) -> Floats:
    """Return the distance from a state in which all nodes are empty or full.

    1 - the root mean square of the distances from the mean a, relative to the distance to 0 or 1.
    """
    n = len(x)
    ordered = np.sort(x)
    sums = np.zeros((2, n + 1))  # of the lowest k values, and of their squares
    np.add.accumulate(ordered, out=sums[0, 1:])
    np.add.accumulate(ordered * ordered, out=sums[1, 1:])
    total, total_of_squares = sums[:, n].tolist()
    a = (total + (after - x)) / n
    lowest, highest = float(a.min()), float(a.max())
    inside = lowest > 0.0 and highest < 1.0
    if not inside:
        outside = (a <= 0.0) | (a >= 1.0)
        a[outside] = 0.5
    to_empty, to_full = 1.0 / a, 1.0 / (1.0 - a)
    k = ordered.searchsorted(a)  # number of nodes below the mean
    s, q = sums.take(k, 1)
    count = k.astype(np.float64)
    below = count - to_empty * (2.0 * s - to_empty * q)
    above = total_of_squares - q - a * (2.0 * (total - s) - a * (n - count))
    squares = below + above * to_full * to_full
    # Replace the current distance of the node by the distance with the Pod.
    now, then = x - a, after - a
    now *= np.where(now < 0.0, to_empty, to_full)
    then *= np.where(then < 0.0, to_empty, to_full)
    squares += then * then - now * now
    distance: Floats = 1.0 - np.sqrt(np.maximum(squares, 0.0) / n)
    if not inside:
        distance[outside] = 0.0
    return distance


def variation(x: Floats, after: Floats) -> Floats:
    """Return the multivariate coefficient of variation (Albert and Zhang) of use: √(μᵀΣμ)/μᵀμ.

    `x` and `after` have a row for each resource (float64[m, n]).
    """
    n = x.shape[1]
    seconds = x @ x.T / n
    # float64[m, n]: the mean for each candidate node.
    mean = (np.add.reduce(x, 1)[:, None] + (after - x)) / n
    norm = np.add.reduce(mean * mean)
    old, new = np.add.reduce(mean * x), np.add.reduce(mean * after)
    spread = np.add.reduce((seconds @ mean) * mean) + (new * new - old * old) / n - norm * norm
    np.maximum(spread, 0.0, out=spread)
    coefficient: Floats = np.sqrt(spread) / np.maximum(norm, _TINY)
    return coefficient


def demand_variation(mean: Sequence[float], seconds: Sequence[Sequence[float]]) -> float:
    """Return the same for demands of Pods, from their mean and matrix of second moments."""
    norm = sum(value * value for value in mean)
    spread = -norm * norm + sum(
        first * value * second
        for first, row in zip(mean, seconds, strict=True)
        for second, value in zip(mean, row, strict=True)
    )
    return math.sqrt(spread) / norm if spread > 0.0 and norm > 0.0 else 0.0


def _ranked(values: Floats, fits: Bools) -> Floats:
    """Return 10 for the lowest value, 1 for the highest, 0 if the Pod does not fit."""
    if fits.all():
        return _points(values)
    points = np.zeros(len(values))
    if fits.any():
        points[fits] = _points(values[fits])
    return points


def _points(values: Floats) -> Floats:
    if not len(values):
        return values
    rounded = np.rint(values * _STEPS)
    low, high = float(rounded.min()), float(rounded.max())
    if high <= low:
        return np.full(len(values), float(BEST))
    # Also nine digits, so that half points do not depend on rounding errors.
    share = np.rint((high - rounded) * (_STEPS / (high - low))) / _STEPS
    points: Floats = np.floor(1.5 + (BEST - 1.0) * share)
    return points
