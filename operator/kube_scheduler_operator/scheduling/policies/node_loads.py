"""The load in nodes' annotations, as columns by node index.

The source is our own annotation or, if configured, those of crane-scheduler, crane-scheduler-plus
(in percent) or kube-safe-scheduler's node-annotator. Each metric has one name and unit here:

| name | unit |
|---|---|
| `cpu_usage_*`, `mem_usage_*` | fraction of capacity |
| `free_cpu_mean`, `_std`, `_forecast` | millicores |
| `free_memory_mean`, `_std`, `_forecast` | bytes |
| `congestion` | defined by its source |
| `requested_cpu`, `_memory`, … | as in the sum of requests |
| `hot` | crane's node_hot_value |
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from ...base.json_text import parse_json
from ...base.limits import ANNOTATION
from ...base.names import LOAD_ANNOTATION
from ..load.policy import HOT_VALUE, SAFE_KEYS
from .arrays import Column, Matrix
from .cluster import Cluster, Node
from .pods import seconds

OWN: Final = "own"
CRANE: Final = "crane"
CRANE_PLUS: Final = "crane-plus"
SAFE: Final = "safe"
FORMATS: Final = (OWN, CRANE, CRANE_PLUS, SAFE)

VALID: Final = 480.0
"""Default validity of a measurement in seconds: crane's shortest period of three minutes and its
five minutes of grace."""

HOT_VALID: Final = 300.0
"""Validity of crane's hot value in seconds (section "hot value" of its README)."""

_HOT: Final = "hot"
_REQUESTED: Final = "requested_"

_LARGEST: Final = 1e18
"""Larger values, and negative ones, are invalid and ignored."""
CONGESTION: Final = "congestion"
"""The only metric that may be negative, which counts as 0."""

Measurement = tuple[str, float, float]
"""(name, value, time; infinity if unknown)."""


class LoadColumns:
    """The metrics of all nodes that a policy uses, each until it expires.

    `changed` is called with a node's index when one of its metrics has expired; `annotations` is
    one of FORMATS. A metric is valid for the seconds in `valid`, by default VALID. `zone` is the
    time zone of crane's timestamps, whose suffix Z has no meaning.
    """

    def __init__(
        self,
        cluster: Cluster,
        names: Sequence[str],
        changed: Callable[[int], None],
        *,
        annotations: str = OWN,
        valid: Mapping[str, float] | None = None,
        zone: datetime.tzinfo = datetime.UTC,
    ) -> None:
        self._cluster, self._changed = cluster, changed
        self._annotations, self._zone = annotations, zone
        self._valid = valid or {}
        self._names = tuple(dict.fromkeys(names))
        self.matrix = Matrix(len(self._names))  # a column for each of `names`; NaN where unknown
        self._until = Matrix(len(self._names), math.inf)
        self.columns = {name: self.matrix.column(at) for at, name in enumerate(self._names)}
        self.measured = Column()  # time of a node's latest measurement; NaN if unknown
        self._seen: dict[int, tuple[str | None, ...]] = {}
        self._due = math.inf

    def read(self, index: int, node: Node | None) -> bool:
        """Read a node's annotations; returns whether they have changed.

        Does not call `changed`.
        """
        texts = tuple(self._texts(node.annotations)) if node else ()
        if self._seen.get(index) == texts:
            return False
        if texts:
            self._seen[index] = texts
        else:
            self._seen.pop(index, None)
        measurements = {
            name: (value, at)
            for name, value, at in (self._measurements(texts) if node else ())
            if 0.0 <= value < _LARGEST or (name == CONGESTION and value < 0.0)
        }
        now, latest = self._cluster.now(), -math.inf
        for column, name in enumerate(self._names):
            value, at = measurements.get(name, (math.nan, math.inf))
            if math.isfinite(at):
                at = min(at, now)  # by a clock that is ahead, it would be valid for longer
            until = at + self._valid.get(name, HOT_VALID if name == _HOT else VALID)
            if until <= now:
                value, until = math.nan, math.inf
            self.matrix[column, index], self._until[column, index] = value, until
            self._due = min(self._due, until)
            if not math.isnan(value) and at < math.inf:
                latest = max(latest, at)
        self.measured[index] = latest if latest > -math.inf else math.nan
        return True

    def expire(self) -> None:
        """Remove expired values; without cost if there is nothing to remove."""
        now = self._cluster.now()
        if now < self._due:
            return
        until = self._until.values(len(self._cluster))
        gone = (until <= now).nonzero()
        self.matrix.values(len(self._cluster))[gone] = math.nan
        until[gone] = math.inf
        self._due = float(until.min(initial=math.inf))
        for index in sorted(set(gone[1].tolist())):
            self._changed(index)

    # --- formats --------------------------------------------------------------------------------

    def _texts(self, annotations: Mapping[str, str]) -> Iterator[str | None]:
        if self._annotations == OWN:
            yield annotations.get(LOAD_ANNOTATION)
            return
        for name in self._names:
            yield annotations.get(self._key(name))

    def _key(self, name: str) -> str:
        if self._annotations != SAFE:
            return HOT_VALUE if name == _HOT else name
        if name.startswith(_REQUESTED):
            return name.replace("_", "-")
        return SAFE_KEYS.get(name, name)

    def _measurements(self, texts: Iterable[str | None]) -> Iterator[Measurement]:
        if self._annotations == OWN:
            for text in texts:
                yield from _own(text, self._names)
            return
        for name, text in zip(self._names, texts, strict=True):
            if text is None:
                continue
            if self._annotations == SAFE:
                yield name, _number(text), math.inf
                continue
            value, at = _crane(text, self._zone)
            if self._annotations == CRANE_PLUS and name != _HOT:
                value /= 100.0
            yield name, value, at


def _own(text: str | None, names: Iterable[str]) -> Iterator[Measurement]:
    try:
        document = parse_json(text, ANNOTATION) if text else None
    except ValueError:
        return
    if not isinstance(document, dict):
        return
    at = seconds(document.get("at"))
    for name in names:
        value = document.get(name)
        # An integer may be too large for a float.
        if isinstance(value, int | float) and not isinstance(value, bool) and value < _LARGEST:
            yield name, float(max(value, -_LARGEST)), at


def _crane(text: str, zone: datetime.tzinfo) -> tuple[float, float]:
    """Return (value, time); NaN for values that crane rejects: negative, or not in two parts."""
    number, comma, at = text.partition(",")
    value = _number(number)
    try:
        time = datetime.datetime.strptime(at, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=zone)
    except ValueError:
        return math.nan, 0.0
    return (value if comma and value >= 0 else math.nan), time.timestamp()


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
