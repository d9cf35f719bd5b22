"""What safe-overload and safe-balance have in common: the agent safe of kube-safe-scheduler.

The use of a node's CPU and memory is a random variable with a beta distribution, of which mean and
deviation are known from measurements. Formulas: formulas/safe.py.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from ...base.quantities import CPU, MEMORY
from ..arrays import np
from ..formulas import safe as formulas
from ..node_loads import OWN, SAFE, Loads
from ..node_policy import NodePolicy, shown
from ..policy import argument

if TYPE_CHECKING:
    from ..arrays import Floats, Ints
    from ..pods import Pod

PREFIXES: Final = {CPU: "free_cpu", MEMORY: "free_memory"}
_REMEMBERED: Final = 8
Kind = tuple[float, float]
"""What a pod requests: thousandths of a core, bytes."""


@dataclass(frozen=True, slots=True)
class SafeArguments:
    """The arguments of safe-overload and safe-balance."""

    utilization: int = argument(
        90, "percent of a node that should not be used up", least=0, most=100
    )
    percentile: int = argument(
        30, "tolerated risk, in percent, that use goes above `utilization`", least=0, most=100
    )
    forecast_weight: int = argument(
        20, "how much a forecast of what is free counts against its mean, in percent",
        least=0, most=100,
    )  # fmt: skip
    print_table: bool = argument(
        default=False, text="`explain` and TRACE logs have the distribution in 21 rows as well"
    )
    annotations: str = argument(OWN, "whose annotations on nodes to read", choices=(OWN, SAFE))
    compatibility: bool = argument(
        default=False,
        text="as the original: a node without figures scores 0, and one whose deviation is too "
        "large for its mean counts as certainly overloaded",
    )


class Safe(NodePolicy):
    """What both look at."""

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
    arguments: SafeArguments
    loads: Loads

    def start(self) -> None:
        """See NodePolicy."""
        self._seen = (0, 0)
        self._risks: dict[tuple[Hashable, ...], Floats] = {}
        names = [
            f"{prefix}_{figure}"
            for prefix in PREFIXES.values()
            for figure in ("mean", "std", "forecast")
        ]
        self.loads = Loads(
            self.cluster, names, self.changed, annotations=self.arguments.annotations
        )

    def kind(self, pod: Pod) -> Kind:
        """See NodePolicy."""
        return pod.requests.get(CPU, 0.0), pod.requests.get(MEMORY, 0.0)

    def utilisation(self, resource: str, kind: Hashable, indices: Ints) -> tuple[Floats, Floats]:
        """(mu, sigma) of each node with the pod; NaN where nothing is known."""
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
        """The probability that use goes above the threshold; NaN where nothing is known."""
        # Filter, reasons and score of a pod ask for the same one after the other.
        seen = (self._changes.epoch, len(self._changes.log))
        if self._seen != seen or len(self._risks) >= _REMEMBERED:
            self._seen = seen
            self._risks.clear()
        asked = (resource, kind, indices.tobytes())
        found = self._risks.get(asked)
        if found is None:
            mu, sigma = self.utilisation(resource, kind, indices)
            given = self.arguments
            found = self._risks[asked] = formulas.risk(
                mu, sigma, given.utilization / 100.0, original=given.compatibility
            )
        return found

    def worst(self, *scores: Floats) -> Floats:
        """The lower one of those that are known."""
        found: Floats = np.fmin.reduce(scores)
        return np.nan_to_num(found) if self.arguments.compatibility else found

    def details(self, kind: Hashable, indices: Ints) -> list[dict[str, Any]]:
        """See NodePolicy."""
        columns: dict[str, Any] = {}
        for resource in self.resources:
            mu, sigma = self.utilisation(resource, kind, indices)
            columns[f"{resource}Mean"], columns[f"{resource}Deviation"] = shown(mu), shown(sigma)
            columns[f"{resource}Risk"] = shown(self.risk(resource, kind, indices))
            if self.arguments.print_table:
                columns[f"{resource}Table"] = formulas.table(mu, sigma)
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
