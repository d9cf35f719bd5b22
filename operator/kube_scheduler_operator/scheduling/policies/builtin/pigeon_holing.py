"""pigeon-holing: optimizes one of three objectives over all nodes of a request.

The agent pigeon of kube-safe-scheduler: LOAD_BALANCE equalizes use, CONSOLIDATE makes nodes full or
empty, A_BINPACK adapts between the two to the variation of the Pods' demands. Objectives:
formulas/pigeon.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from ....base.quantities import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from ..arrays import Bools, Floats, Ints, Matrix, np
from ..cluster import Cluster, Node
from ..formulas import pigeon
from ..node_loads import SAFE, LoadColumns
from ..pods import Pod
from ..policy import Policy, argument

A_BINPACK: Final = "A_BINPACK"
LOAD_BALANCE: Final = "LOAD_BALANCE"
CONSOLIDATE: Final = "CONSOLIDATE"

LEAST: Final = {CPU: 10.0, MEMORY: 16.0 * 2**20, PODS: 1.0}
"""Assumed demand of a Pod without a request: 10 millicores, 16 MiB."""
MEMORY_OF_DEMANDS: Final = 100
"""Number of Pods in the statistics of demand; each further one has a weight of 1/100."""


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
        scores = pigeon.scores(values, fits)
        if known is not None:
            those = np.sort(scores[known])
            scores[~known] = those[(len(those) - 1) // 2] if len(those) else 0.0
        return scores.astype(np.intp)

    def explain(self, pod: Pod, indices: Ints) -> list[dict[str, Any]]:
        indices = np.asarray(indices, np.intp)
        demand = self._demand(pod)
        values, fits, known = self._values(demand, indices)
        scores = pigeon.scores(values, fits)
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
            return pigeon.load_balance(used[0] * inverse[0], after[0] * inverse[0]), fits
        if objective == CONSOLIDATE:
            return pigeon.consolidate(used[0] * inverse[0], after[0] * inverse[0]), fits
        system = pigeon.variation(np.minimum(used * inverse, 1.0), np.minimum(after * inverse, 1.0))
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
        return pigeon.demand_variation(mean, seconds)


def _nothing(_index: int) -> None:
    """Ignore a change: values are read on demand."""


def _annotation(resource: str, gpu: str) -> str:
    return "requested_gpu" if resource == gpu else f"requested_{resource}"
