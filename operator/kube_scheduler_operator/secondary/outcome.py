"""What came of the content that a Deployment rolls out: from its pods, and without a guess.

A configuration is blamed only for what its own pods do while others are well: when the schedulers
of the last good one fail as well, or the API server is away, the surroundings are to blame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ..base import names
from ..base.objects import Object
from ..model.api_outage import accountable_since
from ..model.snapshot import Snapshot
from .history import Entry, age
from .objects import running_hash
from .pods import Pod


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known of the content that runs.

    Attributes:
        outcome: one of names.OUTCOME_…; empty: nothing new.
        message: why it is refused or failed.
        trouble: what is wrong without being the content's fault, or is not known to be yet.
        requeue_after: seconds until it may be known; None: something will happen.
    """

    outcome: str = ""
    message: str = ""
    trouble: str = ""
    requeue_after: float | None = None


def judge(
    snapshot: Snapshot, deployment: Object | None, pods: Sequence[Pod], entry: Entry | None
) -> Verdict:
    """What came of the content that `deployment` has.

    Args:
        snapshot: the clock, the patience, and whether the API server was away.
        deployment: as read; None if there is none.
        pods: all of this scheduler.
        entry: what is remembered of that content.
    """
    content_hash = running_hash(deployment)
    if deployment is None or not content_hash:
        return Verdict()
    if complete(deployment):
        if entry is None or entry.outcome != names.OUTCOME_INSTALLED:
            return Verdict(names.OUTCOME_INSTALLED)
        return Verdict()
    own = [pod for pod in pods if pod.hash == content_hash and not pod.leaving]
    if entry is not None and entry.bad:
        return Verdict(trouble=_trouble(own))
    for pod in own:
        if pod.refused and not pod.ready:
            return Verdict(names.OUTCOME_REFUSED, pod.refused)
    rule = snapshot.settings.rollout
    proven = entry is not None and entry.outcome == names.OUTCOME_INSTALLED
    if entry is not None and proven and age(entry, snapshot.now) > rule.probation:
        return Verdict(trouble=_trouble(own))
    others = [pod for pod in pods if pod.hash != content_hash and not pod.leaving]
    if others and not any(pod.ready for pod in others):
        return Verdict(trouble=_trouble(own))
    since = accountable_since(snapshot)
    for pod in own:
        accountable = since is not None and pod.ended is not None and pod.ended > since
        if pod.crashing and pod.restarts >= rule.crash_restarts and accountable:
            return Verdict(names.OUTCOME_FAILED, f"pod {pod.name} crashes: {pod.crashing}")
    waits = [] if proven else [(pod, _left(snapshot, pod, since)) for pod in own]
    for pod, left in waits:
        if left is not None and left <= 0:
            message = (
                f"pod {pod.name} runs and was not Ready within {rule.health_timeout:g} s; its log "
                "says more"
            )
            return Verdict(names.OUTCOME_FAILED, message)
    soonest = min((left for _, left in waits if left is not None), default=None)
    return Verdict(trouble=_trouble(own), requeue_after=soonest)


def complete(deployment: Object) -> bool:
    """Whether all replicas run what the Deployment says, and have been well for long enough."""
    status = deployment.get("status") or {}
    replicas = int((deployment.get("spec") or {}).get("replicas", 1))
    counts = [
        int(status.get(key) or 0) for key in ("updatedReplicas", "availableReplicas", "replicas")
    ]
    seen = int(status.get("observedGeneration") or 0)
    return seen >= int(deployment["metadata"].get("generation") or 0) and counts == [replicas] * 3


def _left(snapshot: Snapshot, pod: Pod, since: datetime | None) -> float | None:
    """Seconds that a scheduler has left to become Ready; None: its time does not run."""
    if pod.ready or pod.unready_since is None or since is None:
        return None
    began = max(pod.unready_since, since)
    return snapshot.settings.rollout.health_timeout - (snapshot.now - began).total_seconds()


def _trouble(pods: Sequence[Pod]) -> str:
    """What the pods wait for or die of, one of each kind."""
    found = [pod.refused or pod.crashing or pod.waiting for pod in pods if not pod.ready]
    return "; ".join(dict.fromkeys(text for text in sorted(found) if text))
