"""Source MetricsServer: one list of `metrics.k8s.io`, as `kubectl top nodes` reads it.

It knows the load of the last quarter of a minute or so and nothing of the past: the annotator keeps
averages, maxima, mean and deviation itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ....base.quantities import amounts
from ....kube.errors import KubeError
from ....policies.pods import seconds
from ..measurement import Measurement, SourceError
from .bulk import BulkSource

if TYPE_CHECKING:
    from ....kube.client import ApiClient
    from ....load.policy import LoadPolicy
    from ..nodes import Node

PATH: Final = "/apis/metrics.k8s.io/v1beta1/nodes"


class MetricsServer(BulkSource[Mapping[str, Mapping[str, Any]]]):
    """Asks the API server, which asks metrics-server.

    Args:
        policy: with the cycle and the time-out.
        api: where it is.
        now: seconds since 1970.
    """

    def __init__(
        self, policy: LoadPolicy, api: ApiClient, now: Callable[[], float] = time.time
    ) -> None:
        super().__init__(policy.cycle, policy.source.timeout)
        self._api, self._now = api, now

    async def ask(self) -> Mapping[str, Mapping[str, Any]]:
        """Node name -> its NodeMetrics."""
        try:
            answer = await self._api.get_path(PATH)
        except KubeError as error:
            raise SourceError(f"metrics-server: {error}; is it installed?") from error
        return {item["metadata"]["name"]: item for item in answer.get("items") or ()}

    def find(self, answer: Mapping[str, Mapping[str, Any]], node: Node) -> Measurement:
        """The measurement of a node."""
        item = answer.get(node.name)
        if item is None:
            raise SourceError("metrics-server does not know the node (yet)")
        usage = amounts(item.get("usage"))
        at = min(seconds(item.get("timestamp")) or self._now(), self._now())
        return instant(at, node.capacities, usage.get("cpu"), usage.get("memory"))


def instant(
    at: float, capacities: tuple[float, float], cpu: float | None, memory: float | None
) -> Measurement:
    """A measurement of amounts: thousandths of a core and bytes. Raises SourceError."""
    pairs = (("cpu", cpu, capacities[0]), ("mem", memory, capacities[1]))
    active = {
        name: min(max(used / capacity, 0.0), 1.0)
        for name, used, capacity in pairs
        if used is not None and capacity > 0
    }
    if not active:
        raise SourceError("there is neither CPU nor memory in the answer, or the node has none")
    return Measurement(at, {}, active)
