"""Waiting for news that kube-scheduler has and we have not, so that no pod misses its chance.

kube-scheduler tries a pod that an extender left no node for again when a node changes, and at once.
It hears of the change over a watch of its own, and is often the first: then its call is here before
the news is, the pod is rejected once more for what is no longer so, and no change follows that has
it tried again. After one change of one node, three of ten pods stayed without a node that way until
something else happened or five minutes were over (kube-scheduler 1.35, on a quiet machine).

That kube-scheduler asks again while nothing has changed here is the sign that something has: such
an answer waits for the news, a few milliseconds. Where many things change all the time it does not
wait, and need not: the next change has the pod tried again.

kube-scheduler also asks again where there is no news, and waits for every answer. So that this
costs it little, waiting has a budget, and a pod's first rejection, which kube-scheduler writes into
the pod's status and then takes for a change, begins with a while without.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from ...kube.reflector import BATCH
from ...kube.token_bucket import TokenBucket

if TYPE_CHECKING:
    from ...policies.cluster import Cluster
    from ...policies.pods import Pod

LONGEST: Final = 0.05
"""Seconds that one answer waits at most; nearly all news is here within ten milliseconds."""

QUIET: Final = BATCH + 0.01
"""Seconds after the last news when no more is expected: a watch is read in batches."""

SHARE: Final = 0.05
"""Of all time, what may be waited; it costs kube-scheduler so much of its throughput at most."""

SAVED: Final = 0.25
"""Seconds of waiting that may be saved up."""

ECHO: Final = 0.5
"""Seconds after a pod's first rejection in which kube-scheduler asks again by itself."""

_STEP: Final = 0.002
_REMEMBERED: Final = 4096


class Behind:
    """Remembers who was rejected, and waits.

    Args:
        cluster: the view; its version tells whether there is news.
        clock: monotonic seconds.
        sleep: lets seconds pass.

    Attributes:
        waits: answers that waited: [in vain, until there was news].
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.waits = [0, 0]
        self._cluster = cluster
        self._clock = clock
        self._sleep = sleep
        # (agent, pod) -> (the view's version at the last rejection, the time of the first one)
        self._rejections: OrderedDict[tuple[str, str], tuple[int, float]] = OrderedDict()
        self._seconds = TokenBucket(SAVED, 1 / SHARE, clock)

    def suspects(self, agent: str, pod: Pod) -> bool:
        """Whether rejecting the pod again may be for what is no longer so, and waiting is paid."""
        before = self._rejections.get((agent, pod.key))
        if before is None or before[0] != self._cluster.version:
            return False
        return self._clock() - before[1] >= ECHO and self._seconds.left() >= LONGEST

    def rejected(self, agent: str, pod: Pod) -> None:
        """Nodes were rejected for the pod, by what is known now."""
        key = (agent, pod.key)
        before = self._rejections.get(key)
        first = self._clock() if before is None else before[1]
        self._rejections[key] = self._cluster.version, first
        if before is not None:
            self._rejections.move_to_end(key)
        elif len(self._rejections) > _REMEMBERED:
            self._rejections.popitem(last=False)

    async def wait(self, version: int, enough: Callable[[], bool]) -> None:
        """Wait for news; return once it is `enough`, or none is to be expected.

        Args:
            version: of the view, when it was last looked at.
            enough: asked whenever there is news.
        """
        first, began = version, self._clock()
        heard = began
        try:
            while True:
                now = self._clock()
                if self._cluster.version != version:
                    version, heard = self._cluster.version, now
                    if enough():
                        return
                if now - began >= LONGEST or (version != first and now - heard >= QUIET):
                    return
                await self._sleep(_STEP)
        finally:
            self._seconds.spend(self._clock() - began)
            self.waits[version != first] += 1
