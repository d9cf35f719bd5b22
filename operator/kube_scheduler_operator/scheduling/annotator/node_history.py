"""The history of a node's load: windows that its source lacks, and the forecast.

It is in memory only. After a restart, maxima, mean and standard deviation continue from the node's
annotation; a maximum then counts for up to its window longer.
"""

from __future__ import annotations

import math
from typing import Final

from ..load.policy import METRICS, Rules
from ..load.windows import RESOURCES, Holt, Usage, UsageWindows
from .measurement import AMOUNTS, KEYS, UNKNOWN, Load, Measurement, congestion

_HORIZON: Final = 600.0
"""How far ahead the forecast is, in seconds: pods that are placed now run by then."""

_DEFAULT_SECONDS: Final = 60.0
_LONGEST_SECONDS: Final = 300.0
"""A measurement represents the time since the previous one, at most this many seconds."""


def _windows() -> UsageWindows:
    # Coarser than on the node and in four-byte floats: there are thousands of them.
    return UsageWindows(hour_step=300.0, day_step=1800.0, moments_step=7200.0, typecode="f")


class LoadHistory:
    __slots__ = ("_forecasts", "_last_at", "_windows")

    def __init__(self) -> None:
        self._last_at = 0.0
        self._forecasts: dict[str, Holt] = {name: Holt() for name in RESOURCES}
        self._windows: dict[str, UsageWindows] = {}

    def resume(self, load: Load) -> None:
        """Continue from an annotation that was written before this process started."""
        self._last_at = load.at
        for name, capacity in zip(RESOURCES, load.capacities, strict=True):
            average = load[f"{name}_usage_avg_5m"]
            if math.isnan(average):
                continue
            self._forecasts[name].add(average)
            amount = AMOUNTS[name]
            mean, std = load[f"free_{amount}_mean"], load[f"free_{amount}_std"]
            known = capacity > 0 and not math.isnan(mean) and not math.isnan(std)
            windows = self._windows[name] = _windows()
            windows.resume(
                load.at,
                Usage(
                    active=average,
                    avg_5m=average,
                    max_avg_1h=_known(load[f"{name}_usage_max_avg_1h"], average),
                    max_avg_1d=_known(load[f"{name}_usage_max_avg_1d"], average),
                    mean=1 - mean / capacity if known else average,
                    std=std / capacity if known else 0.0,
                ),
            )

    def update(
        self,
        measured: Measurement,
        source: str,
        capacities: tuple[float, float],
        cycle: float,
        rules: Rules,
    ) -> Load:
        """Add a measurement from a source of that type; return the resulting load.

        Capacities are in millicores and bytes; `cycle` is the time in seconds between measurements.
        """
        if self._last_at - measured.at > _LONGEST_SECONDS:  # a clock was set back
            self._last_at = 0.0
            self._windows.clear()
        new = measured.at > self._last_at
        seconds = measured.at - self._last_at if self._last_at else _DEFAULT_SECONDS
        seconds = min(seconds, _LONGEST_SECONDS)
        steps = max(round(_HORIZON / cycle), 1)
        values: dict[str, float] = {}
        sizes = (measured.cpu or capacities[0], measured.memory or capacities[1])
        for name, capacity in zip(RESOURCES, sizes, strict=True):
            usage = self._usage(name, measured, seconds, new)
            for metric in METRICS:
                prefix, _, window = metric.partition("_usage_")
                if prefix == name:
                    own = getattr(usage, window) if usage else UNKNOWN
                    values[metric] = measured.usage.get(metric, own)
            forecast = self._forecast(name, values[f"{name}_usage_avg_5m"], new, steps)
            mean = measured.mean.get(name, usage.mean if usage else UNKNOWN)
            std = measured.std.get(name, usage.std if usage else UNKNOWN)
            if capacity > 0:
                amount = AMOUNTS[name]
                values[f"free_{amount}_mean"] = (1 - mean) * capacity
                values[f"free_{amount}_std"] = std * capacity
                values[f"free_{amount}_forecast"] = (1 - forecast) * capacity
        self._last_at = max(measured.at, self._last_at)
        values["congestion"] = congestion(values, rules)
        rounded = tuple(_rounded(key, values.get(key, UNKNOWN)) for key in KEYS)
        return Load(measured.at, source, rounded, sizes)

    def _usage(self, name: str, measured: Measurement, seconds: float, new: bool) -> Usage | None:
        """Compute usage from the windows kept here; None if the source provides all values."""
        metrics = (metric for metric in METRICS if metric.startswith(f"{name}_"))
        if name in measured.std and all(metric in measured.usage for metric in metrics):
            self._windows.pop(name, None)
            return None
        value = measured.active.get(name, measured.usage.get(f"{name}_usage_avg_5m"))
        windows = self._windows.get(name)
        if windows is None:
            windows = self._windows[name] = _windows()
        if value is not None and new:
            windows.add(measured.at, seconds, value)
        return windows.read(measured.at)

    def _forecast(self, name: str, value: float, new: bool, steps: int) -> float:
        # Forecast averages: single samples are too noisy to have a trend.
        forecast = self._forecasts[name]
        if new and not math.isnan(value):
            forecast.add(value)
        ahead = forecast.ahead(steps)
        return UNKNOWN if ahead is None else min(max(ahead, 0.0), 1.0)


def _known(value: float, otherwise: float) -> float:
    return otherwise if math.isnan(value) else value


def _rounded(key: str, value: float) -> float:
    if math.isnan(value):
        return value
    return round(value, 5) if "_usage_" in key else float(round(value))
