"""How a pod fares, as rewards: 1 if it runs, 0 if it fails, ½ if it failed after a long time.

As in kubeRL, but once for each thing that happens, not once for each event of the API, and with the
whole time between two failures, of which the original looks at the seconds of the minute only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...policies.pods import seconds

RUNNING: Final = 1.0
LASTED: Final = 0.5
FAILED: Final = 0.0

MTTF: Final = 600.0
"""Seconds after which a failure is no longer held against the node."""


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that is rewarded.

    Attributes:
        key: tells it from all others of the pod.
        at: when, seconds since 1970; 0 if nobody says.
        reward: 0..1.
        what: for the log.
    """

    key: str
    at: float
    reward: float
    what: str


def happenings(pod: Mapping[str, Any], mttf: float = MTTF) -> Iterator[Happening]:
    """What can be seen of a pod's life in its status, in order.

    Args:
        pod: the API's JSON.
        mttf: seconds that a container must have run for its failure to count half.
    """
    status = pod.get("status") or {}
    found = [
        each
        for container in status.get("containerStatuses") or ()
        for each in _container(container, mttf)
    ]
    phase = status.get("phase")
    if phase in ("Failed", "Unknown") and not any(each.reward < RUNNING for each in found):
        changes = (seconds(c.get("lastTransitionTime")) for c in status.get("conditions") or ())
        at = max(changes, default=0.0)
        found.append(Happening(phase, at, FAILED, f"the pod is {phase}"))  # evicted, say
    yield from sorted(found, key=lambda each: each.at)


def _container(status: Mapping[str, Any], mttf: float) -> Iterator[Happening]:
    name, restarts = status.get("name") or "", int(status.get("restartCount") or 0)
    last, now = status.get("lastState") or {}, status.get("state") or {}
    if ended := last.get("terminated"):
        yield _end(f"{name}/{restarts - 1}", ended, mttf)
    if ended := now.get("terminated"):
        yield _end(f"{name}/{restarts}", ended, mttf)
    if running := now.get("running"):
        at = seconds(running.get("startedAt"))
        # A container that starts again has failed before: that it runs proves nothing yet.
        if not restarts:
            yield Happening(f"{name}/started", at, RUNNING, f"container {name} runs")


def _end(key: str, ended: Mapping[str, Any], mttf: float) -> Happening:
    name = key.partition("/")[0]
    begun, at = seconds(ended.get("startedAt")), seconds(ended.get("finishedAt"))
    if ended.get("exitCode") == 0:
        return Happening(key, at, RUNNING, f"container {name} has done its work")
    lasted = begun > 0.0 and at - begun > mttf
    return Happening(
        key,
        at,
        LASTED if lasted else FAILED,
        f"container {name} failed after {max(at - begun, 0.0):.0f} s",
    )
