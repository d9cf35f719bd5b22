"""Crane-scheduler's hot values, computed from the Pods that were recently bound to each node."""

from __future__ import annotations

import heapq
from bisect import bisect_right, insort
from collections.abc import Callable, Sequence

from ..load.policy import HotValue, hot_value
from .arrays import Column
from .cluster import Cluster
from .pods import Pod


class HotValues:
    """Σ floor(pods bound within `seconds` / `count`) over the rules, for each node.

    A Pod counts from its binding, even after its deletion: its start is what makes a node hot. A
    Pod that was assumed to be bound counts until it turns out that it was not.
    `changed` is called with a node's index when its value has changed with time.
    """

    def __init__(
        self, cluster: Cluster, rules: Sequence[HotValue], changed: Callable[[int], None]
    ) -> None:
        self._cluster, self._rules, self._changed = cluster, tuple(rules), changed
        self._longest = max((rule.seconds for rule in rules), default=0.0)
        self._bound: dict[int, list[float]] = {}
        self._seen: dict[str, tuple[int, float]] = {}
        self._due: list[tuple[float, int, str]] = []
        self.column = Column(0.0)  # the value of each node; 0 without recent Pods

    def pod(self, index: int, pod: Pod, added: bool) -> bool:
        """Process an added or removed Pod; returns whether the node's value has changed."""
        now = self._cluster.now()
        if not added and pod.assumed and self._seen.get(pod.key) == (index, pod.bound):
            del self._seen[pod.key]
            if pod.bound in (bound := self._bound.get(index, [])):
                bound.remove(pod.bound)
            return self._renew(index, now)
        if not added or not self._rules or pod.bound <= now - self._longest:
            return False
        where = (index, pod.bound)
        if self._seen.get(pod.key) == where:
            return False  # the Pod was resized
        self._seen[pod.key] = where
        insort(self._bound.setdefault(index, []), pod.bound)
        for rule in self._rules:
            heapq.heappush(self._due, (pod.bound + rule.seconds, index, pod.key))
        return self._renew(index, now)

    def expire(self) -> None:
        """Remove Pods that are no longer recent; without cost if there is nothing to remove."""
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
        """Reset an index that is assigned to another node."""
        self._bound.pop(index, None)
        self.column[index] = 0.0

    def _renew(self, index: int, now: float) -> bool:
        bound = self._bound.get(index, [])
        del bound[: bisect_right(bound, now - self._longest)]
        value = float(hot_value(self._rules, bound, now))
        if not bound:
            self._bound.pop(index, None)
        changed = value != self.column[index]
        self.column[index] = value
        return changed
