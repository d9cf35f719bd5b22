"""The whole operator on one page: one snapshot in, one plan out.

A reconcile runs the steps below in order, the order in which a configuration travels. Each step is
a pure function from the snapshot and an immutable draft to the next draft; it neither reads a clock
nor calls the API, so one snapshot always gives one plan. A step that fails becomes a condition of
its own, and the later steps work with what is known: an invalid configuration, or a defect, stops
no rollout that has begun and touches no running scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from ..base import names
from ..base.defects import DEFECT, contained
from ..base.findings import Finding
from ..model.limits import bounded_snapshot
from ..model.plan import Plan, soonest
from ..model.snapshot import Snapshot
from . import steps
from .draft import Draft, MissingResultError, result_of

Step = Callable[[Snapshot, Draft], Draft]

EVERYWHERE: Final[tuple[Step, ...]] = (
    steps.record_platform,
    steps.find_image,
    steps.reconcile_secondary_schedulers,
    steps.reconcile_load_policies,
    steps.diagnose,
)
"""What does not depend on the state of KubeScheduler."""

STEPS: Final[Mapping[str, tuple[Step, ...]]] = {
    "Managed": (
        *EVERYWHERE,
        steps.adopt,  # settings of the schedulers from before the operator
        steps.decide,  # the effective configuration: effective/control_plane/scheduler.py
        steps.run_agents,  # extenders that the operator runs on control-plane nodes
        steps.write_observed_config,  # ends the reconcile if spec.observedConfig is out of date
        steps.fill_revision,  # with configuration, Pod and credentials
        steps.check_placements,  # OperatorSettings: an edit can wait for a simulation, or be held
        steps.revise,  # target ConfigMaps, then a numbered revision
        steps.roll_out,  # one node at a time
        steps.report,  # conditions, statuses, ClusterOperator
    ),
    "Removed": (*EVERYWHERE, steps.remove),
    "Unmanaged": (steps.report_unmanaged,),
    "": (*EVERYWHERE, steps.report_missing),
}
"""The steps by KubeScheduler's `spec.managementState`; "" if there is no KubeScheduler."""


WITHOUT_STATIC_PODS: Final[Mapping[str, tuple[Step, ...]]] = {
    "Managed": (
        steps.record_platform,
        steps.find_image,
        steps.decide_managed,  # the effective configuration: effective/control_plane/scheduler.py
        steps.request_scheduler,  # a SecondaryScheduler has it
        steps.reconcile_attached_schedulers,  # with the SchedulerProfiles of the control plane
        steps.reconcile_load_policies,
        steps.diagnose,
        steps.report_schedulers,  # conditions, statuses, ClusterOperator
    ),
    "Removed": (*EVERYWHERE, steps.remove_managed),
    "Unmanaged": (steps.report_unmanaged,),
    "": (*EVERYWHERE, steps.report_missing),
}
"""The same where the provider runs the control plane's scheduler."""

FAILURES: Final[Mapping[Step, tuple[str, bool]]] = {
    steps.record_platform: (names.CONFIG_OBSERVATION_DEGRADED, False),
    steps.find_image: (names.TARGET_CONFIG_DEGRADED, True),
    steps.reconcile_secondary_schedulers: (names.SECONDARY_DEGRADED, False),
    steps.reconcile_load_policies: (names.LOAD_POLICIES_DEGRADED, False),
    steps.diagnose: (names.CONFIG_OBSERVATION_DEGRADED, False),
    steps.adopt: (names.ADOPTION_DEGRADED, True),
    steps.decide: (names.TARGET_CONFIG_DEGRADED, True),
    steps.decide_managed: (names.TARGET_CONFIG_DEGRADED, True),
    steps.request_scheduler: (names.TARGET_CONFIG_DEGRADED, False),
    steps.reconcile_attached_schedulers: (names.SECONDARY_DEGRADED, False),
    steps.run_agents: (names.SCHEDULER_EXTENDERS_DEGRADED, False),
    steps.write_observed_config: (names.CONFIG_OBSERVATION_DEGRADED, False),
    steps.fill_revision: (names.REVISION_DEGRADED, False),
    steps.check_placements: (names.REVISION_DEGRADED, False),
    steps.revise: (names.REVISION_DEGRADED, False),
    steps.roll_out: (names.NODE_INSTALLER_DEGRADED, False),
    steps.remove: (names.NODE_INSTALLER_DEGRADED, False),
    steps.report: (names.INSTALLER_DEGRADED, False),
}
"""The condition that reports an unexpected error in a step, and whether it blocks a revision."""


def reconcile(snapshot: Snapshot) -> Plan:
    """The plan for the cluster that `snapshot` shows."""
    snapshot = bounded_snapshot(snapshot)
    draft = Draft()
    chosen = STEPS if snapshot.platform.owns_static_pods else WITHOUT_STATIC_PODS
    for step in chosen[_management_state(snapshot)]:
        draft = _contained(step, snapshot, draft)
        if draft.plan is not None:
            break
    if draft.plan is None:
        draft = steps.report_failures(snapshot, draft)
    plan, secondary, loads = result_of(draft.plan), draft.secondary, draft.loads
    return replace(
        plan,
        write_sets={
            **draft.record,  # first: what schedulers follow is on record before they do
            **secondary.write_sets,
            **loads.write_sets,
            **plan.write_sets,
        },
        pods_without_scheduler=draft.pods_without_scheduler,
        served=draft.served,
        failures=tuple(finding.message for finding in draft.failures),
        requeue_after=soonest(plan.requeue_after, secondary.requeue_after, loads.requeue_after),
    )


def _contained(step: Step, snapshot: Snapshot, draft: Draft) -> Draft:
    """The next draft; an unexpected error in the step becomes its condition."""
    try:
        return step(snapshot, draft)
    except MissingResultError:
        if not draft.failures:
            raise
        return draft  # the step that it depends on has failed
    except Exception as error:
        name = step.__name__.replace("_", " ")
        condition, blocking = FAILURES.get(step, (names.INSTALLER_DEGRADED, False))
        message = (
            f'step "{name}" failed: {contained(name, "", error)}; report this with the operator\'s '
            "log (running schedulers are not changed by it)"
        )
        failure = Finding(condition, DEFECT, "", message, blocking=blocking)
        return replace(
            draft, failures=(*draft.failures, failure), findings=(*draft.findings, failure)
        )


def _management_state(snapshot: Snapshot) -> str:
    state = str(snapshot.spec.get("managementState") or "")
    if snapshot.kubescheduler is None:
        return ""
    return state if state in ("Removed", "Unmanaged") else "Managed"
