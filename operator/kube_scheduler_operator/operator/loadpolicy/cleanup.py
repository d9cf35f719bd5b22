"""Removes load annotations from nodes after the last LoadPolicy is deleted.

LoadPolicies have no finalizer: deletion succeeds at once, also while no operator runs, and the
garbage collector deletes owned objects. A ConfigMap without an owner records which annotations
nodes may have; an operator that finds it without a LoadPolicy runs a Job until that completes.
"""

from __future__ import annotations

from typing import Final

from ...base import names
from ...base.objects import Object, is_being_deleted
from ...base.times import timestamp
from ...kube.resource import CONFIG_MAPS, JOBS
from ..model.plan import Create, Delete, Event
from ..model.snapshot import Snapshot
from ..status.conditions import condition_in
from ..status.object_status import ObjectPlan
from .created_objects import cleanup_job
from .load_state import read_written

JOB_TIMEOUT: Final = 600.0
"""Seconds for the Job; thousands of nodes take about a minute."""


def clean_up(snapshot: Snapshot, *, in_use: bool) -> ObjectPlan:
    """Remove leftover annotations; while a LoadPolicy exists (`in_use`), only delete an old Job.

    The annotator of a LoadPolicy removes the annotations that it no longer writes.
    """
    objects = snapshot.loads.objects
    state = objects.get(CONFIG_MAPS, {}).get(names.LOAD_STATE)
    job = objects.get(JOBS, {}).get(names.LOAD_CLEANUP)
    if job is not None and is_being_deleted(job):
        return ObjectPlan(requeue_after=1.0)
    if in_use or state is None:
        return ObjectPlan((Delete(JOBS, job),) if job is not None else ())
    written = read_written(state)
    if not written:
        return ObjectPlan((Delete(CONFIG_MAPS, state),))
    if job is None:
        message = (
            f"Created Job/{names.LOAD_CLEANUP}: no LoadPolicy is left, but nodes have annotations"
        )
        return ObjectPlan((Create(JOBS, cleanup_job(snapshot, written), (_event(message),)),))
    if _is(job, "Complete"):
        event = _event("All load annotations were removed from all nodes")
        return ObjectPlan((Delete(CONFIG_MAPS, state, (event,)), Delete(JOBS, job)))
    return _waiting(snapshot, job)


def _waiting(snapshot: Snapshot, job: Object) -> ObjectPlan:
    where = f"Job {job['metadata']['namespace']}/{names.LOAD_CLEANUP}"
    trouble = f"nodes still have annotations of a deleted LoadPolicy: {where}"
    created = timestamp(job["metadata"].get("creationTimestamp"))
    age = (snapshot.now - created).total_seconds() if created is not None else JOB_TIMEOUT
    left = JOB_TIMEOUT - age
    if _is(job, "Failed"):
        text = f"{trouble} failed; see the logs of its pods"
        # Retry after a delay: the cause may persist.
        again = () if left > 0 else (Delete(JOBS, job),)
        return ObjectPlan(again, text, max(left, 0.0) + 1.0)
    if left > 0:
        return ObjectPlan(requeue_after=left + 1.0)
    return ObjectPlan(
        degraded=f"{trouble} has not finished after {JOB_TIMEOUT:.0f} s; see its pods"
    )


def _is(job: Object, condition: str) -> bool:
    return bool(condition_in(job.get("status") or {}, condition).get("status") == "True")


def _event(message: str) -> Event:
    return Event("LoadAnnotationsCleanup", message)
