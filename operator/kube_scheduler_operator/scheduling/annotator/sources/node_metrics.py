"""Source NodeMetrics: the exporter of every node, ours or that of crane-scheduler-plus.

Both use the same keys, in percent. crane's has neither mean nor standard deviation, which the
annotator then computes itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ...load.policy import METRICS
from ...load.windows import RESOURCES
from ..measurement import AMOUNTS, Measurement, MeasurementError
from ..nodes import AnnotatedNode
from .http import NodeSource, get_json


class NodeMetrics(NodeSource):
    """Polls the exporter of each node."""

    async def measure(self, node: AnnotatedNode) -> Measurement:
        """Return the load of one node. Raises MeasurementError."""
        url = self.url("http", node, self._source.path)
        statistics = await get_json(self._client, url, limit=65536)
        return read_statistics(statistics, self._now())


def read_statistics(statistics: Any, now: float) -> Measurement:
    """Parse an exporter's statistics, received at `now`. Raises MeasurementError."""
    if not isinstance(statistics, Mapping):
        raise MeasurementError("the statistics are not an object")
    usage = {m: v for m in METRICS if (v := _percent(statistics, m)) is not None}
    if not usage:
        raise MeasurementError(f"the statistics have none of {', '.join(METRICS)}")
    active, mean, std, capacity = {}, {}, {}, {"cpu": 0.0, "mem": 0.0}
    for name in RESOURCES:
        value = _percent(statistics, f"{name}_usage_active")
        if value is not None:
            active[name] = value
        size, free, deviation = (
            _number(statistics, key.format(AMOUNTS[name]))
            for key in ("capacity_{}", "free_{}_mean", "free_{}_std")
        )
        if size:
            capacity[name] = size
            if free is not None and deviation is not None:
                mean[name], std[name] = min(max(1 - free / size, 0.0), 1.0), deviation / size
    # Clocks may differ between node and annotator; an age is the same on both.
    at = now - (_number(statistics, "age") or 0.0)
    return Measurement(at, usage, active, mean, std, capacity["cpu"], capacity["mem"])


def _percent(statistics: Mapping[str, Any], key: str) -> float | None:
    number = _number(statistics, key)
    return None if number is None else min(number / 100.0, 1.0)


def _number(statistics: Mapping[str, Any], key: str) -> float | None:
    value = statistics.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None
