"""Source NodeMetrics: the exporter of every node, ours or that of crane-scheduler-plus.

Both have the same keys in percent. The other one has neither mean nor deviation, which the
annotator then computes itself.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ....load.policy import METRICS
from ....load.windows import RESOURCES
from ..measurement import AMOUNTS, Measurement, SourceError
from .http import at_host, get_json, session

if TYPE_CHECKING:
    from ....load.policy import LoadPolicy
    from ..nodes import Node


class NodeMetrics:
    """Asks each node.

    Args:
        policy: with the port, the path and the time-out.
        now: seconds since 1970.
    """

    warning = ""
    per_node = True

    def __init__(self, policy: LoadPolicy, now: Callable[[], float] = time.time) -> None:
        self._source, self._now = policy.source, now
        self._client = session(policy.source.timeout)

    async def measure(self, node: Node) -> Measurement:
        """The load of one node. Raises SourceError."""
        if not node.address:
            raise SourceError("the node has no address")
        url = at_host("http", node.address, self._source.port, self._source.path)
        said = await get_json(self._client, url, limit=65536)
        return read_statistics(said, self._now())

    async def close(self) -> None:
        """Give connections back."""
        await self._client.close()


def read_statistics(said: Any, now: float) -> Measurement:
    """What an exporter says, received at `now`. Raises SourceError."""
    if not isinstance(said, Mapping):
        raise SourceError("the statistics are no object")
    usage = {m: v for m in METRICS if (v := _percent(said, m)) is not None}
    if not usage:
        raise SourceError(f"the statistics have none of {', '.join(METRICS)}")
    active, mean, std, capacity = {}, {}, {}, {"cpu": 0.0, "mem": 0.0}
    for name in RESOURCES:
        value = _percent(said, f"{name}_usage_active")
        if value is not None:
            active[name] = value
        size, free, deviation = (
            _number(said, key.format(AMOUNTS[name]))
            for key in ("capacity_{}", "free_{}_mean", "free_{}_std")
        )
        if size:
            capacity[name] = size
            if free is not None and deviation is not None:
                mean[name], std[name] = min(max(1 - free / size, 0.0), 1.0), deviation / size
    # The node's clock may be another one than ours; an age is the same on both.
    at = now - (_number(said, "age") or 0.0)
    return Measurement(at, usage, active, mean, std, capacity["cpu"], capacity["mem"])


def _percent(said: Mapping[str, Any], key: str) -> float | None:
    number = _number(said, key)
    return None if number is None else min(number / 100.0, 1.0)


def _number(said: Mapping[str, Any], key: str) -> float | None:
    value = said.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None
