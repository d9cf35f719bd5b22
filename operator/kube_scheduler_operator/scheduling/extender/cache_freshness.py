"""Waits for events that kube-scheduler has already received and the node view has not.

When a node changes, kube-scheduler immediately retries the Pods for which an extender rejected all
nodes. Its own watch is often faster than ours. The call then arrives before the event, the extender
rejects the Pod again on stale data, and no further event triggers a retry. After one change of one
node, three of ten Pods remained unscheduled until an unrelated event or for five minutes
(kube-scheduler 1.35, on an idle machine).

A repeated call for a Pod while the node view is unchanged indicates a missing event: the response
then waits for it, a few milliseconds. In a busy cluster the view changes between the calls, and the
next event triggers a retry anyway.

kube-scheduler also retries without an event, and waits for every response. To bound that cost,
waiting has a budget. It is also disabled for a short time after a Pod's first rejection, because
kube-scheduler records that in the Pod's status and treats the update as an event.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from ...base.bounded_cache import Recent
from ...kube.reflector import BATCH
from ...kube.token_bucket import TokenBucket
from ..policies.cluster import Cluster
from ..policies.pods import Pod

LONGEST: Final = 0.05
"""Longest wait of one response in seconds; nearly all events arrive within 10 ms."""

QUIET: Final = BATCH + 0.01
"""Seconds after the last event until no more are expected: watches are read in batches."""

SHARE: Final = 0.05
"""Largest share of time spent waiting, and thus of kube-scheduler's throughput."""

SAVED: Final = 0.25
"""Largest unused budget, in seconds of waiting."""

ECHO: Final = 0.5
"""Seconds after a Pod's first rejection in which kube-scheduler retries without an event."""

_STEP: Final = 0.002
_REMEMBERED: Final = 4096


class CacheFreshness:
    """Records rejections, and waits for missing events.

    The version of `cluster` changes with every event; `clock` is in monotonic seconds.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.waits = [0, 0]  # number of responses that waited: [without an event, with one]
        self._cluster = cluster
        self._clock = clock
        self._sleep = sleep
        # (agent, pod) -> (version of the view at the last rejection, time of the first one)
        self._rejections: Recent[tuple[str, str], tuple[int, float]] = Recent(_REMEMBERED)
        self._seconds = TokenBucket(SAVED, 1 / SHARE, clock)

    def may_be_stale(self, agent: str, pod: Pod) -> bool:
        """Return whether a rejection may rest on stale data, and the budget allows to wait."""
        before = self._rejections.get((agent, pod.key))
        if before is None or before[0] != self._cluster.version:
            return False
        return self._clock() - before[1] >= ECHO and self._seconds.left() >= LONGEST

    def rejected(self, agent: str, pod: Pod) -> None:
        """Record that nodes were rejected for the Pod with the current view."""
        key = (agent, pod.key)
        before = self._rejections.get(key)
        first = self._clock() if before is None else before[1]
        self._rejections.keep(key, (self._cluster.version, first))

    async def wait(self, version: int, enough: Callable[[], bool]) -> None:
        """Wait for events since a version of the view, until `enough` or no more are expected."""
        first, began = version, self._clock()
        last_event = began
        try:
            while True:
                now = self._clock()
                if self._cluster.version != version:
                    version, last_event = self._cluster.version, now
                    if enough():
                        return
                if now - began >= LONGEST or (version != first and now - last_event >= QUIET):
                    return
                await self._sleep(_STEP)
        finally:
            self._seconds.spend(self._clock() - began)
            self.waits[version != first] += 1
