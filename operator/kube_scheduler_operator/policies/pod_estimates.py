"""What a pod will use, estimated from what it asks for.

As koordinator's default estimator: the greater one of request and limit times a factor, not more
than the limit; a pod that asks for nothing uses a little nevertheless.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ..base.quantities import CPU, MEMORY

if TYPE_CHECKING:
    from .pods import Pod

SCALING: Final[Mapping[str, float]] = {CPU: 85.0, MEMORY: 70.0}
"""Percent: koordinator's estimatedScalingFactors."""

UNDECLARED: Final[Mapping[str, float]] = {CPU: 250.0, MEMORY: 200.0 * 2**20}
"""Of a pod that asks for nothing: thousandths of a core, bytes; koordinator's constants
DefaultMilliCPURequest and DefaultMemoryRequest."""


class Estimates:
    """Estimates by resource.

    Args:
        factors: resource to percent; what is absent is as in SCALING.
    """

    def __init__(self, factors: Mapping[str, float]) -> None:
        self._factors = {name: factors.get(name, SCALING[name]) / 100.0 for name in SCALING}

    def of(self, pod: Pod) -> tuple[float, float]:
        """(thousandths of a core, bytes of memory) that the pod will use."""
        return self._one(pod, CPU), self._one(pod, MEMORY)

    def _one(self, pod: Pod, resource: str) -> float:
        request, limit = pod.requests.get(resource, 0.0), pod.limits.get(resource, 0.0)
        if not (request or limit):
            return UNDECLARED[resource]
        estimate = float(round(max(request, limit) * self._factors[resource]))
        return min(estimate, limit) if limit else estimate
