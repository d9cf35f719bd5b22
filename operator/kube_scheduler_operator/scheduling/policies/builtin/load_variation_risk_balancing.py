"""load-variation-risk-balancing: prefers nodes with a low and steady load.

scheduler-plugins' LoadVariationRiskBalancing, pkg/trimaran. The mean is over the last five minutes;
the standard deviation is over the annotator's longer window.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, cast

from ....base.quantities import CPU, MEMORY
from ..arrays import Floats, Ints, clip, np
from ..node_loads import OWN, SAFE, LoadColumns
from ..node_policy import NodePolicy, rows_of, shown, ten
from ..pods import Pod
from ..policy import argument

FIGURES: Final = {
    CPU: ("cpu_usage_avg_5m", "free_cpu_mean", "free_cpu_std"),
    MEMORY: ("mem_usage_avg_5m", "free_memory_mean", "free_memory_std"),
}
"""Resource to metrics: (usage, mean of unused, standard deviation of unused)."""

METRICS: Final = tuple(name for figures in FIGURES.values() for name in figures)


@dataclass(frozen=True, slots=True)
class LoadVariationRiskBalancingArguments:
    safe_variance_margin: float = argument(
        1.0, "weight of the standard deviation relative to the mean", least=0
    )
    safe_variance_sensitivity: float = argument(
        1.0, "higher values give small standard deviations more weight", least=0, above=True
    )
    annotations: str = argument(OWN, "annotations to read", choices=(OWN, SAFE))


class LoadVariationRiskBalancing(NodePolicy):
    """Scores by mean and standard deviation of the load of the worse resource."""

    name = "load-variation-risk-balancing"
    Arguments: ClassVar[type] = LoadVariationRiskBalancingArguments
    scores = True
    pods = False
    resources = (CPU, MEMORY)
    load_metrics = METRICS
    arguments: LoadVariationRiskBalancingArguments
    loads: LoadColumns

    def kind(self, pod: Pod) -> tuple[float, float]:
        return pod.requests.get(CPU, 0.0), pod.requests.get(MEMORY, 0.0)

    def scores_of(self, kind: Hashable, indices: Ints) -> Floats:
        lowest: Floats = np.fmin.reduce(
            [self._score(resource, kind, indices) for resource in self.resources]
        )
        return ten(lowest)

    def details(self, kind: Hashable, indices: Ints) -> list[dict[str, Any]]:
        columns: dict[str, Any] = {}
        for resource in self.resources:
            mean, deviation = use(self, resource, indices)
            columns[f"{resource}Mean"] = shown(mean)
            columns[f"{resource}Deviation"] = shown(deviation)
            columns[f"{resource}Score"] = shown(self._score(resource, kind, indices))
        return rows_of(columns)

    def _score(self, resource: str, kind: Hashable, indices: Ints) -> Floats:
        request = cast("tuple[float, float]", kind)[0 if resource == CPU else 1]
        allocatable = self.allocatable[resource].take(indices, len(self.cluster))
        mean, deviation = use(self, resource, indices)
        arguments = self.arguments
        return steadiness(
            mean + request / allocatable,
            deviation,
            arguments.safe_variance_margin,
            arguments.safe_variance_sensitivity,
        )


def steadiness(mean: Floats, deviation: Floats, margin: float, sensitivity: float) -> Floats:
    """Return 100·(1 - (mu + margin·sigma^(1/sensitivity))/2): 100 for an idle node.

    Mean and deviation of the use with the Pod are fractions of allocatable.
    """
    mu = clip(mean, 0.0, 1.0)
    sigma = clip(np.where(np.isnan(deviation), 0.0, deviation), 0.0, 1.0)
    spread = clip(margin * sigma ** (1.0 / sensitivity), 0.0, 1.0)
    return 100.0 * (1.0 - (mu + spread) / 2.0)


def use(policy: NodePolicy, resource: str, indices: Ints) -> tuple[Floats, Floats]:
    """Return (mean, standard deviation) of the use of a resource, as fractions of allocatable.

    An unknown standard deviation is 0, an unknown mean NaN.
    """
    assert policy.loads is not None  # noqa: S101 - both calling policies have loads
    size = len(policy.cluster)
    usage, free, deviation = (
        policy.loads.columns[name].take(indices, size) for name in FIGURES[resource]
    )
    allocatable = policy.allocatable[resource].take(indices, size)
    capacity = policy.capacity[resource].take(indices, size)
    amount = np.where(np.isnan(usage), np.maximum(capacity - free, 0.0), usage * capacity)
    return amount / allocatable, np.where(np.isnan(deviation), 0.0, deviation) / allocatable


def use_at(policy: NodePolicy, at: int, index: int) -> tuple[float, float]:
    """Return the same for one node; `at` is the position of the resource in the policy."""
    assert policy.loads is not None  # noqa: S101
    usage, free, deviation = (policy.loads.matrix[3 * at + figure, index] for figure in range(3))
    allocatable, capacity = policy.allocatables[at, index], policy.capacities[at, index]
    amount = _positive(capacity - free) if math.isnan(usage) else usage * capacity
    return amount / allocatable, (0.0 if math.isnan(deviation) else deviation) / allocatable


def _positive(value: float) -> float:
    return 0.0 if value < 0.0 else value  # NaN stays NaN, which max() does not guarantee
