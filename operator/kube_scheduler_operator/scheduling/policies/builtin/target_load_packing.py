"""target-load-packing: fills nodes up to a target CPU load, then avoids them.

scheduler-plugins' TargetLoadPacking, pkg/trimaran. Its documentation recommends a target of X - 10
for a ceiling of X percent.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, cast

from ....base.quantities import CPU
from ..arrays import Floats, Ints, np
from ..in_flight import InFlight
from ..node_loads import FORMATS, OWN, LoadColumns
from ..node_policy import NodePolicy, shown, ten
from ..pods import Pod
from ..policy import argument

USAGE: Final = "cpu_usage_avg_5m"
REPORTED_AFTER: Final = 60.0
"""Seconds before a measurement; it may not include Pods that were bound later. Trimaran's
metricsAgentReportingIntervalSeconds."""


@dataclass(frozen=True, slots=True)
class TargetLoadPackingArguments:
    target_utilization: float = argument(
        40.0, "target CPU load of a node, in percent", least=0, most=99, above=True
    )
    default_request: float = argument(
        1000.0, "expected load of a container without requests and limits, in millicores", least=0
    )
    default_requests_multiplier: float = argument(
        1.5, "expected load of a container without a limit, relative to its request", least=1
    )
    annotations: str = argument(OWN, "annotations to read", choices=FORMATS[:3])


class TargetLoadPacking(NodePolicy):
    name = "target-load-packing"
    Arguments: ClassVar[type] = TargetLoadPackingArguments
    scores = True
    resources = (CPU,)
    load_metrics = (USAGE,)
    arguments: TargetLoadPackingArguments
    loads: LoadColumns
    in_flight: InFlight

    def start(self) -> None:
        self.in_flight = InFlight(
            1,
            lambda pod: (self.kind(pod),),
            self.cluster.now,
            self.loads.measured,
            REPORTED_AFTER,
            fades=False,
        )

    def kind(self, pod: Pod) -> float:
        """Return the expected load of the Pod in millicores."""
        arguments, total = self.arguments, 0.0
        for requests, limits in pod.demand.containers:
            if limits.get(CPU):
                total += limits[CPU]
            elif requests.get(CPU):
                total += requests[CPU] * arguments.default_requests_multiplier
            else:
                total += arguments.default_request
        return total + pod.demand.overhead.get(CPU, 0.0)

    def scores_of(self, kind: Hashable, indices: Ints) -> Floats:
        return ten(packed(self._use(kind, indices), self.arguments.target_utilization))

    def details(self, kind: Hashable, indices: Ints) -> list[dict[str, Any]]:
        size = len(self.cluster)
        usage = shown(self.loads.columns[USAGE].take(indices, size))
        in_flight = shown(self.in_flight.columns[0].take(indices, size))
        return [
            {"usage": used, "inFlight": missing, "pod": kind, "percentWithPod": percent}
            for used, missing, percent in zip(
                usage, in_flight, shown(self._use(kind, indices)), strict=True
            )
        ]

    def _use(self, kind: Hashable, indices: Ints) -> Floats:
        """Return percent of capacity, including the Pod and Pods that are not measured yet."""
        size = len(self.cluster)
        usage = self.loads.columns[USAGE].take(indices, size)
        capacity = self.capacity[CPU].take(indices, size)
        in_flight = self.in_flight.columns[0].take(indices, size)
        return 100.0 * (usage + (in_flight + cast("float", kind)) / capacity)


def packed(usage: Floats, target: float) -> Floats:
    """Return scores that rise from `target` for an idle node to 100 at the target.

    Beyond, they fall from `target` to 0 at full use. Both are percentages of capacity.
    """
    rising = (100.0 - target) * usage / target + target
    falling = target * (100.0 - usage) / (100.0 - target)
    scores = np.where(usage <= target, rising, np.where(usage <= 100.0, falling, 0.0))
    scores[np.isnan(usage)] = np.nan
    return np.floor(scores + 0.5)
