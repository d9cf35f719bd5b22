"""The whole operator on one page: one snapshot in, one plan out.

A reconcile runs the steps below, in the order from a configuration to its rollout. Each step is a
pure function of the snapshot and the results that it depends on; it neither reads a clock nor calls
the API, so one snapshot always gives one plan. An unexpected error in a step becomes a condition,
and the others continue without its result: an invalid configuration, or a defect, stops no rollout
that has begun and affects no running scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from ..controlplane.adoption.adopted import NOTHING
from ..extenders.agents import ControlPlaneAgents
from ..loadpolicy.reconcile import LoadPolicies
from ..model.bounded_snapshot import bounded_snapshot
from ..model.plan import Plan, soonest
from ..model.snapshot import Snapshot
from ..secondary.reconcile import SecondarySchedulers
from . import managed_steps, steps
from .containment import Containment
from .stages import Diagnoses, Everywhere, PreparedRevision, Reconciled, Requested

Reconcile = Callable[[Snapshot, Containment], Reconciled]


def reconcile(snapshot: Snapshot) -> Plan:
    snapshot, attempt = bounded_snapshot(snapshot), Containment()
    chosen = STATIC_PODS if snapshot.platform.owns_static_pods else WITHOUT_STATIC_PODS
    reconciled = chosen[_management_state(snapshot)](snapshot, attempt)
    everywhere = reconciled.everywhere
    plan = reconciled.plan or steps.report_failures(snapshot, attempt.failures)
    secondary, loads = everywhere.secondary, everywhere.loads
    return replace(
        plan,
        write_sets={
            **everywhere.record,  # first: a version is recorded before schedulers follow it
            **secondary.write_sets,
            **loads.write_sets,
            **plan.write_sets,
        },
        pods_without_scheduler=everywhere.diagnoses.pods,
        served=everywhere.diagnoses.served,
        failures=tuple(finding.message for finding in attempt.failures),
        requeue_after=soonest(plan.requeue_after, secondary.requeue_after, loads.requeue_after),
    )


def _everywhere(snapshot: Snapshot, attempt: Containment) -> Everywhere:
    """Run the steps that do not depend on the state of KubeScheduler."""
    record = attempt(steps.record_platform, snapshot)
    image = attempt(steps.find_image, snapshot) or ""
    secondary = attempt(steps.reconcile_secondary_schedulers, snapshot, image)
    loads = attempt(steps.reconcile_load_policies, snapshot) or LoadPolicies()
    # Without the SecondarySchedulers, the served schedulerNames are unknown.
    diagnoses = attempt(steps.diagnose, snapshot, secondary) if secondary is not None else None
    return Everywhere(
        record or {}, image, secondary or SecondarySchedulers(), loads, diagnoses or Diagnoses()
    )


def _manage_static_pods(snapshot: Snapshot, attempt: Containment) -> Reconciled:
    """Compose, cut a revision, roll it out node by node, and report."""
    everywhere = _everywhere(snapshot, attempt)
    # Settings of the schedulers that predate the operator.
    adopted = attempt(steps.adopt, snapshot) or NOTHING
    # The effective configuration: config/effective/control_plane/scheduler.py.
    decided = attempt(steps.decide, snapshot, everywhere, adopted)
    prepared = PreparedRevision(adopted, decided)
    if decided is not None:
        # Extenders that the operator runs on control-plane nodes.
        agents = attempt(steps.run_agents, snapshot, decided) or ControlPlaneAgents()
        # Ends the reconcile if spec.observedConfig is out of date.
        written = attempt(steps.write_observed_config, snapshot, everywhere, decided, agents) or ()
        if isinstance(written, Plan):
            return Reconciled(everywhere, written)
        prepared = PreparedRevision(adopted, decided, agents, written)
    prepared = replace(prepared, failures=attempt.failures)
    # A revision has configuration, Pod and credentials.
    filled = attempt(steps.fill_revision, snapshot, prepared)
    if filled is None:
        return Reconciled(everywhere, None)
    # OperatorSettings: an edit may wait for a simulation, or be held.
    check = attempt(steps.check_placements, snapshot, prepared.settings, filled)
    # Target ConfigMaps, then a numbered revision.
    revised = attempt(steps.revise, snapshot, filled, check)
    # One node at a time.
    rolled = attempt(steps.roll_out, snapshot, revised) if revised is not None else None
    if revised is None or rolled is None:
        return Reconciled(everywhere, None)
    # Conditions, statuses, ClusterOperator.
    prepared = replace(prepared, failures=attempt.failures)
    plan = attempt(steps.report, snapshot, everywhere, prepared, revised, rolled)
    return Reconciled(everywhere, plan)


def _manage_without_static_pods(snapshot: Snapshot, attempt: Containment) -> Reconciled:
    """Do the same where the provider runs the control plane's scheduler."""
    record = attempt(steps.record_platform, snapshot)
    image = attempt(steps.find_image, snapshot) or ""
    # The effective configuration: config/effective/control_plane/scheduler.py.
    requested = attempt(managed_steps.decide_managed, snapshot, image)
    # A SecondaryScheduler has it.
    if requested is not None:
        requested = attempt(managed_steps.request_scheduler, snapshot, requested) or requested
    requested = requested or Requested()
    # It also has the SchedulerProfiles of the control plane.
    attached = attempt(managed_steps.reconcile_attached_schedulers, snapshot, requested)
    loads = attempt(steps.reconcile_load_policies, snapshot) or LoadPolicies()
    secondary, diagnoses = SecondarySchedulers(), None
    if attached is not None:
        requested, secondary = attached
        diagnoses = attempt(steps.diagnose, snapshot, secondary)
    everywhere = Everywhere(record or {}, image, secondary, loads, diagnoses or Diagnoses())
    # Conditions, statuses, ClusterOperator.
    report = managed_steps.report_schedulers
    plan = attempt(report, snapshot, everywhere, requested, attempt.failures)
    return Reconciled(everywhere, plan)


def _remove_static_pods(snapshot: Snapshot, attempt: Containment) -> Reconciled:
    everywhere = _everywhere(snapshot, attempt)
    return Reconciled(everywhere, attempt(steps.remove, snapshot))


def _remove_without_static_pods(snapshot: Snapshot, attempt: Containment) -> Reconciled:
    everywhere = _everywhere(snapshot, attempt)
    return Reconciled(everywhere, attempt(managed_steps.remove_managed, snapshot))


def _leave_alone(snapshot: Snapshot, attempt: Containment) -> Reconciled:
    return Reconciled(Everywhere(), attempt(steps.report_unmanaged, snapshot))


def _report_missing(snapshot: Snapshot, attempt: Containment) -> Reconciled:
    everywhere = _everywhere(snapshot, attempt)
    return Reconciled(everywhere, attempt(steps.report_missing, snapshot))


STATIC_PODS: Final[Mapping[str, Reconcile]] = {
    "Managed": _manage_static_pods,
    "Removed": _remove_static_pods,
    "Unmanaged": _leave_alone,
    "": _report_missing,
}
"""By KubeScheduler's `spec.managementState`; "" if there is no KubeScheduler."""

WITHOUT_STATIC_PODS: Final[Mapping[str, Reconcile]] = {
    "Managed": _manage_without_static_pods,
    "Removed": _remove_without_static_pods,
    "Unmanaged": _leave_alone,
    "": _report_missing,
}


def _management_state(snapshot: Snapshot) -> str:
    state = str(snapshot.spec.get("managementState") or "")
    if snapshot.kubescheduler is None:
        return ""
    return state if state in ("Removed", "Unmanaged") else "Managed"
