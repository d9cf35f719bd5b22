"""Events on pods that no node was left for: the place where people look first.

kube-scheduler tries such a pod again and again, and there may be thousands of them; so a pod gets
its next event after a minute at the earliest, and all together get no more than one a second.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ...kube.events import EventRecorder, Involved
from ...kube.token_bucket import TokenBucket

if TYPE_CHECKING:
    from ...policies.policy import Rejections
    from .wire import Args

REASON: Final = "ExtenderRejectedNodes"
PAUSE: Final = 60.0
"""Seconds until a pod gets its next event."""
BURST: Final = 30
"""Events that may come at once; after that one a second."""

_REFILL: Final = 1.0
_REMEMBERED: Final = 4096
_REASONS: Final = 3


class Teller:
    """Makes events out of filters' answers.

    Attributes:
        sent: events that were handed to the recorder.
        withheld: those that would have been one too many.
    """

    def __init__(
        self, recorder: EventRecorder, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.sent = 0
        self.withheld = 0
        self._recorder = recorder
        self._clock = clock
        self._told: OrderedDict[tuple[str, str, str], float] = OrderedDict()
        self._tokens = TokenBucket(BURST, _REFILL, clock)

    def rejected(self, agent: str, args: Args, rejections: Rejections) -> None:
        """An agent has rejected all nodes that it was asked about."""
        pod = args.pod
        if not pod.name or not args.names:
            return
        now = self._clock()
        key = (agent, f"{pod.namespace}/{pod.name}", pod.uid)
        if now - self._told.get(key, float("-inf")) < PAUSE:
            return
        if self._tokens.left() < 1:
            self.withheld += 1
            return
        self._tokens.spend()
        self._told[key] = now
        self._told.move_to_end(key)
        while len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)
        self.sent += 1
        about = Involved("v1", "Pod", pod.name, pod.namespace or "default", pod.uid)
        self._recorder.event("Warning", REASON, message(agent, rejections), about)


def message(agent: str, rejections: Rejections) -> str:
    """What kube-scheduler's own events look like: how many nodes, and why."""
    reasons = Counter(rejections.reasons.values())
    count = len(rejections.reasons)
    nodes = "the only node" if count == 1 else f"all {count} nodes"
    told = [f"{times} {reason}" for reason, times in reasons.most_common(_REASONS)]
    if len(reasons) > _REASONS:
        left = sum(times for _, times in reasons.most_common()[_REASONS:])
        told.append(f"{left} for other reasons (kubectl scheduler explain)")
    return f"extender {agent} rejected {nodes} that it was asked about: {'; '.join(told)}"
