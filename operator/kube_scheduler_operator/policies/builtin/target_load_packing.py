"""target-load-packing: fills nodes up to a target use of CPU, then keeps away from them.

scheduler-plugins' TargetLoadPacking; formula: formulas/trimaran.py. To keep nodes below X percent,
its documentation advises a target of X - 10.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from ...base.quantities import CPU
from ..formulas import trimaran
from ..in_flight import InFlight
from ..node_loads import FORMATS, OWN, Loads
from ..node_policy import NodePolicy, shown, ten
from ..policy import argument

if TYPE_CHECKING:
    from ..arrays import Floats, Ints
    from ..cluster import Cluster
    from ..pods import Pod

USAGE: Final = "cpu_usage_avg_5m"
REPORTED_AFTER: Final = 60.0
"""A pod that was bound so many seconds before a measurement may not be in it: Trimaran's
metricsAgentReportingIntervalSeconds."""


@dataclass(frozen=True, slots=True)
class TargetLoadPackingArguments:
    """The arguments of target-load-packing."""

    target_utilization: float = argument(
        40.0, "percent of CPU that a node should be used", least=0, most=99, above=True
    )
    default_request: float = argument(
        1000.0, "thousandths of a core that a container without requests will use", least=0
    )
    default_requests_multiplier: float = argument(
        1.5, "a container without a limit will use so many times its request", least=1
    )
    annotations: str = argument(OWN, "whose annotations on nodes to read", choices=FORMATS[:3])


class TargetLoadPacking(NodePolicy):
    """Scores by CPU use with the pod and those that have just arrived."""

    name = "target-load-packing"
    Arguments: ClassVar[type] = TargetLoadPackingArguments
    scores = True
    resources = (CPU,)
    arguments: TargetLoadPackingArguments
    loads: Loads

    def __init__(self, arguments: TargetLoadPackingArguments, cluster: Cluster) -> None:
        super().__init__(arguments, cluster)
        self.listen(on_pod=self._pod)

    def start(self) -> None:
        """See NodePolicy."""
        self.loads = Loads(
            self.cluster, [USAGE], self.changed, annotations=self.arguments.annotations
        )
        self._in_flight = InFlight(
            1,
            lambda pod: (self.kind(pod),),
            self.cluster.now,
            self.loads.measured,
            REPORTED_AFTER,
            fades=False,
        )

    def kind(self, pod: Pod) -> float:
        """Thousandths of a core that the pod will use."""
        given, total = self.arguments, 0.0
        for requests, limits in pod.demand.containers:
            if limits.get(CPU):
                total += limits[CPU]
            elif requests.get(CPU):
                total += requests[CPU] * given.default_requests_multiplier
            else:
                total += given.default_request
        return total + pod.demand.overhead.get(CPU, 0.0)

    def scores_of(self, kind: Hashable, indices: Ints) -> Floats:
        """See NodePolicy."""
        return ten(
            trimaran.target_load_packing(
                self._use(kind, indices), self.arguments.target_utilization
            )
        )

    def details(self, kind: Hashable, indices: Ints) -> list[dict[str, Any]]:
        """See NodePolicy."""
        size = len(self.cluster)
        usage = shown(self.loads.columns[USAGE].take(indices, size))
        flying = shown(self._in_flight.columns[0].take(indices, size))
        return [
            {"usage": used, "inFlight": missing, "pod": kind, "percentWithPod": percent}
            for used, missing, percent in zip(
                usage, flying, shown(self._use(kind, indices)), strict=True
            )
        ]

    def on_load(self, index: int) -> None:
        """See NodePolicy."""
        self._in_flight.renew(index)

    def _use(self, kind: Hashable, indices: Ints) -> Floats:
        """Percent of capacity with the pod and those that are not measured yet."""
        size = len(self.cluster)
        usage = self.loads.columns[USAGE].take(indices, size)
        capacity = self.capacity[CPU].take(indices, size)
        flying = self._in_flight.columns[0].take(indices, size)
        return 100.0 * (usage + (flying + cast("float", kind)) / capacity)

    def _pod(self, index: int, pod: Pod, added: bool) -> None:
        if self._in_flight.pod(index, pod, added):
            self.changed(index)
