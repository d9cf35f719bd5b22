"""What nodes' annotations say of their load, as columns by node index.

Read are our own annotation and, on request, those of crane-scheduler, of crane-scheduler-plus (in
percent) and of kube-safe-scheduler's node-annotator. Whatever they are called there, a figure has
one name and one unit here:

| name | unit |
|---|---|
| `cpu_usage_*`, `mem_usage_*` | fraction of capacity |
| `free_cpu_mean`, `_std`, `_forecast` | thousandths of a core |
| `free_memory_mean`, `_std`, `_forecast` | bytes |
| `congestion` | as whoever measures it has it |
| `requested_cpu`, `_memory`, … | as in a sum of requests |
| `hot` | crane's node_hot_value |
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from ..base.names import LOAD_ANNOTATION
from .arrays import Column, Matrix, np
from .cluster import Cluster, Node
from .pods import seconds

OWN: Final = "own"
CRANE: Final = "crane"
CRANE_PLUS: Final = "crane-plus"
SAFE: Final = "safe"
FORMATS: Final = (OWN, CRANE, CRANE_PLUS, SAFE)

VALID: Final = 480.0
"""Seconds that a figure holds after it was measured, if nobody says: crane's shortest period, three
minutes, and its five minutes of grace."""

HOT_VALID: Final = 300.0
"""Seconds that crane's hot value holds (its constant; section "hot value" of its README)."""

_SAFE_KEYS: Final[Mapping[str, str]] = {
    "free_cpu_mean": "mean-free-cpu",
    "free_cpu_std": "std-free-cpu",
    "free_cpu_forecast": "forcasted-free-cpu",  # sic
    "free_memory_mean": "mean-free-memory",
    "free_memory_std": "std-free-memory",
    "free_memory_forecast": "forcasted-free-memory",
    "congestion": "congestion-factor",
}
_HOT: Final = "hot"
_HOT_KEY: Final = "node_hot_value"
_REQUESTED: Final = "requested_"

_LARGEST: Final = 1e18
"""No amount is that large, nor negative: it is a mistake, and as good as nothing."""
CONGESTION: Final = "congestion"
"""Only this one may be negative, and then counts as 0."""

Figure = tuple[str, float, float]
"""(name, value, when it was measured or infinity if nobody says)."""


class Loads:
    """The figures of all nodes that a policy wants, each until it is too old.

    Args:
        cluster: whose nodes; the clock is its.
        names: which figures.
        changed: called with a node's index when a figure of it has changed or has grown too old.
        annotations: whose: one of FORMATS.
        valid: name to seconds for which a figure holds; VALID for the others.
        zone: of crane's times, whose Z is only a letter.

    Attributes:
        columns: name to column, NaN where nothing is known.
        matrix: the same together, in the order of `names` without repetitions.
        measured: when the latest figure of a node was measured; NaN if nobody says.
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
        self.matrix = Matrix(len(self._names))
        self.columns = {name: self.matrix.column(at) for at, name in enumerate(self._names)}
        self.measured = Column()
        self._until: dict[str, Column] = {name: Column(math.inf) for name in self._names}
        self._seen: dict[int, tuple[str | None, ...]] = {}
        self._due = math.inf

    def read(self, index: int, node: Node | None) -> bool:
        """Take over what a node says; returns whether it says anything new.

        Does not call `changed`: the caller knows.
        """
        texts = tuple(self._texts(node.annotations)) if node else ()
        if self._seen.get(index) == texts:
            return False
        if texts:
            self._seen[index] = texts
        else:
            self._seen.pop(index, None)
        found = {
            name: (value, at)
            for name, value, at in (self._figures(texts) if node else ())
            if 0.0 <= value < _LARGEST or (name == CONGESTION and value < 0.0)
        }
        now, latest = self._cluster.now(), -math.inf
        for name in self._names:
            value, at = found.get(name, (math.nan, math.inf))
            until = at + self._valid.get(name, HOT_VALID if name == _HOT else VALID)
            if until <= now:
                value, until = math.nan, math.inf
            self.columns[name][index], self._until[name][index] = value, until
            self._due = min(self._due, until)
            if not math.isnan(value) and at < math.inf:
                latest = max(latest, at)
        self.measured[index] = latest if latest > -math.inf else math.nan
        return True

    def expire(self) -> None:
        """Forget what has grown too old; costs nothing as long as nothing can have."""
        now = self._cluster.now()
        if now < self._due:
            return
        size = len(self._cluster)
        gone: set[int] = set()
        due = math.inf
        for name in self._names:
            until = self._until[name].values(size)
            for index in np.flatnonzero(until <= now).tolist():
                self.columns[name][index] = math.nan
                self._until[name][index] = math.inf
                gone.add(index)
            if size:
                due = min(due, float(self._until[name].values(size).min()))
        self._due = due
        for index in sorted(gone):
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
            return _HOT_KEY if name == _HOT else name
        if name.startswith(_REQUESTED):
            return name.replace("_", "-")
        return _SAFE_KEYS.get(name, name)

    def _figures(self, texts: Iterable[str | None]) -> Iterator[Figure]:
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


def _own(text: str | None, names: Iterable[str]) -> Iterator[Figure]:
    try:
        said = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return
    if not isinstance(said, dict):
        return
    at = seconds(said.get("at"))
    for name in names:
        value = said.get(name)
        # An integer may be too large for a float.
        if isinstance(value, int | float) and not isinstance(value, bool) and value < _LARGEST:
            yield name, float(max(value, -_LARGEST)), at


def _crane(text: str, zone: datetime.tzinfo) -> tuple[float, float]:
    """(value, time); NaN for what crane does not accept either: negative, or not in two parts."""
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
