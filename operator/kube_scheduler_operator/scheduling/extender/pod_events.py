"""Events on Pods for which an agent rejected all nodes.

kube-scheduler retries such Pods, and there may be thousands of them. A Pod therefore gets at most
one event per minute, and all Pods together get at most one per second.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from ...base.bounded_cache import Recent
from ...kube.events import EventRecorder, Involved
from ...kube.token_bucket import TokenBucket
from ..policies.policy import Rejections
from .wire import Args

REASON: Final = "ExtenderRejectedNodes"
PAUSE: Final = 60.0
"""Seconds between two events of a Pod."""
BURST: Final = 30
"""Events without delay; then one per second."""

_REFILL: Final = 1.0
_REMEMBERED: Final = 4096
_REASONS: Final = 3


class PodEventRecorder:
    """Records events for the results of filters."""

    def __init__(
        self, recorder: EventRecorder, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.sent = 0  # number of recorded events
        self.withheld = 0  # number of events over the rate limit
        self._recorder = recorder
        self._clock = clock
        self._last_events: Recent[tuple[str, str, str], float] = Recent(_REMEMBERED)
        self._tokens = TokenBucket(BURST, _REFILL, clock)

    def rejected(self, agent: str, args: Args, rejections: Rejections) -> None:
        """Record that an agent rejected all nodes of a request."""
        pod = args.pod
        if not pod.name or not args.names:
            return
        now = self._clock()
        key = (agent, f"{pod.namespace}/{pod.name}", pod.uid)
        if now - self._last_events.get(key, float("-inf")) < PAUSE:
            return
        if self._tokens.left() < 1:
            self.withheld += 1
            return
        self._tokens.spend()
        self._last_events.keep(key, now)
        self.sent += 1
        about = Involved("v1", "Pod", pod.name, pod.namespace or "default", pod.uid)
        self._recorder.event("Warning", REASON, message(agent, rejections), about)


def message(agent: str, rejections: Rejections) -> str:
    """Return a message in the form of kube-scheduler's own: number of nodes and reasons."""
    reasons = Counter(rejections.reasons.values())
    count = len(rejections.reasons)
    nodes = "the only candidate node" if count == 1 else f"all {count} candidate nodes"
    parts = [f"{times} {reason}" for reason, times in reasons.most_common(_REASONS)]
    if len(reasons) > _REASONS:
        left = sum(times for _, times in reasons.most_common()[_REASONS:])
        parts.append(f"{left} for other reasons (kubectl scheduler why)")
    return f"extender {agent} rejected {nodes}: {'; '.join(parts)}"
