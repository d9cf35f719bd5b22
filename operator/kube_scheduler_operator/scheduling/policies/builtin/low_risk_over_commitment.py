"""low-risk-over-commitment: prefers nodes with a low risk from limits above requests.

scheduler-plugins' LowRiskOverCommitment (pkg/trimaran). The score weighs the risk that limits
exceed the capacity, and the risk that Pods use more than they requested.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from ....base.quantities import CPU, MEMORY
from .. import beta
from ..arrays import Floats, Ints, Matrix, clip, np
from ..node_loads import OWN, SAFE, LoadColumns
from ..node_policy import NodePolicy, rows_of, shown, ten
from ..pods import Pod
from ..policy import argument
from .load_variation_risk_balancing import METRICS, use, use_at

Kind = tuple[float, float, float, float]
"""Requests and limits of a Pod: (CPU, memory, CPU limit, memory limit)."""

WEIGHTS: Final[Mapping[str, float]] = {CPU: 0.5, MEMORY: 0.5}

_WIDEST: Final = 0.99
"""A beta distribution needs deviation² < mean·(1 - mean); Trimaran's limit below that."""


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
        by_limits = risk_of_limits(
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
        if len(indices) <= beta.FEW:  # usually the one node of a bound Pod
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
            risks[at, indices] = risk_of_load(mean, deviation, requests[at], limits[at], window)

    def _risk_of_load(self, at: int, index: int) -> float:
        capacity = self.allocatables[at, index]
        mean, deviation = use_at(self, at, index)
        requests = min(self._requests[at, index], capacity) / capacity
        limits = self._limits[at, index] / capacity
        window = self.arguments.smoothing_window_size
        return risk_of_load_at(mean, deviation, requests, limits, window)

    def _pod(self, index: int, pod: Pod, added: bool) -> None:
        sign = 1.0 if added else -1.0
        for at, resource in enumerate(self.resources):
            self._requests[at, index] += sign * pod.requests.get(resource, 0.0)
            self._limits[at, index] += sign * _limit(pod, resource)
        self.changed(index)


def _limit(pod: Pod, resource: str) -> float:
    """Return the limit, at least the request, which also replaces an absent limit."""
    return max(pod.limits.get(resource, 0.0), pod.requests.get(resource, 0.0))


def risk_of_limits(capacity: Floats, requests: Floats, limits: Floats) -> Floats:
    """Return the share of limits above requests that exceeds the capacity: 0..1.

    The sums include the Pod to schedule; requests are at most the capacity, limits at least the
    requests.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        excess = (limits - capacity) / (limits - requests)
    return np.where(limits > capacity, excess, 0.0)


def risk_of_load(
    mean: Floats, deviation: Floats, requests: Floats, limits: Floats, window: float
) -> Floats:
    """Return the probability that Pods exceed their requests; inputs are fractions of capacity.

    An unknown mean is NaN, an unknown deviation 0; requests are at most 1. A mean is over `window`
    measurements, so the deviation of a single one is √window larger.
    """
    risks = np.full(len(mean), np.nan)
    known = ~np.isnan(mean)
    mu = clip(mean[known], 0.0, 1.0)
    widest = np.sqrt(_WIDEST * mu * (1.0 - mu))
    sigma = np.minimum(deviation[known] * math.sqrt(window), widest)
    below, above = clip(requests[known], 0.0, 1.0), limits[known]
    allocated = _probability(below, mu, sigma)
    capped = (above < 1.0) & (below <= above)
    whole = np.ones(len(mu))
    if capped.any():  # use never exceeds the limits, so the distribution is below them
        whole[capped] = _probability(above[capped], mu[capped], sigma[capped])
    with np.errstate(divide="ignore", invalid="ignore"):
        allocated = np.where(whole > 0.0, allocated / whole, 1.0)
    allocated[capped & (above <= 0.0)] = 1.0
    risks[known] = 1.0 - clip(allocated, 0.0, 1.0)
    return risks


def risk_of_load_at(
    mean: float, deviation: float, requests: float, limits: float, window: float
) -> float:
    """Return the same for one node."""
    if math.isnan(mean) or math.isnan(requests):
        return math.nan
    mu, below = min(max(mean, 0.0), 1.0), min(max(requests, 0.0), 1.0)
    sigma = min(deviation * math.sqrt(window), math.sqrt(_WIDEST * mu * (1.0 - mu)))
    allocated = _probability_at(below, mu, sigma)
    if limits < 1.0 and below <= limits:
        whole = _probability_at(limits, mu, sigma)
        allocated = allocated / whole if whole > 0.0 and limits > 0.0 else 1.0
    return 1.0 - min(max(allocated, 0.0), 1.0)


def _probability(x: Floats, mu: Floats, sigma: Floats) -> Floats:
    """Return P(U <= x)."""
    probabilities = np.where(mu <= x, 1.0, 0.0)
    alpha, other = beta.shape(mu, sigma)
    proper = (mu > 0.0) & (mu < 1.0) & (sigma > 0.0) & (alpha > 0.0) & (other > 0.0)
    if proper.any():
        probabilities[proper] = beta.distribution(x[proper], alpha[proper], other[proper])
    return probabilities


def _probability_at(x: float, mu: float, sigma: float) -> float:
    """Return the same for one node."""
    if 0.0 < mu < 1.0 and sigma > 0.0:
        alpha, other = beta.shape_at(mu, sigma)
        if alpha > 0.0 and other > 0.0:
            return beta.distribution_at(x, alpha, other)
    return float(mu <= x)
