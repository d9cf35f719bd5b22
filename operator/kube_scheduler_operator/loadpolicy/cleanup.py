"""Taking what was written away from nodes when no LoadPolicy is left.

Nothing on LoadPolicies themselves holds them back: who deletes one, also while no operator runs, is
done at once, and what it owns goes. What may be on nodes is remembered in a ConfigMap that nobody
owns; the operator that finds it without a LoadPolicy runs a Job, until that has come to its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ..base import names
from ..base.objects import Object
from ..base.times import timestamp
from ..kube.resource import CONFIG_MAPS, JOBS
from ..model.plan import Action, Create, Delete, Event
from ..model.snapshot import Snapshot
from .load_state import read_written
from .objects import cleanup_job

TOLERANCE: Final = 600.0
"""Seconds that the Job has: thousands of nodes are a matter of a minute."""


@dataclass(frozen=True, slots=True)
class Cleanup:
    """What is to be done about annotations that are left over.

    Attributes:
        actions: writes, in order.
        degraded: why they are still there; empty as long as that is normal.
        requeue_after: seconds until that may change by itself; None: it does not.
    """

    actions: tuple[Action, ...] = ()
    degraded: str = ""
    requeue_after: float | None = None


def clean_up(snapshot: Snapshot, *, in_use: bool) -> Cleanup:
    """What is to be done; nothing, but for an old Job, while there is a LoadPolicy.

    Args:
        snapshot: what was seen.
        in_use: whether there is one, which sees to what it does not write itself.
    """
    objects = snapshot.loads.objects
    state = objects.get(CONFIG_MAPS, {}).get(names.LOAD_STATE)
    job = objects.get(JOBS, {}).get(names.LOAD_CLEANUP)
    if job is not None and "deletionTimestamp" in job["metadata"]:
        return Cleanup(requeue_after=1.0)
    if in_use:
        return Cleanup((Delete(JOBS, job),) if job is not None else ())
    if state is None:
        return Cleanup((Delete(JOBS, job),) if job is not None else ())
    written = read_written(state)
    if not written:
        return Cleanup((Delete(CONFIG_MAPS, state),))
    if job is None:
        message = f"Created Job/{names.LOAD_CLEANUP}: nodes have annotations and no LoadPolicy"
        return Cleanup((Create(JOBS, cleanup_job(snapshot, written), (_event(message),)),))
    if _is(job, "Complete"):
        event = _event("Nothing that was written because of a LoadPolicy is left on any node")
        return Cleanup((Delete(CONFIG_MAPS, state, (event,)), Delete(JOBS, job)))
    return _waiting(snapshot, job)


def _waiting(snapshot: Snapshot, job: Object) -> Cleanup:
    where = f"Job {job['metadata']['namespace']}/{names.LOAD_CLEANUP}"
    trouble = f"annotations of a LoadPolicy that is gone are still on nodes: {where}"
    if _is(job, "Failed"):
        text = f"{trouble} failed; see the logs of its pods"
        begun = timestamp(job["metadata"].get("creationTimestamp"))
        age = (snapshot.now - begun).total_seconds() if begun is not None else TOLERANCE
        # Another one, but not at once: what was wrong may still be.
        again = () if age < TOLERANCE else (Delete(JOBS, job),)
        return Cleanup(again, text, max(TOLERANCE - age, 0.0) + 1.0)
    begun = timestamp(job["metadata"].get("creationTimestamp"))
    left = TOLERANCE - (snapshot.now - begun).total_seconds() if begun is not None else 0.0
    if left > 0:
        return Cleanup(requeue_after=left + 1.0)
    return Cleanup(degraded=f"{trouble} has not come to its end; see its pods")


def _is(job: Object, condition: str) -> bool:
    found: list[dict[str, Any]] = (job.get("status") or {}).get("conditions") or []
    return any(c.get("type") == condition and c.get("status") == "True" for c in found)


def _event(message: str) -> Event:
    return Event("LoadAnnotationsCleanup", message)
