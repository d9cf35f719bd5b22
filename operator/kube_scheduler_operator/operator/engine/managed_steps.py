"""The steps of a reconcile where the provider runs the control plane's scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from ...base import names
from ...base.findings import Finding
from ...base.objects import mapping
from ...config.effective.attachment import CONTROL_PLANE, rejection_findings
from ...config.effective.extenders.validate import unattached_extenders
from ...config.effective.managed import as_written, moved_objects, profile_as_written
from ...config.effective.pipeline import effective_managed
from ...config.effective.profiles.validate import unattached_profiles
from ...config.language.feature_gates import Gates
from ...config.language.schema import DEFAULT_SCHEDULER
from ...config.language.validation.configuration import Target
from ...kube.resource import CONFIG_MAPS, KUBE_SCHEDULERS, SECONDARY_SCHEDULERS
from ..controlplane.cluster_operator import report_cluster_operator
from ..controlplane.conditions import failure_conditions, from_findings, write_error
from ..controlplane.desired import facts_of, image_findings, objects_of
from ..controlplane.managed import (
    STATIC_POD_CONDITIONS,
    USERS_RECORD,
    accepted_by,
    managed_name,
    managed_scheduler,
    managed_status,
    removal_conditions,
    remove_scheduler,
    scheduler_conditions,
    users_fields,
)
from ..controlplane.operand_image import operand_image
from ..controlplane.status import in_order, not_observed, write_status
from ..extenders.status import report_extenders
from ..model.plan import Delete, Plan, soonest
from ..model.snapshot import Snapshot
from ..profiles import aks
from ..profiles.status import report_profiles
from ..secondary.reconcile import SecondarySchedulers, secondary_schedulers
from ..settings.status import report_settings
from ..status.conditions import Condition
from .attached import attached_to_secondaries, forget_accepted, unobserved_objects
from .held_edits import load_edit
from .in_use import settings_of_managed, without_static_pods
from .secondary_gate import secondary_gate
from .stages import Everywhere, Requested
from .steps import of_the_rest, settings_findings, version_findings


def decide_managed(snapshot: Snapshot, image: str) -> Requested:
    """Compose Scheduler and KubeScheduler; other objects are attached later.

    While settings have an error, the settings in the SecondaryScheduler are used instead.
    """
    facts = facts_of(snapshot, image)
    accepted = partial(accepted_by, snapshot)
    control_plane = effective_managed(objects_of(snapshot), facts, accepted)
    findings = (
        *settings_findings(control_plane),
        *control_plane.findings,
        *image_findings(image, static_pods=False),
        *version_findings(facts),
    )
    return Requested(control_plane, findings=findings)


def request_scheduler(snapshot: Snapshot, requested: Requested) -> Requested:
    """Keep the SecondaryScheduler that has these settings."""
    control_plane = requested.control_plane
    if control_plane is None:
        return requested
    managed = managed_scheduler(
        snapshot, control_plane, facts_of(snapshot, operand_image(snapshot))
    )
    return Requested(control_plane, managed, (*requested.findings, *managed.findings))


def reconcile_attached_schedulers(
    snapshot: Snapshot, requested: Requested
) -> tuple[Requested, SecondarySchedulers]:
    """Reconcile SecondarySchedulers, with the control plane's objects attached to one of them."""
    name = snapshot.settings.managed_scheduler
    objects, facts = objects_of(snapshot), facts_of(snapshot, operand_image(snapshot))
    if not requested.managed.foreign:
        objects = moved_objects(objects, name)
    gate = secondary_gate(snapshot, load_edit(snapshot))
    planned = secondary_schedulers(snapshot, objects, facts, gate=gate)
    known = frozenset({CONTROL_PLANE, name, aks.SCHEDULER, *snapshot.secondaries.schedulers})
    others_serve = {key: who for key, who in planned.served.items() if key != DEFAULT_SCHEDULER}
    target = Target(Gates(facts.version))
    own = aks.aks_profiles(snapshot, target, others_serve)
    profiles, extenders = snapshot.scheduler_profiles or {}, snapshot.scheduler_extenders or {}
    results = (
        *planned.results,
        *own.results,
        *unattached_profiles(objects.profiles or (), known),
    )
    others = unattached_extenders(objects.extenders or (), known)
    write_sets = dict(planned.write_sets)
    if own.actions:
        write_sets[aks.REF] = own.actions
    if requested.managed.action is not None:
        # Its spec is written first; the next reconcile continues from there.
        write_sets.pop(SECONDARY_SCHEDULERS.named(name), None)
    secondary = replace(
        planned,
        write_sets=write_sets,
        in_use=without_static_pods(snapshot, planned, own.in_use),
        served={**planned.served, **dict.fromkeys(own.scheduler_names, "AKS")},
        results=tuple(profile_as_written(result, profiles, name) for result in results),
        extenders=tuple(as_written(result, extenders) for result in (*planned.extenders, *others)),
    )
    rejected = (f for result in (*results, *others) for f in rejection_findings(result))
    return replace(requested, findings=(*requested.findings, *rejected)), secondary


