"""Reconciles all LoadPolicies: the oldest is used, the others are rejected.

An error in one of them, including a defect of the operator, does not stop the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...base import names
from ...base.objects import Object, age, is_being_deleted, label, mapping
from ...kube.resource import CONFIG_MAPS, DAEMON_SETS, LOAD_POLICIES, ObjectRef
from ...scheduling.load.policy import FAMILIES, FILE
from ..model.apply import apply, keep
from ..model.plan import Action, Delete, Event, soonest
from ..model.snapshot import Snapshot
from ..model.workloads import digest, keep_workload
from ..status.conditions import Condition
from ..status.object_status import ObjectPlan, defect, objects_condition, with_status
from .cleanup import clean_up
from .created_objects import config_map, state_config_map, workloads
from .load_state import read_report, read_written
from .request import LoadPolicyRequest, effective_request
from .status import StatusInput, report


@dataclass(frozen=True, slots=True)
class LoadPolicies:
    write_sets: Mapping[ObjectRef, tuple[Action, ...]] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()  # of KubeScheduler: whether any LoadPolicy is Degraded
    # seconds until the next reconcile; None if only a change of objects needs one
    requeue_after: float | None = None


def load_policies(snapshot: Snapshot) -> LoadPolicies:
    """Reconcile all LoadPolicies; does nothing if the API does not serve the kind."""
    if snapshot.loads.policies is None:
        # Not the same as no LoadPolicy: a restarted API server may not serve the kind at first.
        return LoadPolicies(conditions=(_condition({}),))
    alive = [
        obj
        for obj in sorted(snapshot.loads.policies.values(), key=age)
        if not is_being_deleted(obj)
    ]
    planned: dict[str, ObjectPlan] = {}
    for obj in alive:
        name = obj["metadata"]["name"]
        try:
            planned[name] = _policy_plan(snapshot, obj, alive[0]["metadata"]["name"])
        except Exception as error:
            planned[name] = defect(snapshot, LOAD_POLICIES, obj, error)
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


def _cleaned(snapshot: Snapshot, *, in_use: bool) -> ObjectPlan:
    cleanup = clean_up(snapshot, in_use=in_use)
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


def _policy_plan(snapshot: Snapshot, obj: Object, first: str) -> ObjectPlan:
    """Reconcile one LoadPolicy; `first` is the name of the oldest one, the only one in use."""
    effective = effective_request(obj, snapshot.loads.secrets, snapshot.platform.target_namespace)
    if obj["metadata"]["name"] != first:
        status = report(snapshot, StatusInput(obj, effective, another=first))
        return with_status(snapshot, LOAD_POLICIES, obj, status, ())
    work: list[Action] = []
    if effective.request is not None:
        written = read_written(_existing(snapshot, CONFIG_MAPS).get(names.LOAD_STATE))
        families = effective.request.policy.families
        remove = [family for family in written if family not in families]
        desired = config_map(snapshot, obj, effective.request, remove)
        work += _keep_state(snapshot, effective.request, _current_digest(snapshot, desired))
        work += keep(CONFIG_MAPS, _existing(snapshot, CONFIG_MAPS), desired, ("data",))
        work += _keep_workloads(snapshot, obj, effective.spec)
    status = report(snapshot, StatusInput(obj, effective))
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
    last_report = read_report(state)
    gone = last_report.removed if current and last_report.policy == current else ()
    written = {*read_written(state), *request.policy.families}
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
