"""The outcome of the content that a Deployment rolls out, from its pods.

A failure is attributed to a content only if its own pods fail while others are healthy. If the
schedulers of the last known good content fail as well, or the API server does not answer, the
cause is elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ...base import names
from ...base.objects import Object, is_being_deleted, label
from ...base.times import timestamp
from ..model.api_outage import accountable_since
from ..model.plan import soonest
from ..model.pod_status import (
    containers,
    crashing,
    ended,
    init_containers,
    is_ready,
    named,
    state,
    waiting,
    words,
)
from ..model.snapshot import Snapshot
from .content import running_hash
from .history import HistoryEntry, age

KILLED: Final = 128
"""Exit codes from here on mean that a signal ended the program; they are not its result."""


@dataclass(frozen=True, slots=True)
class SchedulerPod:
    name: str
    hash: str  # of the content that it runs
    leaving: bool  # whether it is being deleted
    ready: bool
    refused: str  # kube-scheduler's error if it refused flags or configuration
    crashing: str  # the crash-looping containers with their termination messages
    restarts: int  # the highest restart count of its containers
    ended: datetime | None  # when a container last ended
    waiting: str  # what it waits for before it can run; empty if it waits for nothing
    unready_since: datetime | None  # since when kube-scheduler runs without being Ready
    created: datetime | None

    @property
    def serves(self) -> bool:
        """Whether it is Ready, and will not end in a moment."""
        return self.ready and not self.leaving


@dataclass(frozen=True, slots=True)
class ContentOutcome:
    outcome: str = ""  # one of names.OUTCOME_…; empty if there is no new outcome
    message: str = ""  # why it was refused or failed
    trouble: str = ""  # an error that is not attributed to the content, or not yet
    # seconds until the outcome may be known; None if an event will show it
    requeue_after: float | None = None


def read_pod(obj: Object) -> SchedulerPod:
    statuses = containers(obj)
    preflight = named(init_containers(obj), names.PREFLIGHT)
    operand = named(statuses, names.OPERAND)
    running = state(operand, "running")
    return SchedulerPod(
        name=obj["metadata"]["name"],
        hash=label(obj, names.CONFIG_HASH_LABEL),
        leaving=is_being_deleted(obj),
        ready=is_ready(obj),
        refused=_refusal(preflight),
        crashing=crashing(obj),
        restarts=max((int(c.get("restartCount") or 0) for c in statuses), default=0),
        ended=max(
            filter(None, (timestamp(ended(c).get("finishedAt")) for c in statuses)), default=None
        ),
        waiting=waiting(obj, [preflight, *statuses]),
        unready_since=None if operand.get("ready") else timestamp(running.get("startedAt")),
        created=timestamp(obj["metadata"].get("creationTimestamp")),
    )


def _refusal(preflight: Mapping[str, Any]) -> str:
    """Return kube-scheduler's error if it refused the configuration; empty otherwise."""
    code = int(ended(preflight).get("exitCode") or 0)
    return words(preflight) if 0 < code < KILLED else ""


def content_outcome(
    snapshot: Snapshot,
    deployment: Object | None,
    pods: Sequence[SchedulerPod],
    entry: HistoryEntry | None,
) -> ContentOutcome:
    """Judge the content that `deployment` rolls out; `entry` is its history entry."""
    content_hash = running_hash(deployment)
    if deployment is None or not content_hash:
        return ContentOutcome()
    proven = entry is not None and entry.outcome == names.OUTCOME_INSTALLED
    if complete(deployment):
        return ContentOutcome() if proven else ContentOutcome(names.OUTCOME_INSTALLED)
    own = [pod for pod in pods if pod.hash == content_hash and not pod.leaving]
    if entry is not None and entry.bad:
        return ContentOutcome(trouble=_trouble(own))
    refusal = next((pod.refused for pod in own if pod.refused and not pod.ready), "")
    if refusal:
        return ContentOutcome(names.OUTCOME_REFUSED, refusal)
    probation = snapshot.settings.rollout.probation
    if entry is not None and proven and age(entry, snapshot.now) > probation:
        return ContentOutcome(trouble=_trouble(own))
    others = [pod for pod in pods if pod.hash != content_hash and not pod.leaving]
    if others and not any(pod.ready for pod in others):
        return ContentOutcome(trouble=_trouble(own))
    since = accountable_since(snapshot)
    waits = [] if proven else [(pod, _left(snapshot, pod, since)) for pod in own]
    failure = _crash(snapshot, own, since) or _lateness(snapshot, waits)
    if failure:
        return ContentOutcome(names.OUTCOME_FAILED, failure)
    return ContentOutcome(
        trouble=_trouble(own), requeue_after=soonest(*(left for _, left in waits))
    )


def _crash(snapshot: Snapshot, pods: Sequence[SchedulerPod], since: datetime | None) -> str:
    """Name a pod that crashes again and again, and why; empty without one."""
    for pod in pods:
        accountable = since is not None and pod.ended is not None and pod.ended > since
        often = pod.restarts >= snapshot.settings.rollout.crash_restarts
        if pod.crashing and often and accountable:
            return f"pod {pod.name} crashes: {pod.crashing}"
    return ""


def _lateness(snapshot: Snapshot, waits: Sequence[tuple[SchedulerPod, float | None]]) -> str:
    """Name a pod that has not become Ready in time; empty without one."""
    for pod, left in waits:
        if left is not None and left <= 0:
            timeout = snapshot.settings.rollout.health_timeout
            return f"pod {pod.name} runs but was not Ready within {timeout:g} s; see its log"
    return ""


def complete(deployment: Object) -> bool:
    """Return whether all replicas are up to date and have been Ready for long enough."""
    status = deployment.get("status") or {}
    replicas = int((deployment.get("spec") or {}).get("replicas", 1))
    counts = [
        int(status.get(key) or 0) for key in ("updatedReplicas", "availableReplicas", "replicas")
    ]
    seen = int(status.get("observedGeneration") or 0)
    return seen >= int(deployment["metadata"].get("generation") or 0) and counts == [replicas] * 3


def _left(snapshot: Snapshot, pod: SchedulerPod, since: datetime | None) -> float | None:
    """Return the seconds left for a scheduler to become Ready; None if they have not started."""
    if pod.ready or pod.unready_since is None or since is None:
        return None
    began = max(pod.unready_since, since)
    return snapshot.settings.rollout.health_timeout - (snapshot.now - began).total_seconds()


def _trouble(pods: Sequence[SchedulerPod]) -> str:
    """Explain why the pods do not run, each reason once."""
    reasons = {pod.refused or pod.crashing or pod.waiting for pod in pods if not pod.ready}
    return "; ".join(sorted(reasons - {""}))
