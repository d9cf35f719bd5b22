"""The whole operator on one page: one snapshot in, one plan out.

A reconcile runs the steps below, in the order from a configuration to its rollout. Each step is a
pure function of the snapshot and the results that it depends on; it neither reads a clock nor calls
the API, so one snapshot always gives one plan. An unexpected error in a step becomes a condition,
and the others continue without its result: an invalid configuration, or a defect, stops no rollout
that has begun and affects no running scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ...base.findings import Finding
from ...base.management import MANAGED, REMOVED, UNMANAGED
from ..controlplane.adoption.adopted import NOTHING, adopted
from ..controlplane.cluster_operator import report_without_kubescheduler
from ..controlplane.operand_image import operand_image
from ..controlplane.rollout.roll_out import roll_out
from ..extenders.agents import ControlPlaneAgents
from ..loadpolicy.reconcile import LoadPolicies
from ..model.plan import PlacementQuestion, Plan, soonest
from ..model.snapshot import Snapshot, bounded_snapshot
from ..secondary.reconcile import SecondarySchedulers, observed_schedulers
from . import managed_steps, steps
from .attached import attached_to_secondaries
from .held_edits import (
    keep_back,
    reconcile_load_policies,
    release,
    release_load_policy,
    run_agents,
)
from .stages import Containment, Diagnoses, Everywhere, PreparedRevision, Reconciled, Requested
from .upgrade_checks import check_managed, check_static_pods

Reconcile = Callable[[Containment], Reconciled]


def reconcile(snapshot: Snapshot) -> Plan:
    snapshot = bounded_snapshot(snapshot)
    attempt = Containment(snapshot)
    chosen = STATIC_PODS if snapshot.platform.owns_static_pods else WITHOUT_STATIC_PODS
    reconciled = chosen[_management_state(snapshot)](attempt)
    everywhere = reconciled.everywhere
    plan = reconciled.plan or _report_failures(attempt)
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
        simulations=_simulations(plan, secondary),
        failures=tuple(finding.message for finding in attempt.failures),
        requeue_after=soonest(plan.requeue_after, secondary.requeue_after, loads.requeue_after),
    )


def _simulations(
    plan: Plan, secondary: SecondarySchedulers
) -> tuple[PlacementQuestion, ...] | None:
    """All simulations to run; None if it is not known whether any is needed."""
    if plan.simulations is None and not secondary.simulations:
        return None
    return (*(plan.simulations or ()), *secondary.simulations)


def _report_failures(attempt: Containment) -> Plan:
    observed = attempt("observe", steps.observed_conditions) or ()
    return steps.report_failures(attempt.snapshot, attempt.failures, observed)


def _everywhere(attempt: Containment) -> Everywhere:
    """Run the steps that do not depend on the state of KubeScheduler."""
    record = attempt("record platform", steps.record_platform)
    image = attempt("find image", operand_image) or ""
    reconcile_all = steps.reconcile_secondary_schedulers
    secondary = attempt("reconcile secondary schedulers", reconcile_all, image)
    loads = attempt("reconcile load policies", reconcile_load_policies) or LoadPolicies()
    # Without the SecondarySchedulers, the served schedulerNames are unknown.
    diagnoses = attempt("diagnose", steps.diagnose, secondary) if secondary is not None else None
    known = secondary or _observe_schedulers(attempt)
    return Everywhere(record or {}, image, known, loads, diagnoses or Diagnoses())


def _observe_schedulers(attempt: Containment) -> SecondarySchedulers:
    """Observe what could not be composed: a scheduler that does not schedule gets no Pods."""
    return attempt("observe secondary schedulers", observed_schedulers) or SecondarySchedulers()


def _manage_static_pods(attempt: Containment) -> Reconciled:
    """Compose, cut a revision, roll it out node by node, and report."""
    everywhere = _everywhere(attempt)
    # Settings of the schedulers that predate the operator.
    kept = attempt("adopt", adopted) or NOTHING
    # The effective configuration: config/effective/control_plane/scheduler.py.
    proposed = attempt("decide", steps.decide, everywhere, kept)
    # Edits of agents need no revision: until they are checked, the versions in use stay.
    edits = attempt("keep edits back", keep_back, proposed) if proposed is not None else None
    prepared = PreparedRevision(kept, None)
    if edits is not None:
        # Extenders that the operator runs on control-plane nodes.
        agents = attempt("run agents", run_agents, edits.decided) or ControlPlaneAgents()
        # Ends the reconcile if spec.observedConfig is out of date.
        write = steps.write_observed_config
        written = attempt("write observed config", write, everywhere, edits.decided, agents) or ()
        if isinstance(written, Plan):
            return Reconciled(everywhere, written)
        prepared = PreparedRevision(kept, edits.decided, edits, agents, written)
        # On request, what a newer version changes; nothing waits for it.
        upgrade = attempt("check upgrade", check_static_pods, everywhere.image, prepared)
        prepared = replace(prepared, upgrade=upgrade or prepared.upgrade)
    prepared = replace(prepared, failures=attempt.failures)
    # A revision has configuration, Pod and credentials.
    filled = attempt("fill revision", steps.fill_revision, prepared)
    if filled is None:
        return Reconciled(everywhere, None)
    # OperatorSettings: an edit may wait for a simulation, or be held.
    check = attempt("check placements", steps.check_placements, prepared, filled)
    if check is not None:
        released = attempt("release edits", release, everywhere, prepared, check)
        everywhere, prepared = released or (everywhere, prepared)
    # Target ConfigMaps, then a numbered revision.
    revised = attempt("revise", steps.revise, filled, check)
    if revised is None:
        return Reconciled(everywhere, None)
    # One node at a time.
    rolled = attempt("roll out", roll_out, revised.revisions, filled.observation)
    if rolled is None:
        return Reconciled(everywhere, None)
    # Conditions, statuses, ClusterOperator.
    prepared = replace(prepared, failures=attempt.failures)
    plan = attempt("report", steps.report, everywhere, prepared, revised, rolled)
    return Reconciled(everywhere, plan)


def _manage_without_static_pods(attempt: Containment) -> Reconciled:
    """Do the same where the provider runs the control plane's scheduler."""
    record = attempt("record platform", steps.record_platform)
    image = attempt("find image", operand_image) or ""
    # The effective configuration: config/effective/control_plane/scheduler.py.
    requested = attempt("decide managed", managed_steps.decide_managed, image)
    # A SecondaryScheduler has it.
    if requested is not None:
        request = managed_steps.request_scheduler
        requested = attempt("request scheduler", request, requested) or requested
    requested = requested or Requested()
    # It also has the SchedulerProfiles of the control plane.
    attach = managed_steps.reconcile_attached_schedulers
    attached = attempt("reconcile attached schedulers", attach, requested)
    loads = attempt("reconcile load policies", reconcile_load_policies) or LoadPolicies()
    diagnoses = None
    if attached is not None:
        requested, secondary = attached
        released = attempt("release edits", release_load_policy, loads, secondary.checks)
        loads = released or loads
        diagnoses = attempt("diagnose", steps.diagnose, secondary)
    else:
        secondary = _observe_schedulers(attempt)
    upgrade = attempt("check upgrade", check_managed, image, requested)
    requested = replace(requested, upgrade=upgrade or requested.upgrade)
    everywhere = Everywhere(record or {}, image, secondary, loads, diagnoses or Diagnoses())
    # Conditions, statuses, ClusterOperator.
    report = managed_steps.report_schedulers
    plan = attempt("report schedulers", report, everywhere, requested, attempt.failures)
    return Reconciled(everywhere, plan)


