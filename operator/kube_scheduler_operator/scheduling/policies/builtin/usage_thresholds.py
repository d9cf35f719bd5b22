"""usage-thresholds: rejects nodes above a threshold, and prefers nodes with more free resources.

koordinator's LoadAwareScheduling, pkg/scheduler/plugins/loadaware; estimates: pod_estimates.py.
The annotation `scheduling.koordinator.sh/usage-thresholds` of a node overrides the arguments.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from ....base.json_text import parse_json
from ....base.limits import ANNOTATION
from ....base.quantities import CPU, MEMORY
from ..arrays import Bools, Floats, Ints, Matrix, np
from ..cluster import Node
from ..in_flight import InFlight
from ..node_loads import FORMATS, OWN, LoadColumns
from ..node_policy import NodePolicy, rows_of, shown, ten
from ..pod_estimates import SCALING, PodEstimator
from ..pods import Pod
from ..policy import argument

THRESHOLDS_ANNOTATION: Final = "scheduling.koordinator.sh/usage-thresholds"
USAGES: Final = {CPU: "cpu_usage_avg_5m", MEMORY: "mem_usage_avg_5m"}
RESOURCES: Final = (CPU, MEMORY)
THRESHOLDS: Final[Mapping[str, float]] = {CPU: 65.0, MEMORY: 95.0}
WEIGHTS: Final[Mapping[str, float]] = {CPU: 1.0, MEMORY: 1.0}


@dataclass(frozen=True, slots=True)
class UsageThresholdsArguments:
    usage_thresholds: Mapping[str, float] = argument(
        THRESHOLDS,
        "threshold for each resource, in percent of allocatable, above which a node is rejected; "
        "0: no threshold",
        least=0,
        most=100,
        choices=RESOURCES,
    )
    resource_weights: Mapping[str, float] = argument(
        WEIGHTS, "weight of each resource in the score", least=0, choices=RESOURCES
    )
    dominant_resource_weight: float = argument(
        0.0, "additional weight of the scarcest resource", least=0
    )
    estimated_scaling_factors: Mapping[str, float] = argument(
        SCALING,
        "expected load of a Pod in percent of its requests or limits",
        least=0,
        most=100,
        choices=RESOURCES,
    )
    report_seconds: float = argument(
        60.0, "seconds before a measurement; it may not include Pods that were bound later", least=0
    )
    expiration_seconds: float = argument(
        480.0, "seconds during which a measurement is valid", least=0, above=True
    )
    annotations: str = argument(OWN, "annotations to read", choices=FORMATS[:3])


class UsageThresholds(NodePolicy):
    """Evaluates the measured load plus estimates for recently bound Pods and the Pod itself."""

    name = "usage-thresholds"
    Arguments: ClassVar[type] = UsageThresholdsArguments
    filters = True
    scores = True
    resources = RESOURCES
    arguments: UsageThresholdsArguments
    loads: LoadColumns
    in_flight: InFlight

    def start(self) -> None:
        arguments = self.arguments
        names = list(USAGES.values())
        self.loads = LoadColumns(
            self.cluster,
            names,
            self.changed,
            annotations=arguments.annotations,
            valid=dict.fromkeys(names, arguments.expiration_seconds),
        )
        self._estimates = PodEstimator(arguments.estimated_scaling_factors)
        self.in_flight = InFlight(
            2,
            self._estimates.of,
            self.cluster.now,
            self.loads.measured,
            arguments.report_seconds,
            fades=False,
        )
        self._default = {**THRESHOLDS, **arguments.usage_thresholds}
        self._thresholds = Matrix(2)  # NaN, which no value exceeds, until a node is known
        weights = {**WEIGHTS, **arguments.resource_weights}
        self._weights = [weights[resource] for resource in RESOURCES]

    def kind(self, pod: Pod) -> tuple[float, float]:
        return self._estimates.of(pod)

    def filter_kind(self, pod: Pod) -> Hashable:
        """Accept Pods of DaemonSets: each fits only one node."""
        return None if pod.owner_kind == "DaemonSet" else self.kind(pod)

    def rejects(self, kind: Hashable, indices: Ints) -> Bools:
        thresholds = self._thresholds.take(indices, len(self.cluster))
        above = (self._percent(kind, indices) > thresholds) & (thresholds > 0.0)
        rejected: Bools = above[0] | above[1]
        return rejected

    def reasons(self, kind: Hashable, indices: Ints) -> list[tuple[str, str]]:
        return [
            (
                "the load with this pod would be too high: "
                + ", ".join(f"more than {at:g} percent of {name}" for name, at, _ in beyond),
                ", ".join(f"{name}: {used:.0f} percent" for name, _, used in beyond),
            )
            for beyond in self._beyond(kind, indices)
        ]

    def scores_of(self, kind: Hashable, indices: Ints) -> Floats:
        scores = least_used(
            self._used(kind, indices), self.allocatables.take(indices, len(self.cluster))
        )
        return ten(weighted_score(scores, self._weights, self.arguments.dominant_resource_weight))

    def details(self, kind: Hashable, indices: Ints) -> list[dict[str, Any]]:
        size = len(self.cluster)
        columns: dict[str, Any] = {}
        for at, resource in enumerate(RESOURCES):
            columns[f"{resource}Usage"] = shown(self.loads.matrix.take(indices, size)[at])
            columns[f"{resource}InFlight"] = shown(self.in_flight.matrix.take(indices, size)[at])
            columns[f"{resource}PercentWithPod"] = shown(self._percent(kind, indices)[at])
            columns[f"{resource}Threshold"] = shown(self._thresholds.take(indices, size)[at])
        return rows_of(columns)

    def on_node(self, index: int, node: Node | None) -> bool:
        own = _thresholds(node.annotations.get(THRESHOLDS_ANNOTATION)) if node else {}
        changed = False
        for at, resource in enumerate(RESOURCES):
            threshold = own.get(resource, self._default[resource])
            changed |= threshold != self._thresholds[at, index]
            self._thresholds[at, index] = threshold
        return changed

    def _used(self, kind: Hashable, indices: Ints) -> Floats:
        """Return the expected use of each resource (float64[2, n]); NaN where unknown."""
        size = len(self.cluster)
        used = self.loads.matrix.take(indices, size) * self.capacities.take(indices, size)
        used += self.in_flight.matrix.take(indices, size)
        used += np.array(kind)[:, None]
        return used

    def _percent(self, kind: Hashable, indices: Ints) -> Floats:
        allocatable = self.allocatables.take(indices, len(self.cluster))
        return percent(self._used(kind, indices), allocatable)

    def _beyond(self, kind: Hashable, indices: Ints) -> list[list[tuple[str, float, float]]]:
        """Return for each node the resources above their threshold: name, threshold, percent."""
        thresholds = self._thresholds.take(indices, len(self.cluster)).T.tolist()
        percents = self._percent(kind, indices).T.tolist()
        return [
            [
                resource
                for resource in zip(("CPU", "memory"), *of_node, strict=True)
                if 0.0 < resource[1] < resource[2]
            ]
            for of_node in zip(thresholds, percents, strict=True)
        ]


def _thresholds(text: str | None) -> dict[str, float]:
    """Read the thresholds in a node's annotation; invalid ones are ignored."""
    try:
        document = parse_json(text or "{}", ANNOTATION)
    except ValueError:
        return {}
    entries = document.get("usageThresholds") if isinstance(document, dict) else None
    return {
        name: float(value)
        for name, value in (entries if isinstance(entries, dict) else {}).items()
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 100
    }


def percent(used: Floats, capacity: Floats) -> Floats:
    """Use in percent of capacity, rounded to integers as in Go."""
    return np.floor(100.0 * used / capacity + 0.5)


def least_used(used: Floats, capacity: Floats) -> Floats:
    """Return (capacity - used)·100/capacity as integers; 0 where use exceeds the capacity."""
    free = np.floor((capacity - used) * 100.0 / capacity)
    return np.where(used > capacity, 0.0, free)


def weighted_score(scores: Floats, weights: Sequence[float], dominant: float) -> Floats:
    """Return the mean of the resources' scores by `weights`, with `dominant` for the lowest one.

    Scores are 0..100, NaN where unknown (float64[resources, n]).
    """
    known = ~np.isnan(scores)
    by = np.array(weights)
    total, weighed = by @ np.where(known, scores, 0.0), by @ known
    if dominant:
        lowest: Floats = np.fmin.reduce(scores)
        total = total + dominant * np.nan_to_num(lowest)
        weighed = weighed + dominant * ~np.isnan(lowest)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean: Floats = np.floor(total / weighed)
    return mean
