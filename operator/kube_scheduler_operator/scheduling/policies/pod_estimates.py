"""Estimates of a Pod's load from its requests and limits.

As in koordinator's default estimator: the greater of request and limit times a factor, at most the
limit; a fixed amount for a Pod without either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...base.quantities import CPU, MEMORY
from .pods import Pod

SCALING: Final[Mapping[str, float]] = {CPU: 85.0, MEMORY: 70.0}
"""Percent: koordinator's estimatedScalingFactors."""

UNDECLARED: Final[Mapping[str, float]] = {CPU: 250.0, MEMORY: 200.0 * 2**20}
"""For a Pod without requests and limits: millicores, bytes; koordinator's constants
DefaultMilliCPURequest and DefaultMemoryRequest."""


class PodEstimator:
    """Estimates the load of Pods; `factors` in percent by resource, SCALING for absent ones."""

    def __init__(self, factors: Mapping[str, float]) -> None:
        self._factors = {name: factors.get(name, SCALING[name]) / 100.0 for name in SCALING}

    def of(self, pod: Pod) -> tuple[float, float]:
        """Return the Pod's estimated load: (millicores, bytes of memory)."""
        return self._amount(pod, CPU), self._amount(pod, MEMORY)

    def _amount(self, pod: Pod, resource: str) -> float:
        request, limit = pod.requests.get(resource, 0.0), pod.limits.get(resource, 0.0)
        if not (request or limit):
            return UNDECLARED[resource]
        estimate = float(round(max(request, limit) * self._factors[resource]))
        return min(estimate, limit) if limit else estimate
