"""Learned values: for each type of Pod and each node a value from 0 (bad) to 1 (good).

As in the agent kubeRL of kube-safe-scheduler, a value is an exponential moving average of rewards.
rl-monitor stores the values in a ConfigMap, which the policy rl-priority reads.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ...base.json_text import parse_json
from .pods import Pod

CONFIG_MAP: Final = "rl-priority-state"
KEY: Final = "state.json"

RETAINED: Final = 0.9
"""Weight of the previous value in the moving average."""
FIRST: Final = 1.0
"""The initial value."""
LARGEST: Final = 900_000
"""Bytes; an API object has at most 1 MiB, including its metadata."""
_DIGITS: Final = 6

TYPE_LABELS: Final = ("podtype", "app", "name")
"""The first of these labels that a Pod has is its type; without them, its name."""


def pod_type(pod: Pod) -> str:
    """Return a Pod's type; Pods of one type share their values."""
    for label in TYPE_LABELS:
        if pod.labels.get(label):
            return pod.labels[label]
    return pod.name


def type_in_namespace(pod: Pod) -> str:
    """Return a Pod's type in its namespace.

    Of several namespaces, each has its own values: its users choose the types of their Pods.
    """
    return f"{pod.namespace}/{pod_type(pod)}"


class LearnedValues:
    """Values by type and node, in the order of their last change."""

    def __init__(self) -> None:
        # node -> time of its last rated event in seconds since 1970, by the node's clock; earlier
        # events of the node are not counted again
        self.rated: dict[str, float] = {}
        self._values: dict[tuple[str, str], float] = {}

    def reward(self, kind: str, node: str, reward: float) -> float:
        """Add a reward; returns the new value."""
        value = RETAINED * self._values.pop((kind, node), FIRST) + (1.0 - RETAINED) * reward
        self._values[kind, node] = value
        return value

    def by_type(self) -> dict[str, dict[str, float]]:
        values_by_type: dict[str, dict[str, float]] = {}
        for (kind, node), value in self._values.items():
            values_by_type.setdefault(kind, {})[node] = value
        return values_by_type

    def data(self) -> dict[str, str]:
        """Return the ConfigMap's data.

        If it exceeds the size limit, the namespace with most values loses its oldest ones.
        """
        while True:
            entries = [
                [kind, node, round(value, _DIGITS)] for (kind, node), value in self._values.items()
            ]
            nodes = {node for _, node in self._values}
            rated = {node: at for node, at in self.rated.items() if node in nodes}
            text = json.dumps({"rated": rated, "values": entries}, separators=(",", ":"))
            excess = len(text.encode()) - LARGEST
            if excess <= 0:
                return {KEY: text}
            average = max(len(text) // max(len(entries), 1), 1)
            self._forget(excess // average + 1)

    def _forget(self, count: int) -> None:
        by_namespace: dict[str, deque[tuple[str, str]]] = {}
        for key in self._values:
            namespace = key[0].rpartition("/")[0]  # empty if one namespace is watched
            by_namespace.setdefault(namespace, deque()).append(key)
        for _ in range(min(count, len(self._values))):
            del self._values[max(by_namespace.values(), key=len).popleft()]


def read_values(data: Mapping[str, Any] | None) -> LearnedValues:
    """Read a ConfigMap's data; invalid data is ignored."""
    values = LearnedValues()
    try:
        document = parse_json((data or {}).get(KEY) or "{}")
    except (ValueError, TypeError):
        return values
    if not isinstance(document, dict):
        return values
    rated = document.get("rated")
    for kind, node, value in _entries(document.get("values")):
        values._values[kind, node] = value
        # Earlier versions stored one time for all nodes.
        at = rated.get(node) if isinstance(rated, dict) else document.get("at")
        if isinstance(at, int | float) and 0 < at < 1e12:
            values.rated[node] = float(at)
    return values


def _entries(values: Any) -> Iterator[tuple[str, str, float]]:
    for entry in values if isinstance(values, list) else ():
        if isinstance(entry, list) and len(entry) == 3:
            kind, node, value = entry
            if isinstance(value, int | float) and 0 <= value <= 1:
                yield str(kind), str(node), float(value)
