"""Source MetricsServer: one list of `metrics.k8s.io`, as in `kubectl top nodes`.

It provides the load of about the last 15 s and no history: the annotator computes averages, maxima,
mean and standard deviation itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ....base.limits import METRICS
from ....base.quantities import amounts
from ....kube.client import ApiClient
from ....kube.errors import KubeError
from ...load.policy import LoadPolicy
from ..measurement import Measurement, MeasurementError
from ..nodes import AnnotatedNode
from .bulk import BulkSource

PATH: Final = "/apis/metrics.k8s.io/v1beta1/nodes"


class MetricsServer(BulkSource[Mapping[str, Mapping[str, Any]]]):
    """Requests metrics from metrics-server through the API server."""

    def __init__(self, policy: LoadPolicy, api: ApiClient, now: Callable[[], float]) -> None:
        super().__init__(policy.cycle, policy.source.timeout)
        self._api, self._now = api, now

    async def fetch(self) -> Mapping[str, Mapping[str, Any]]:
        """Return NodeMetrics by node name."""
        try:
            response = await self._api.get_path(PATH, aggregated=True, limit=METRICS)
        except KubeError as error:
            raise MeasurementError(f"metrics-server: {error}; is it installed?") from error
        return {item["metadata"]["name"]: item for item in response.get("items") or ()}

    def find(self, response: Mapping[str, Mapping[str, Any]], node: AnnotatedNode) -> Measurement:
        item = response.get(node.name)
        if item is None:
            raise MeasurementError("metrics-server has no metrics of the node (yet)")
        usage = amounts(item.get("usage"))
        at = node.seen(item.get("timestamp"), self._now())
        return instant(at, node.capacities, usage.get("cpu"), usage.get("memory"))


def instant(
    at: float, capacities: tuple[float, float], cpu: float | None, memory: float | None
) -> Measurement:
    """Return a measurement from amounts in millicores and bytes. Raises MeasurementError."""
    pairs = (("cpu", cpu, capacities[0]), ("mem", memory, capacities[1]))
    active = {
        name: min(max(used / capacity, 0.0), 1.0)
        for name, used, capacity in pairs
        if used is not None and capacity > 0
    }
    if not active:
        raise MeasurementError("neither usage nor capacity of CPU and memory is known")
    return Measurement(at, {}, active)
