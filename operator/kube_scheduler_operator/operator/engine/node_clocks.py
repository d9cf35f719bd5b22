"""How far the clocks of nodes are from the operator's, so that times are compared by one clock.

A kubelet writes the starts and ends of containers by its node's clock. A change that arrives
through a watch has just happened: the difference between its arrival and the newest time in it is
the difference of the clocks, plus a delay of seconds. Times are translated when they enter a
snapshot, so that all code that reads it compares times of one clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from ...base.objects import Object
from ...base.times import rfc3339, timestamp
from ...kube.resource import NODES, PODS, Resource

TOLERANCE: Final = timedelta(seconds=5)
"""A smaller difference is a delay, or does not matter."""

SAMPLES: Final = 4
"""The smallest of this many differences counts: the one with the shortest delay."""

_REMEMBERED: Final = 1024

_TIMES: Final = (
    "finishedAt",
    "lastHeartbeatTime",
    "lastTransitionTime",
    "startTime",
    "startedAt",
)
"""Times that a kubelet writes into the status of a Pod or Node."""


class NodeClocks:
    """The differences of clocks, from watch events; empty while clocks agree.

    `now` is the operator's clock; `calm` returns whether nothing delays the reports of kubelets,
    such as an outage of the API server.
    """

    def __init__(self, now: Callable[[], datetime], calm: Callable[[], bool]) -> None:
        self._now = now
        self._calm = calm
        self._samples: dict[str, deque[timedelta]] = {}

    def observe(
        self, resource: Resource, before: Mapping[str, Any] | None, obj: Mapping[str, Any]
    ) -> None:
        """Note a change of a Pod or Node; `before` is None for an object that is new here."""
        node, newest = _written(resource, obj)
        if not node or newest is None:
            return
        difference = self._now() - newest
        known = _written(resource, before)[1] if before is not None else None
        changed = before is not None and (known is None or newest > known)
        # A time in the future needs no change: it cannot be older than it looks.
        if difference < -TOLERANCE or (changed and self._calm()):
            self._samples.setdefault(node, deque(maxlen=SAMPLES)).append(difference)
            if len(self._samples) > _REMEMBERED:
                del self._samples[next(iter(self._samples))]

    def forget(self, node: str) -> None:
        self._samples.pop(node, None)

    @property
    def differences(self) -> dict[str, timedelta]:
        """Node -> what to add to its times, if that is more than TOLERANCE."""
        return {
            node: timedelta(seconds=round(difference.total_seconds()))
            for node, samples in self._samples.items()
            if abs(difference := min(samples)) > TOLERANCE
        }


def translated(
    resource: Resource,
    objects: Iterable[Object],
    differences: Mapping[str, timedelta],
    now: datetime,
) -> tuple[Object, ...]:
    """Translate the times in Pods or Nodes to the operator's clock; none is after `now`."""
    return tuple(
        {**obj, "status": _shift(obj["status"], difference, now)}
        if (difference := differences.get(_node(resource, obj))) and obj.get("status")
        else obj
        for obj in objects
    )


def _shift(value: Any, difference: timedelta, now: datetime) -> Any:
    if isinstance(value, Mapping):
        # The control plane writes Unknown for a kubelet that does not report.
        if value.get("status") == "Unknown":
            return value
        return {
            key: rfc3339(min(moment + difference, now))
            if key in _TIMES and isinstance(item, str) and (moment := timestamp(item))
            else _shift(item, difference, now)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_shift(item, difference, now) for item in value]
    return value


def _node(resource: Resource, obj: Mapping[str, Any]) -> str:
    if resource == NODES:
        return str(obj["metadata"]["name"])
    return str((obj.get("spec") or {}).get("nodeName") or "")


def _written(resource: Resource, obj: Mapping[str, Any]) -> tuple[str, datetime | None]:
    """Return (node of an object, newest time that only its kubelet writes)."""
    if resource not in (NODES, PODS):
        return "", None
    status = obj.get("status") or {}
    texts = _heartbeats(status) if resource == NODES else _containers(status)
    return _node(resource, obj), max(filter(None, map(timestamp, texts)), default=None)


def _heartbeats(status: Mapping[str, Any]) -> Iterator[str | None]:
    for condition in status.get("conditions") or ():
        if condition.get("status") != "Unknown":
            yield condition.get("lastHeartbeatTime")


def _containers(status: Mapping[str, Any]) -> Iterator[str | None]:
    for container in status.get("containerStatuses") or ():
        for state in (container.get("state") or {}, container.get("lastState") or {}):
            for detail in state.values():
                yield from ((detail or {}).get(key) for key in ("startedAt", "finishedAt"))
