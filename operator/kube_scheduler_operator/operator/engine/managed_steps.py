"""The steps of a reconcile where the provider runs the control plane's scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from ...base import names
from ...base.findings import Finding
from ...config.effective.attachment import CONTROL_PLANE, rejection_findings
from ...config.effective.extenders.validate import unattached_extenders
from ...config.effective.managed import as_written, moved_objects, profile_as_written
from ...config.effective.pipeline import effective_managed, is_ours
from ...config.effective.profiles.validate import unattached_profiles
from ...config.language.feature_gates import Gates
from ...config.language.schema import DEFAULT_SCHEDULER
from ...config.language.validation.configuration import Target
from ...kube.resource import CONFIG_MAPS, SECONDARY_SCHEDULERS
from ..controlplane.cluster_operator import report_cluster_operator
from ..controlplane.conditions import failure_conditions, from_findings, write_error
from ..controlplane.desired import facts_of, image_findings, objects_of
from ..controlplane.managed import (
    accepted_by,
    managed_scheduler,
    managed_status,
    remove_scheduler,
    scheduler_conditions,
)
from ..controlplane.operand_image import operand_image
from ..controlplane.status import in_order, write_status
from ..extenders.status import report_extenders
from ..model.plan import Delete, Plan
from ..model.snapshot import Snapshot
from ..profiles import aks
from ..profiles.status import report_profiles
from ..secondary.reconcile import SecondarySchedulers, secondary_schedulers
from ..settings.status import report_settings
from ..status.conditions import Condition
from .stages import Everywhere, Requested
from .steps import api_conditions, forget_accepted, settings_findings, version_findings


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
    planned = secondary_schedulers(snapshot, objects, facts)
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
    conditions = (
        *from_findings((*failures, *requested.findings)),
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
        *report_profiles(snapshot.scheduler_profiles or {}, secondary.results, snapshot.now),
        *report_extenders(
            snapshot.scheduler_extenders or {}, secondary.extenders, secondary.agents, snapshot.now
        ),
        *report_settings(snapshot.operator_settings, requested.settings, snapshot.now),
    )
    return Plan(actions, (*cluster_operator.reports, *reports), cluster_operator.requeue_after)


def remove_managed(snapshot: Snapshot) -> Plan:
    """Delete the SecondaryScheduler that the operator made, then its record."""
    name = snapshot.settings.managed_scheduler
    scheduler = snapshot.secondaries.schedulers.get(name)
    left = scheduler is not None and is_ours(scheduler)
    records = snapshot.config_maps.get(names.PLATFORM_RECORD)
    work = (*remove_scheduler(snapshot), *aks.remove_aks_profiles(snapshot))
    if not left and records is not None:
        work = (Delete(CONFIG_MAPS, records),)
    progress = (
        f'SecondaryScheduler "{name}" is being deleted' if left else "all schedulers are removed"
    )
    moving = Condition(names.SCHEDULERS_PROGRESSING, "True", "Removing", progress)
    removed = Condition(names.SCHEDULERS_PROGRESSING, "False", "Removed", progress)
    conditions = (moving if left else removed, *api_conditions(snapshot))
    status = managed_status(snapshot, conditions)
    cluster_operator = report_cluster_operator(snapshot, status["conditions"], progress)
    forgotten = () if left else forget_accepted(snapshot)
    return Plan(
        (*work, *write_status(snapshot, status)),
        (*cluster_operator.reports, *forgotten),
        cluster_operator.requeue_after,
    )
