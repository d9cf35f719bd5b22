"""The whole operator on one page: one snapshot in, one plan out.

A reconcile runs the steps below in order, the order in which a configuration travels. Each step is
a pure function from the snapshot and an immutable draft to the next draft; it neither reads a clock
nor calls the API, so one snapshot always gives one plan. A step that fails becomes a condition of
its own, and the later steps work with what is known: an invalid configuration stops no rollout that
has begun and touches no running scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from ..model.plan import Plan, soonest
from ..model.snapshot import Snapshot
from . import steps
from .draft import Draft, result_of

Step = Callable[[Snapshot, Draft], Draft]

EVERYWHERE: Final[tuple[Step, ...]] = (
    steps.reconcile_secondary_schedulers,
    steps.reconcile_load_policies,
    steps.diagnose,
)
"""What does not depend on the state of KubeScheduler."""

STEPS: Final[Mapping[str, tuple[Step, ...]]] = {
    "Managed": (
        *EVERYWHERE,
        steps.observe,  # default configuration, cluster settings, overrides, flags
        steps.validate_extenders,  # SchedulerExtenders of the control plane
        steps.validate_profiles,  # SchedulerProfiles of the control plane
        steps.compose,  # the effective configuration, validated
        steps.run_agents,  # extenders that the operator runs on control-plane nodes
        steps.write_observed_config,  # ends the reconcile if spec.observedConfig is out of date
        steps.revise,  # target ConfigMaps, then a numbered revision
        steps.roll_out,  # one node at a time
        steps.report,  # conditions, statuses, ClusterOperator
    ),
    "Removed": (*EVERYWHERE, steps.remove),
    "Unmanaged": (steps.report_unmanaged,),
    "": (*EVERYWHERE, steps.report_missing),
}
"""The steps by KubeScheduler's `spec.managementState`; "" if there is no KubeScheduler."""


def reconcile(snapshot: Snapshot) -> Plan:
    """The plan for the cluster that `snapshot` shows."""
    draft = Draft()
    for step in STEPS[_management_state(snapshot)]:
        draft = step(snapshot, draft)
        if draft.plan is not None:
            break
    plan, secondary, loads = result_of(draft.plan), draft.secondary, draft.loads
    return replace(
        plan,
        write_sets={**secondary.write_sets, **loads.write_sets, **plan.write_sets},
        pods_without_scheduler=draft.pods_without_scheduler,
        requeue_after=soonest(plan.requeue_after, secondary.requeue_after, loads.requeue_after),
    )


def _management_state(snapshot: Snapshot) -> str:
    state = str(snapshot.spec.get("managementState") or "")
    if snapshot.kubescheduler is None:
        return ""
    return state if state in ("Removed", "Unmanaged") else "Managed"