def report_schedulers(
    snapshot: Snapshot, everywhere: Everywhere, requested: Requested, failures: Sequence[Finding]
) -> Plan:
    secondary = everywhere.secondary
    check = secondary.checks.get(managed_name(snapshot))
    conditions = (
        *from_findings((*failures, *requested.findings)),
        *((check.condition,) if check is not None and check.condition is not None else ()),
        *filter(None, (requested.upgrade.condition,)),
        write_error(snapshot),
        *scheduler_conditions(snapshot),
        *secondary.conditions,
        *everywhere.diagnoses.conditions,
        *everywhere.loads.conditions,
        *failure_conditions(failures, (names.SECONDARY_DEGRADED, names.LOAD_POLICIES_DEGRADED)),
    )
    status = managed_status(snapshot, conditions)
    cluster_operator = report_cluster_operator(snapshot, status["conditions"])
    action = requested.managed.action
    work = (action,) if action is not None else ()
    actions = in_order(snapshot, work, conditions, status)
    reports = (
        *report_profiles(
            snapshot.scheduler_profiles or {}, secondary.results, secondary.in_use, snapshot.now
        ),
        *report_extenders(
            snapshot.scheduler_extenders or {},
            secondary.extenders,
            secondary.agents,
            secondary.in_use,
            snapshot.now,
        ),
        *report_settings(
            snapshot.operator_settings,
            requested.settings,
            settings_of_managed(requested, secondary.in_use),
            snapshot.now,
            check.record if check is not None else None,
            (*(check.events if check is not None else ()), *requested.upgrade.events),
            requested.upgrade.record,
        ),
    )
    return Plan(
        actions,
        (*cluster_operator.reports, *reports),
        soonest(cluster_operator.requeue_after, requested.upgrade.requeue_after),
        simulations=(),  # those of SecondarySchedulers are added
        upgrades=requested.upgrade.questions,
    )


def report_unmanaged(
    snapshot: Snapshot, everywhere: Everywhere, failures: Sequence[Finding]
) -> Plan:
    """Report what is observed of the schedulers, and that the rest is not."""
    reported = (*scheduler_conditions(snapshot), *of_the_rest(snapshot, everywhere, failures))
    plan = _reported(snapshot, everywhere, reported)
    return replace(plan, reports=(*plan.reports, *unobserved_objects(snapshot)))


def remove_managed(snapshot: Snapshot, everywhere: Everywhere, failures: Sequence[Finding]) -> Plan:
    """Delete the SecondaryScheduler that the operator made, then its record."""
    reported = (*removal_conditions(snapshot), *of_the_rest(snapshot, everywhere, failures))
    plan = _reported(snapshot, everywhere, reported, reported[0].message)
    if not _is_recorded(snapshot):
        return plan  # what users set is recorded first
    left = bool(managed_name(snapshot))
    work = (*remove_scheduler(snapshot), *aks.remove_aks_profiles(snapshot))
    records = snapshot.config_maps.get(names.PLATFORM_RECORD)
    if not left and records is not None:
        work = (Delete(CONFIG_MAPS, records),)
    forgotten = () if left else forget_accepted(snapshot)
    return replace(plan, actions=(*work, *plan.actions), reports=(*plan.reports, *forgotten))


def _is_recorded(snapshot: Snapshot) -> bool:
    """Whether what users set outlives the object, as far as the installed CRD has the field."""
    record = mapping(snapshot.status.get(USERS_RECORD))
    recorded = {key: value for key, value in record.items() if key != "name"}
    futile = KUBE_SCHEDULERS in {write.ref.resource for write in snapshot.futile_writes}
    return futile or users_fields(snapshot) in ({}, recorded)


def _reported(
    snapshot: Snapshot,
    everywhere: Everywhere,
    reported: Sequence[Condition],
    progress: str = "",
) -> Plan:
    """The writes of the statuses while the operator does not manage its scheduler."""
    others = not_observed(snapshot, reported, STATIC_POD_CONDITIONS)
    status = managed_status(snapshot, (*reported, *others))
    cluster_operator = report_cluster_operator(snapshot, status["conditions"], progress)
    attached = attached_to_secondaries(snapshot, everywhere.secondary)
    return Plan(
        write_status(snapshot, status),
        (*cluster_operator.reports, *attached),
        cluster_operator.requeue_after,
    )