def _remove_static_pods(attempt: Containment) -> Reconciled:
    return _beside_the_rest(attempt, "remove", steps.remove)


def _remove_without_static_pods(attempt: Containment) -> Reconciled:
    return _beside_the_rest(attempt, "remove managed", managed_steps.remove_managed)


def _leave_static_pods(attempt: Containment) -> Reconciled:
    """Observe and report static Pods that are Unmanaged."""
    return _beside_the_rest(attempt, "report unmanaged", steps.report_unmanaged)


def _leave_managed_scheduler(attempt: Containment) -> Reconciled:
    """Do the same where a SecondaryScheduler is in the place of static Pods."""
    return _beside_the_rest(attempt, "report unmanaged", managed_steps.report_unmanaged)


def _beside_the_rest(
    attempt: Containment, name: str, step: Callable[[Snapshot, Everywhere, Sequence[Finding]], Plan]
) -> Reconciled:
    """Do a step for the control plane's scheduler; all other objects are managed."""
    everywhere = _everywhere(attempt)
    return Reconciled(everywhere, attempt(name, step, everywhere, attempt.failures))


def _report_missing(attempt: Containment) -> Reconciled:
    """Report that KubeScheduler does not exist; its schedulers keep running."""
    everywhere = _everywhere(attempt)
    plan = attempt("report missing", report_without_kubescheduler)
    if plan is not None:
        attached = attached_to_secondaries(attempt.snapshot, everywhere.secondary)
        plan = replace(plan, reports=(*plan.reports, *attached))
    return Reconciled(everywhere, plan)


STATIC_PODS: Final[Mapping[str, Reconcile]] = {
    MANAGED: _manage_static_pods,
    REMOVED: _remove_static_pods,
    UNMANAGED: _leave_static_pods,
    "": _report_missing,
}
"""By KubeScheduler's management state (base/management.py); "" if there is no KubeScheduler."""

WITHOUT_STATIC_PODS: Final[Mapping[str, Reconcile]] = {
    MANAGED: _manage_without_static_pods,
    REMOVED: _remove_without_static_pods,
    UNMANAGED: _leave_managed_scheduler,
    "": _report_missing,
}


def _management_state(snapshot: Snapshot) -> str:
    return "" if snapshot.kubescheduler is None else snapshot.management.state
