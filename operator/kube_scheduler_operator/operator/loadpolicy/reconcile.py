"""Reconciles all LoadPolicies: the oldest is used, the others are rejected.

An error in one of them, including a defect of the operator, does not stop the others.

LoadPolicies have no finalizer: deletion succeeds at once, also while no operator runs, and the
garbage collector deletes owned objects. A ConfigMap without an owner records which annotations
nodes may have; an operator that finds it without a LoadPolicy runs a Job until that completes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ...base import names
from ...base.defects import DEFECT
from ...base.objects import Object, age, is_being_deleted, label, mapping
from ...base.times import timestamp
from ...kube.resource import CONFIG_MAPS, DAEMON_SETS, JOBS, LOAD_POLICIES, ObjectRef
from ...scheduling.load.policy import FAMILIES, FILE
from ...scheduling.load.reported_state import ReportedState
from ..model.apply import apply, keep
from ..model.plan import Action, Create, Delete, Event, soonest
from ..model.snapshot import Snapshot
from ..model.workloads import digest, keep_workload
from ..status.conditions import Condition, is_true
from ..status.object_status import ObjectPlan, defect, objects_condition, with_status
from .created_objects import cleanup_job, config_map, state_config_map, workloads
from .request import EffectiveRequest, LoadPolicyRequest, effective_request
from .status import StatusInput, report

JOB_TIMEOUT: Final = 600.0
"""Seconds for the Job; thousands of nodes take about a minute."""


_UNKNOWN: Final = Condition(
    names.AVAILABLE, "Unknown", DEFECT, "not observed, because of the error in Degraded"
)


@dataclass(frozen=True, slots=True)
class LoadPolicies:
    write_sets: Mapping[ObjectRef, tuple[Action, ...]] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()  # of KubeScheduler: whether any LoadPolicy is Degraded
    # seconds until the next reconcile; None if only a change of objects needs one
    requeue_after: float | None = None


def policy_in_use(snapshot: Snapshot) -> Object | None:
    """The oldest LoadPolicy; None without one."""
    return next(iter(_alive(snapshot)), None)


def load_policies(snapshot: Snapshot, held: frozenset[str] = frozenset()) -> LoadPolicies:
    """Reconcile all LoadPolicies; does nothing if the API does not serve the kind.

    `held` has the names of those whose edit waits.
    """
    if snapshot.loads.policies is None:
        # Not the same as no LoadPolicy: a restarted API server may not serve the kind at first.
        return LoadPolicies(conditions=(_condition({}),))
    alive = _alive(snapshot)
    planned: dict[str, ObjectPlan] = {}
    for obj in alive:
        name = obj["metadata"]["name"]
        namespace = snapshot.platform.target_namespace
        try:
            effective = effective_request(obj, snapshot.loads.secrets, namespace, held=name in held)
            planned[name] = _policy_plan(snapshot, obj, effective, alive[0]["metadata"]["name"])
        except Exception as error:
            planned[name] = defect(snapshot, LOAD_POLICIES, obj, error, further=(_UNKNOWN,))
    cleanup = _cleaned(snapshot, in_use=bool(alive))
    writes = {LOAD_POLICIES.named(name): plan.actions for name, plan in planned.items()}
    degraded = {f"{name}: ": plan.degraded for name, plan in planned.items()}
    waits = [*(plan.requeue_after for plan in planned.values()), cleanup.requeue_after]
    return LoadPolicies(
        {
            owner: actions
            for owner, actions in {**writes, _state_ref(snapshot): cleanup.actions}.items()
            if actions
        },
        (_condition({**degraded, "": cleanup.degraded}),),
        soonest(*waits),
    )


def _alive(snapshot: Snapshot) -> list[Object]:
    policies = (snapshot.loads.policies or {}).values()
    return [obj for obj in sorted(policies, key=age) if not is_being_deleted(obj)]


def _cleaned(snapshot: Snapshot, *, in_use: bool) -> ObjectPlan:
    cleanup = _clean_up(snapshot, in_use=in_use)
    trouble = snapshot.write_errors.get(_state_ref(snapshot))
    if not trouble or cleanup.degraded:
        return cleanup
    return replace(cleanup, degraded=trouble)


def _state_ref(snapshot: Snapshot) -> ObjectRef:
    """Name the ConfigMap that records annotations on nodes; the cleanup is its write set."""
    return CONFIG_MAPS.named(names.LOAD_STATE, snapshot.platform.target_namespace)


def _condition(degraded: Mapping[str, str]) -> Condition:
    return objects_condition(names.LOAD_POLICIES_DEGRADED, "LoadPolicyDegraded", degraded)


# --- one LoadPolicy ---------------------------------------------------------------------------


def _policy_plan(
    snapshot: Snapshot, obj: Object, effective: EffectiveRequest, first: str
) -> ObjectPlan:
    """Reconcile one LoadPolicy; `first` is the name of the oldest one, the only one in use."""
    if obj["metadata"]["name"] != first:
        status = report(snapshot, StatusInput(obj, effective, another=first))
        return with_status(snapshot, LOAD_POLICIES, obj, status, ())
    work: list[Action] = []
    current = ""
    if effective.request is not None:
        written = _written_families(_existing(snapshot, CONFIG_MAPS).get(names.LOAD_STATE))
        families = effective.request.policy.families
        remove = [family for family in written if family not in families]
        desired = config_map(snapshot, obj, effective.request, remove)
        current = _current_digest(snapshot, desired)
        work += _keep_state(snapshot, effective.request, current)
        work += keep(CONFIG_MAPS, _existing(snapshot, CONFIG_MAPS), desired, ("data",))
        work += _keep_workloads(snapshot, obj, effective.spec)
    status = report(snapshot, StatusInput(obj, effective, current=current))
    return with_status(snapshot, LOAD_POLICIES, obj, status, work)


def _existing(snapshot: Snapshot, resource: Any) -> Mapping[str, Object]:
    return snapshot.loads.objects.get(resource, {})


def _current_digest(snapshot: Snapshot, desired: Mapping[str, Any]) -> str:
    """Return the digest of the policy.json in the cluster if it is the desired one, else empty."""
    existing = _existing(snapshot, CONFIG_MAPS).get(desired["metadata"]["name"]) or {}
    text = mapping(existing.get("data")).get(FILE)
    return digest(text) if text == desired["data"][FILE] else ""


def _keep_state(snapshot: Snapshot, request: LoadPolicyRequest, current: str) -> tuple[Action, ...]:
    """Record annotation families before nodes get them, and drop them after their removal."""
    state = _existing(snapshot, CONFIG_MAPS).get(names.LOAD_STATE)
    last_report = ReportedState.read(state)
    gone = last_report.removed if current and last_report.policy == current else ()
    written = {*_written_families(state), *request.policy.families}
    written -= {*gone} - {*request.policy.families}
    desired = state_config_map(snapshot, [family for family in FAMILIES if family in written])
    # The annotator's report in the same ConfigMap stays.
    desired["data"] = {**mapping((state or {}).get("data")), **desired["data"]}
    return apply(CONFIG_MAPS, _existing(snapshot, CONFIG_MAPS), desired, ("data",))


def _keep_workloads(snapshot: Snapshot, obj: Object, spec: Mapping[str, Any]) -> tuple[Action, ...]:
    actions: list[Action] = []
    desired = workloads(snapshot.platform, obj, spec, snapshot.settings)
    for resource, workload, spec_hash in desired:
        existing = _existing(snapshot, resource).get(workload["metadata"]["name"])
        actions += keep_workload(
            resource,
            existing,
            workload,
            spec_hash,
            what=f"specification {spec_hash}",
            why="the spec of the LoadPolicy or the operator's image changed",
        )
    kept = {workload["metadata"]["name"] for _, workload, _ in desired}
    name = obj["metadata"]["name"]
    for other, daemon_set in sorted(_existing(snapshot, DAEMON_SETS).items()):
        is_ours = label(daemon_set, names.LOAD_LABEL) == name
        if other not in kept and is_ours and not is_being_deleted(daemon_set):
            event = Event("DaemonSetDeleted", f"Deleted DaemonSet/{other}: the source changed")
            actions.append(Delete(DAEMON_SETS, daemon_set, (event,)))
    return tuple(actions)


def _written_families(state: Object | None) -> tuple[str, ...]:
    """Return the annotation families that nodes may have, in the order of FAMILIES."""
    written = str(mapping(mapping(state).get("data")).get(names.LOAD_WRITTEN_KEY) or "").split(",")
    return tuple(family for family in FAMILIES if family in written)


# --- annotations that the last LoadPolicy has left on nodes -------------------------------------


def _clean_up(snapshot: Snapshot, *, in_use: bool) -> ObjectPlan:
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
    written = _written_families(state)
    if not written:
        return ObjectPlan((Delete(CONFIG_MAPS, state),))
    if job is None:
        message = (
            f"Created Job/{names.LOAD_CLEANUP}: no LoadPolicy is left, but nodes have annotations"
        )
        return ObjectPlan(
            (Create(JOBS, cleanup_job(snapshot, written), (_cleanup_event(message),)),)
        )
    if is_true(job, "Complete"):
        event = _cleanup_event("All load annotations were removed from all nodes")
        return ObjectPlan((Delete(CONFIG_MAPS, state, (event,)), Delete(JOBS, job)))
    return _waiting(snapshot, job)


def _waiting(snapshot: Snapshot, job: Object) -> ObjectPlan:
    where = f"Job {job['metadata']['namespace']}/{names.LOAD_CLEANUP}"
    trouble = f"nodes still have annotations of a deleted LoadPolicy: {where}"
    created = timestamp(job["metadata"].get("creationTimestamp"))
    age = (snapshot.now - created).total_seconds() if created is not None else JOB_TIMEOUT
    left = JOB_TIMEOUT - age
    if is_true(job, "Failed"):
        text = f"{trouble} failed; see the logs of its pods"
        # Retry after a delay: the cause may persist.
        again = () if left > 0 else (Delete(JOBS, job),)
        return ObjectPlan(again, text, max(left, 0.0) + 1.0)
    if left > 0:
        return ObjectPlan(requeue_after=left + 1.0)
    return ObjectPlan(
        degraded=f"{trouble} has not finished after {JOB_TIMEOUT:.0f} s; see its pods"
    )


def _cleanup_event(message: str) -> Event:
    return Event("LoadAnnotationsCleanup", message)
