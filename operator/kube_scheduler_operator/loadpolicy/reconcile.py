"""Reconciles all LoadPolicies: the oldest is used, the others are rejected.

An error in one of them, including a defect of the operator, does not stop the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..base import names
from ..base.objects import age
from ..kube.resource import CONFIG_MAPS, LOAD_POLICIES, ObjectRef
from ..model.plan import Action, soonest
from ..model.snapshot import Snapshot
from ..status.conditions import Condition
from ..status.object_status import ObjectPlan, defect, objects_condition
from .cleanup import clean_up
from .writes import policy_writes


@dataclass(frozen=True, slots=True)
class LoadPolicies:
    """The result for all LoadPolicies."""

    # the write set of each object
    write_sets: Mapping[ObjectRef, tuple[Action, ...]] = field(default_factory=dict)
    # conditions of KubeScheduler: whether any LoadPolicy is Degraded
    conditions: tuple[Condition, ...] = ()
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
        if "deletionTimestamp" not in obj["metadata"]
    ]
    planned: dict[str, ObjectPlan] = {}
    for obj in alive:
        name = obj["metadata"]["name"]
        try:
            planned[name] = policy_writes(snapshot, obj, alive[0]["metadata"]["name"])
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
    """The ConfigMap that records annotations on nodes; the cleanup is its write set."""
    return CONFIG_MAPS.named(names.LOAD_STATE, snapshot.platform.target_namespace)


def _condition(degraded: Mapping[str, str]) -> Condition:
    return objects_condition(names.LOAD_POLICIES_DEGRADED, "LoadPolicyDegraded", degraded)
