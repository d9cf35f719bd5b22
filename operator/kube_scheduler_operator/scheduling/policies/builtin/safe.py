"""The common base of safe-overload and safe-balance: the agent safe of kube-safe-scheduler.

The use of CPU and of memory is modelled as a random variable with a beta distribution of measured
mean and standard deviation. Formulas: formulas/safe.py.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, cast

from ....base.quantities import CPU, MEMORY
from ..arrays import Floats, Ints, np
from ..formulas import safe as formulas
from ..node_loads import OWN, SAFE, LoadColumns
from ..node_policy import NodePolicy, rows_of, shown
from ..pods import Pod
from ..policy import argument

PREFIXES: Final = {CPU: "free_cpu", MEMORY: "free_memory"}
_REMEMBERED: Final = 8
Kind = tuple[float, float]
"""Requests of a Pod: millicores, bytes."""


@dataclass(frozen=True, slots=True)
class SafeArguments:
    """The arguments of safe-overload and safe-balance."""

    utilization: int = argument(90, "limit of a node's use, in percent", least=0, most=100)
    percentile: int = argument(
        30, "tolerated risk, in percent, that use exceeds `utilization`", least=0, most=100
    )
    forecast_weight: int = argument(
        20, "weight of the forecast relative to the mean of unused resources, in percent",
        least=0, most=100,
    )  # fmt: skip
    print_table: bool = argument(
        default=False, text="include the distribution, in 21 rows, in `explain` and TRACE logs"
    )
    annotations: str = argument(OWN, "annotations to read", choices=(OWN, SAFE))
    compatibility: bool = argument(
        default=False,
        text="as in the original: a node without data scores 0, and one whose standard deviation "
        "is too large for its mean counts as overloaded",
    )


class SafePolicy(NodePolicy):
    Arguments: ClassVar[type] = SafeArguments
    env: ClassVar = {
        "SAFEUTILIZATION": "utilization",
        "SAFEPERCENTILE": "percentile",
        "SAFEFORECASTWEIGHT": "forecast_weight",
        "SAFEPRINTTABLE": "print_table",
    }
    scores = True
    pods = False
    resources = (CPU, MEMORY)
    load_metrics = tuple(
        f"{prefix}_{figure}"
        for prefix in PREFIXES.values()
        for figure in ("mean", "std", "forecast")
    )
    arguments: SafeArguments
    loads: LoadColumns

    def start(self) -> None:
        self._seen = (0, 0)
        self._risks: dict[tuple[Hashable, ...], Floats] = {}

    def kind(self, pod: Pod) -> Kind:
        return pod.requests.get(CPU, 0.0), pod.requests.get(MEMORY, 0.0)

    def utilisation(self, resource: str, kind: Hashable, indices: Ints) -> tuple[Floats, Floats]:
        """Return (mu, sigma) of each node with the Pod; NaN where unknown."""
        size, prefix = len(self.cluster), PREFIXES[resource]
        columns = self.loads.columns
        mean, std, forecast = (
            columns[f"{prefix}_{figure}"].take(indices, size)
            for figure in ("mean", "std", "forecast")
        )
        free = formulas.expected_free(mean, forecast, self.arguments.forecast_weight / 100.0)
        capacity = self.allocatable[resource].take(indices, size)
        demand = cast("Kind", kind)[0 if resource == CPU else 1]
        return formulas.utilisation(capacity, free, std, demand)

    def risk(self, resource: str, kind: Hashable, indices: Ints) -> Floats:
        """Return the probability that use exceeds `utilization`; NaN where unknown."""
        # Filter, reasons and score of a Pod need the same values.
        seen = (self._changes.epoch, len(self._changes.log))
        if self._seen != seen or len(self._risks) >= _REMEMBERED:
            self._seen = seen
            self._risks.clear()
        key = (resource, kind, indices.tobytes())
        risks = self._risks.get(key)
        if risks is None:
            mu, sigma = self.utilisation(resource, kind, indices)
            arguments = self.arguments
            risks = self._risks[key] = formulas.risk(
                mu, sigma, arguments.utilization / 100.0, original=arguments.compatibility
            )
        return risks

    def worst(self, *scores: Floats) -> Floats:
        lowest: Floats = np.fmin.reduce(scores)
        return np.nan_to_num(lowest) if self.arguments.compatibility else lowest

    def details(self, kind: Hashable, indices: Ints) -> list[dict[str, Any]]:
        columns: dict[str, Any] = {}
        for resource in self.resources:
            mu, sigma = self.utilisation(resource, kind, indices)
            columns[f"{resource}Mean"], columns[f"{resource}Deviation"] = shown(mu), shown(sigma)
            columns[f"{resource}Risk"] = shown(self.risk(resource, kind, indices))
            if self.arguments.print_table:
                columns[f"{resource}Table"] = formulas.table(mu, sigma)
        return rows_of(columns)
