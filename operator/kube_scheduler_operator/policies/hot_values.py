"""How many pods each node has just got: crane-scheduler's hot values, from the pods themselves."""

from __future__ import annotations

import heapq
from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .arrays import Column

if TYPE_CHECKING:
    from ..load.policy import HotValue
    from .cluster import Cluster
    from .pods import Pod


class HotValues:
    """Σ floor(pods bound within `seconds` / `count`) over the rules, for each node.

    A pod counts from when it was bound, also after it has gone: what it does at its start is what
    makes a node hot.

    Args:
        cluster: whose pods and clock.
        rules: what counts.
        changed: called with a node's index when its value has changed by time alone.

    Attributes:
        column: the value of each node, 0 where no pod counts.
    """

    def __init__(
        self, cluster: Cluster, rules: Sequence[HotValue], changed: Callable[[int], None]
    ) -> None:
        self._cluster, self._rules, self._changed = cluster, tuple(rules), changed
        self._longest = max((rule.seconds for rule in rules), default=0.0)
        self._bound: dict[int, list[float]] = {}
        self._seen: dict[str, tuple[int, float]] = {}
        self._due: list[tuple[float, int, str]] = []
        self.column = Column(0.0)

    def pod(self, index: int, pod: Pod, added: bool) -> bool:
        """A pod has come or gone; returns whether the node's value has changed."""
        now = self._cluster.now()
        if not added or not self._rules or pod.bound <= now - self._longest:
            return False
        where = (index, pod.bound)
        if self._seen.get(pod.key) == where:
            return False  # it was resized
        self._seen[pod.key] = where
        insort(self._bound.setdefault(index, []), pod.bound)
        for rule in self._rules:
            heapq.heappush(self._due, (pod.bound + rule.seconds, index, pod.key))
        return self._renew(index, now)

    def expire(self) -> None:
        """Let go of pods that are no longer new; costs nothing as long as there is none."""
        due, now = self._due, self._cluster.now()
        if not due or due[0][0] > now:
            return
        touched: dict[int, None] = {}
        while due and due[0][0] <= now:
            _, index, key = heapq.heappop(due)
            touched[index] = None
            seen = self._seen.get(key)
            if seen is not None and seen[1] <= now - self._longest:
                del self._seen[key]
        for index in touched:
            if self._renew(index, now):
                self._changed(index)

    def forget(self, index: int) -> None:
        """The index has become another node's."""
        self._bound.pop(index, None)
        self.column[index] = 0.0

    def _renew(self, index: int, now: float) -> bool:
        bound = self._bound.get(index, [])
        del bound[: bisect_right(bound, now - self._longest)]
        value = float(
            sum(
                (len(bound) - bisect_right(bound, now - rule.seconds)) // rule.count
                for rule in self._rules
            )
        )
        if not bound:
            self._bound.pop(index, None)
        changed = value != self.column[index]
        self.column[index] = value
        return changed
