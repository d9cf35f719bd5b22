"""The common base of safe-overload and safe-balance: the agent safe of kube-safe-scheduler.

The use of CPU and of memory is modelled as a random variable with a beta distribution of measured
mean and standard deviation.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, cast

from ....base.quantities import CPU, MEMORY
from .. import beta
from ..arrays import Floats, Ints, clip, np
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
        free = _expected_free(mean, forecast, self.arguments.forecast_weight / 100.0)
        capacity = self.allocatable[resource].take(indices, size)
        demand = cast("Kind", kind)[0 if resource == CPU else 1]
        return _utilisation(capacity, free, std, demand)

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
            risks = self._risks[key] = risk_above(
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
                columns[f"{resource}Table"] = _distribution(mu, sigma)
        return rows_of(columns)


def _expected_free(free: Floats, forecast: Floats, weight: float) -> Floats:
    """Return the mean unused amount, and the forecast with `weight` where it exists."""
    return np.where(np.isnan(forecast), free, (1.0 - weight) * free + weight * forecast)


def _utilisation(
    capacity: Floats, free: Floats, deviation: Floats, demand: float
) -> tuple[Floats, Floats]:
    """Return (mu, sigma) with the Pod: mean and standard deviation as fractions of capacity, 0..1.

    `deviation` is that of the unused amount `free`; NaN means 0.
    """
    used = np.maximum(capacity - free, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mu = clip((used + demand) / capacity, 0.0, 1.0)
        sigma = clip(np.where(np.isnan(deviation), 0.0, deviation) / capacity, 0.0, 1.0)
    return mu, sigma


def risk_above(mu: Floats, sigma: Floats, threshold: float, *, original: bool = False) -> Floats:
    """Return the probability that utilisation exceeds `threshold`.

    No beta distribution has sigma² >= mu·(1 - mu). The original then returns 1, which rejects idle
    nodes with a short peak; the limit of ever wider beta distributions is mu.
    """
    risks = np.where(mu <= threshold, 0.0, 1.0)  # sigma = 0: certain
    risks[mu <= 0.0] = 0.0
    alpha, other = beta.shape(mu, sigma)
    uncertain = (sigma > 0.0) & (mu > 0.0)
    wide = uncertain & ~((alpha > 0.0) & (other > 0.0))
    risks[wide] = 1.0 if original else mu[wide]
    proper = uncertain & ~wide
    if proper.any():
        x = np.full(int(np.count_nonzero(proper)), threshold)
        risks[proper] = 1.0 - beta.distribution(x, alpha[proper], other[proper])
    risks[np.isnan(mu)] = np.nan
    return risks


def _distribution(mu: Floats, sigma: Floats) -> list[list[float]]:
    """Return for each node P(U <= u) for u = 0, 0.05, …, 1."""
    steps = [1.0 - risk_above(mu, sigma, step / 20.0) for step in range(21)]
    return [[round(float(step[node]), 6) for step in steps] for node in range(len(mu))]
