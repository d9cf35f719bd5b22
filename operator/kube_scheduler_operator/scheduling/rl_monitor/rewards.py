"""Rewards for events of a pod: 1 for running, 0 for a failure, ½ for a failure after a long time.

As in kubeRL, but each occurrence counts once, not once per API event, and with the complete time
between two failures, of which the original uses only the seconds within the minute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..policies.pods import seconds

RUNNING: Final = 1.0
LASTED: Final = 0.5
FAILED: Final = 0.0

MTTF: Final = 600.0
"""Runtime in seconds after which a failure counts only half."""


@dataclass(frozen=True, slots=True)
class RatedEvent:
    """An event with a reward."""

    key: str  # unique key among the pod's events
    at: float  # time of the event, seconds since 1970; 0 if unknown
    reward: float  # 0..1
    what: str  # description for the log


def rated_events(pod: Mapping[str, Any], mttf: float = MTTF) -> Iterator[RatedEvent]:
    """Yield the events in a pod's status in order; after `mttf` seconds, a failure counts half."""
    status = pod.get("status") or {}
    events = [
        event
        for container in status.get("containerStatuses") or ()
        for event in _container(container, mttf)
    ]
    phase = status.get("phase")
    if phase in ("Failed", "Unknown") and not any(event.reward < RUNNING for event in events):
        changes = (seconds(c.get("lastTransitionTime")) for c in status.get("conditions") or ())
        at = max(changes, default=0.0)
        events.append(RatedEvent(phase, at, FAILED, f"the pod is {phase}"))  # for example, evicted
    yield from sorted(events, key=lambda event: event.at)


def _container(status: Mapping[str, Any], mttf: float) -> Iterator[RatedEvent]:
    name, restarts = status.get("name") or "", int(status.get("restartCount") or 0)
    last, now = status.get("lastState") or {}, status.get("state") or {}
    if ended := last.get("terminated"):
        yield _end(f"{name}/{restarts - 1}", ended, mttf)
    if ended := now.get("terminated"):
        yield _end(f"{name}/{restarts}", ended, mttf)
    if running := now.get("running"):
        at = seconds(running.get("startedAt"))
        # A restarted container has failed before: running is not yet a success.
        if not restarts:
            yield RatedEvent(f"{name}/started", at, RUNNING, f"container {name} runs")


def _end(key: str, ended: Mapping[str, Any], mttf: float) -> RatedEvent:
    name = key.partition("/")[0]
    begun, at = seconds(ended.get("startedAt")), seconds(ended.get("finishedAt"))
    if ended.get("exitCode") == 0:
        return RatedEvent(key, at, RUNNING, f"container {name} completed")
    lasted = begun > 0.0 and at - begun > mttf
    return RatedEvent(
        key,
        at,
        LASTED if lasted else FAILED,
        f"container {name} failed after {max(at - begun, 0.0):.0f} s",
    )
