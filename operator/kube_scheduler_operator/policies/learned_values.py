"""What has been learnt: for each type of pod and each node a value, 0 bad to 1 good.

The agent kubeRL of kube-safe-scheduler: an exponential moving average of rewards. It is kept in a
ConfigMap, which the policy rl-priority reads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from .pods import Pod

CONFIG_MAP: Final = "rl-priority-state"
KEY: Final = "state.json"

KEPT: Final = 0.9
"""What is kept of a value when a reward comes in; the rest is the reward's."""
FIRST: Final = 1.0
"""The value before any reward."""
LARGEST: Final = 900_000
"""Bytes: an object of the API is at most 1 MiB, with its metadata."""
_DIGITS: Final = 6

TYPE_LABELS: Final = ("podtype", "app", "name")
"""The first of them that a pod has says of which type it is; its name if it has none."""


def pod_type(pod: Pod) -> str:
    """Of which type a pod is: pods of one type share their values."""
    for label in TYPE_LABELS:
        if pod.labels.get(label):
            return pod.labels[label]
    return pod.name


class State:
    """Values by type and node, those that were changed last at the end.

    Attributes:
        at: the time of the last thing that was rewarded, seconds since 1970; nothing before it
            counts again.
    """

    def __init__(self) -> None:
        self.at = 0.0
        self._values: dict[tuple[str, str], float] = {}

    def reward(self, kind: str, node: str, reward: float) -> float:
        """Take a reward into account; returns the new value."""
        value = KEPT * self._values.pop((kind, node), FIRST) + (1.0 - KEPT) * reward
        self._values[kind, node] = value
        return value

    def by_type(self) -> dict[str, dict[str, float]]:
        """Type to node to value."""
        found: dict[str, dict[str, float]] = {}
        for (kind, node), value in self._values.items():
            found.setdefault(kind, {})[node] = value
        return found

    def data(self) -> dict[str, str]:
        """The ConfigMap's data; what was changed longest ago is forgotten if it is too much."""
        while True:
            entries = [
                [kind, node, round(value, _DIGITS)] for (kind, node), value in self._values.items()
            ]
            text = json.dumps({"at": self.at, "values": entries}, separators=(",", ":"))
            excess = len(text.encode()) - LARGEST
            if excess <= 0:
                return {KEY: text}
            average = max(len(text) // max(len(entries), 1), 1)
            for oldest in list(self._values)[: excess // average + 1]:
                del self._values[oldest]


def read_state(data: Mapping[str, Any] | None) -> State:
    """The state in a ConfigMap's data; an empty one where it makes no sense."""
    state = State()
    try:
        said = json.loads((data or {}).get(KEY) or "{}")
    except (ValueError, TypeError, RecursionError):
        return state
    if not isinstance(said, dict):
        return state
    if isinstance(at := said.get("at"), int | float) and 0 < at < 1e12:
        state.at = float(at)
    for kind, node, value in _entries(said.get("values")):
        state._values[kind, node] = value
    return state


def _entries(values: Any) -> Iterator[tuple[str, str, float]]:
    for entry in values if isinstance(values, list) else ():
        if isinstance(entry, list) and len(entry) == 3:
            kind, node, value = entry
            if isinstance(value, int | float) and 0 <= value <= 1:
                yield str(kind), str(node), float(value)
