"""Derives crane's hot values and the sums of requests from the pods of each node.

crane counts Scheduled events, twice if one is updated, and keeps at most 1024 of them. Here a
binding is the first observation of a pod's uid on a node, and all bindings of a window are counted.
Source of the rule: gocrane/crane-scheduler, pkg/controller/annotator/binding.go.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..load.policy import Rules, hot_value
from ..policies.pods import FINISHED, Amounts, pod_key, read_pod


class _Bound(NamedTuple):
    node: str
    requests: Amounts


class PodBindings:
    """Tracks bound pods; a receiver of a reflector.

    `now` is the API server's time, in seconds since 1970; it also writes when a pod is bound.
    """

    def __init__(self, rules: Rules, now: Callable[[], float]) -> None:
        self.rules = rules  # may be replaced
        # called with a node's name when its pods change
        self.changed: Callable[[str], None] = lambda _: None
        self._now = now
        self._pods: dict[str, _Bound] = {}
        self._sums: dict[str, dict[str, float]] = {}
        self._times: dict[str, deque[float]] = {}

    def set(self, obj: Mapping[str, Any]) -> None:
        pod = read_pod(obj)
        if not pod.node_name:
            return
        if pod.phase in FINISHED:
            self._forget(pod.key)
            return
        known = self._pods.get(pod.key)
        if known is not None and known == (pod.node_name, pod.requests):
            return
        self._forget(pod.key)
        # Many pods share a node's name, but each event has its own copy.
        self._pods[pod.key] = _Bound(sys.intern(pod.node_name), pod.requests)
        self._add(pod.node_name, pod.requests, 1)
        if known is None:
            times = self._times.setdefault(pod.node_name, deque())
            times.append(min(pod.bound or self._now(), self._now()))
            self._trim(times)
        self.changed(pod.node_name)

    def remove(self, obj: Mapping[str, Any]) -> None:
        """Handle a deleted pod; its binding still counts."""
        self._forget(pod_key(obj))

    def hot(self, node: str, now: float) -> int:
        """Return Crane's hot value of a node at `now`, in seconds since 1970."""
        times = self._times.get(node)
        if not times:
            return 0
        value = hot_value(self.rules.hot_values, times, now)
        self._trim(times)
        if not times:
            del self._times[node]
        return value

    def requested(self, node: str) -> Mapping[str, float]:
        """Return resource -> sum of the requests of a node's pods, with `pods` as their number."""
        return self._sums.get(node) or {"pods": 0.0}

    def _forget(self, key: str) -> None:
        bound = self._pods.pop(key, None)
        if bound is not None:
            self._add(bound.node, bound.requests, -1)

    def _add(self, node: str, requests: Amounts, sign: int) -> None:
        sums = self._sums.setdefault(node, {})
        for name, amount in (*requests.items(), ("pods", 1.0)):
            left = sums.get(name, 0.0) + sign * amount
            if left > 0:
                sums[name] = left
            else:
                sums.pop(name, None)
        if not sums:
            del self._sums[node]

    def _trim(self, times: deque[float]) -> None:
        reach = max((hot.seconds for hot in self.rules.hot_values), default=0.0)
        oldest = self._now() - reach
        while times and times[0] <= oldest:
            times.popleft()
