"""Records samples in windows, and formats them for `/statistics` and `/metrics`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from ... import __version__
from ..load.windows import RESOURCES, Usage, UsageWindows
from .saved_windows import StateError
from .usage_source import Reading, ReadingError, UsageSource

log = logging.getLogger(__name__)

INTERVAL: Final = 15.0
"""Seconds between samples."""

STALE_INTERVALS: Final = 4
"""Number of intervals without a new sample after which values are no longer served."""

_HELP: Final = {
    "active": "in the last interval",
    "avg_5m": "averaged over the last five minutes",
    "max_avg_1h": "(maximum five-minute average of the last hour)",
    "max_avg_1d": "(maximum five-minute average of the last day)",
}


class UsageRecorder:
    """Records readings in windows; times are in seconds, `max_of_samples` as in UsageWindows."""

    def __init__(
        self,
        source: UsageSource,
        clock: Callable[[], float],
        *,
        interval: float = INTERVAL,
        moments_window: float = 86400.0,
        max_of_samples: bool = False,
    ) -> None:
        self._source, self._clock, self._interval = source, clock, interval
        self._window, self._max_of_samples = moments_window, max_of_samples
        self._last: Reading | None = None
        self._sampled: float | None = None
        self._trouble = ""
        self.failures = 0
        self._forget()

    def _forget(self) -> None:
        self._windows = {
            name: UsageWindows(
                max_of_samples=self._max_of_samples,
                moments_span=self._window,
                moments_step=max(self._window / 288, 1.0),
            )
            for name in RESOURCES
        }

    @property
    def fresh(self) -> bool:
        """Whether the last sample is recent."""
        limit = STALE_INTERVALS * self._interval
        return self._sampled is not None and self._clock() - self._sampled <= limit

    @property
    def trouble(self) -> str:
        """Why the last reading failed; "" if it succeeded."""
        return self._trouble

    def sample(self) -> None:
        """Read and record once; counts every failure and logs it once."""
        try:
            reading = self._source.read(self._clock())
        except ReadingError as error:
            self.failures += 1
            if str(error) != self._trouble:
                log.warning("Sampling failed: %s", error)
            self._trouble = str(error)
            return
        if self._trouble:
            log.info("Sampling works again after: %s", self._trouble)
        self._trouble = ""
        last, self._last = self._last, reading
        cpu = None if last is None else reading.cpu_since(last)
        if last is None or cpu is None:
            return
        seconds = reading.at - last.at
        # Usage during a gap, such as a suspend, does not belong to the last five minutes.
        if not 0 < seconds <= STALE_INTERVALS * self._interval:
            return
        self._sampled = reading.at
        self._windows["cpu"].add(reading.at, seconds, cpu)
        self._windows["mem"].add(reading.at, seconds, reading.memory_usage)

    def statistics(self) -> dict[str, float] | None:
        """Return percentages, and amounts in millicores and bytes; None without a recent sample."""
        if not self.fresh or self._last is None:
            return None
        now = self._clock()
        values: dict[str, float] = {}
        capacities = {"cpu": self._last.cpus * 1000, "mem": self._last.memory}
        for name, windows in self._windows.items():
            usage = windows.read(now)
            if usage is None:
                return None
            values.update(_percent(name, usage))
            amount = "memory" if name == "mem" else name
            values[f"free_{amount}_mean"] = round((1 - usage.mean) * capacities[name], 3)
            values[f"free_{amount}_std"] = round(usage.std * capacities[name], 3)
            values[f"capacity_{amount}"] = capacities[name]
        # The age does not depend on wall clocks, which may be adjusted or differ between nodes.
        values["age"] = round(now - (self._sampled or now), 3)
        values["timestamp"] = round(time.time() - values["age"], 3)
        return values

    def dump(self) -> dict[str, Any]:
        return {name: windows.dump() for name, windows in self._windows.items()}

    def load(self, content: Mapping[str, Any], shift: float) -> None:
        """Load the content of a state file. Raises StateError if invalid; then starts empty."""
        try:
            for name, windows in self._windows.items():
                windows.load(content[name], shift)
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            self._forget()
            raise StateError(f"invalid windows ({error})") from error


def _percent(name: str, usage: Usage) -> dict[str, float]:
    return {f"{name}_usage_{window}": round(getattr(usage, window) * 100, 4) for window in _HELP}


def exposition(statistics: Mapping[str, float] | None, recorder: UsageRecorder) -> str:
    """Return the statistics in Prometheus' text format, version 0.0.4."""
    lines = []
    for key, value in (statistics or {}).items():
        prefix, _, window = key.partition("_usage_")
        if window:
            noun = "CPU" if prefix == "cpu" else "memory"
            lines.append(f"# HELP node_{key} Percent of {noun} in use {_HELP[window]}.")
        else:
            lines.append(
                f"# HELP node_{key} The value of /statistics in millicores, bytes or seconds."
            )
        lines += [f"# TYPE node_{key} gauge", f"node_{key} {value!r}"]
    lines += [
        "# HELP node_metrics_failed_readings_total Number of failed samples.",
        "# TYPE node_metrics_failed_readings_total counter",
        f"node_metrics_failed_readings_total {recorder.failures}",
        "# HELP node_metrics_build_info Version of the exporter, as a label.",
        "# TYPE node_metrics_build_info gauge",
        f'node_metrics_build_info{{version="{__version__}"}} 1',
    ]
    return "\n".join(lines) + "\n"
