"""low-risk-over-commitment: prefers nodes with a low risk from limits above requests.

scheduler-plugins' LowRiskOverCommitment; formulas: formulas/trimaran.py. The score weighs the risk
that limits exceed the capacity, and the risk that Pods use more than they requested.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from ....base.quantities import CPU, MEMORY
from ..arrays import Floats, Ints, Matrix, np
from ..cluster import Cluster
from ..formulas import trimaran
from ..formulas.beta import FEW
from ..node_loads import OWN, SAFE, LoadColumns
from ..node_policy import NodePolicy, rows_of, shown, ten
from ..pods import Pod
from ..policy import argument
from .load_variation_risk_balancing import METRICS, use, use_at

Kind = tuple[float, float, float, float]
"""Requests and limits of a Pod: (CPU, memory, CPU limit, memory limit)."""

WEIGHTS: Final[Mapping[str, float]] = {CPU: 0.5, MEMORY: 0.5}


@dataclass(frozen=True, slots=True)
class LowRiskOverCommitmentArguments:
    smoothing_window_size: int = argument(5, "number of measurements in the mean of use", least=1)
    risk_limit_weights: Mapping[str, float] = argument(
        WEIGHTS,
        "weight of the risk by limits, relative to the risk by load, for each resource",
        least=0,
        most=1,
        choices=(CPU, MEMORY),
    )
    annotations: str = argument(OWN, "annotations to read", choices=(OWN, SAFE))


class LowRiskOverCommitment(NodePolicy):
    name = "low-risk-over-commitment"
    Arguments: ClassVar[type] = LowRiskOverCommitmentArguments
    scores = True
    resources = (CPU, MEMORY)
    load_metrics = METRICS
    arguments: LowRiskOverCommitmentArguments
    loads: LoadColumns

    def __init__(self, arguments: LowRiskOverCommitmentArguments, cluster: Cluster) -> None:
        super().__init__(arguments, cluster)
        self.listen(on_pod=self._pod)

    def start(self) -> None:
        self._requests, self._limits = Matrix(2, 0.0), Matrix(2, 0.0)
        weights = {**WEIGHTS, **self.arguments.risk_limit_weights}
        self._weights = np.array([[weights[resource]] for resource in self.resources])
        # The risk by load is expensive, and does not depend on the Pod to schedule.
        self._risks, self._fresh = Matrix(2), set[int]()

    def changed(self, index: int) -> None:
        super().changed(index)
        self._fresh.discard(index)

    def kind(self, pod: Pod) -> Kind | None:
        """Return None for a Pod without requests and limits, which scores 0."""
        cpu, memory = (pod.requests.get(resource, 0.0) for resource in self.resources)
        cpu_limit, memory_limit = (_limit(pod, resource) for resource in self.resources)
        if not (cpu or memory or cpu_limit or memory_limit):
            return None
        return cpu, memory, cpu_limit, memory_limit

    def scores_of(self, kind: Hashable, indices: Ints) -> Floats:
        if kind is None:
            return np.zeros(len(indices))
        worst: Floats = np.fmax.reduce(self._risk(kind, indices)[2])
        return ten(100.0 * (1.0 - worst))

    def details(self, kind: Hashable, indices: Ints) -> list[dict[str, Any]]:
        if kind is None:
            return [{"bestEffort": True} for _ in indices]
        by_limits, by_load, total = self._risk(kind, indices)
        columns: dict[str, Any] = {}
        for at, resource in enumerate(self.resources):
            columns[f"{resource}RiskOfLimits"] = shown(by_limits[at])
            columns[f"{resource}RiskOfLoad"] = shown(by_load[at])
            columns[f"{resource}Risk"] = shown(total[at])
        return rows_of(columns)

    def _risk(self, kind: Hashable, indices: Ints) -> tuple[Floats, Floats, Floats]:
        """Return (by limits, by load, weighted), each float64[2, n]; NaN where load is unknown."""
        size = len(self.cluster)
        capacity = self.allocatables.take(indices, size)
        pod_kind = np.array(kind).reshape(2, 2, 1)
        by_limits = trimaran.risk_of_limits(
            capacity,
            np.minimum(self._requests.take(indices, size) + pod_kind[0], capacity),
            self._limits.take(indices, size) + pod_kind[1],
        )
        stale = [index for index in indices.tolist() if index not in self._fresh]
        if stale:
            self._renew(np.array(stale, np.intp))
        by_load = self._risks.take(indices, size)
        return by_limits, by_load, self._weights * by_limits + (1.0 - self._weights) * by_load

    def _renew(self, indices: Ints) -> None:
        size, window = len(self.cluster), self.arguments.smoothing_window_size
        self._fresh.update(indices.tolist())
        if len(indices) <= FEW:  # usually the one node of a bound Pod
            for index in indices.tolist():
                for at in range(len(self.resources)):
                    self._risks[at, index] = self._risk_of_load(at, index)
            return
        capacity = self.allocatables.take(indices, size)
        requests = np.minimum(self._requests.take(indices, size), capacity) / capacity
        limits = self._limits.take(indices, size) / capacity
        risks = self._risks.values(size)
        for at, resource in enumerate(self.resources):
            mean, deviation = use(self, resource, indices)
            risks[at, indices] = trimaran.risk_of_load(
                mean, deviation, requests[at], limits[at], window
            )

    def _risk_of_load(self, at: int, index: int) -> float:
        capacity = self.allocatables[at, index]
        mean, deviation = use_at(self, at, index)
        requests = min(self._requests[at, index], capacity) / capacity
        limits = self._limits[at, index] / capacity
        window = self.arguments.smoothing_window_size
        return trimaran.risk_of_load_at(mean, deviation, requests, limits, window)

    def _pod(self, index: int, pod: Pod, added: bool) -> None:
        sign = 1.0 if added else -1.0
        for at, resource in enumerate(self.resources):
            self._requests[at, index] += sign * pod.requests.get(resource, 0.0)
            self._limits[at, index] += sign * _limit(pod, resource)
        self.changed(index)


def _limit(pod: Pod, resource: str) -> float:
    """Return the limit, at least the request, which also replaces an absent limit."""
    return max(pod.limits.get(resource, 0.0), pod.requests.get(resource, 0.0))
