"""The steps of a reconcile; engine/reconcile.py has their order.

A step passes values from one kind's package to another: the packages of the kinds do not know each
other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from ..base import names
from ..base.findings import Finding
from ..base.json_text import exceeds_depth
from ..base.limits import DEPTH
from ..base.objects import Object
from ..controlplane import desired
from ..controlplane.accepted_revision import accepted_settings
from ..controlplane.adoption.adopted import adopted, adoption_conditions
from ..controlplane.adoption.config_files import unneeded_readers
from ..controlplane.cluster_operator import report_cluster_operator, report_without_kubescheduler
from ..controlplane.conditions import (
    constant_conditions,
    failure_conditions,
    from_findings,
    removal_conditions,
    revision_conditions,
    rollout_conditions,
)
from ..controlplane.managed_scheduler import (
    accepted_by,
    managed_scheduler,
    remove_scheduler,
)
from ..controlplane.managed_status import (
    managed_status,
    platform_condition,
    scheduler_conditions,
)
from ..controlplane.next_version import next_version_condition
from ..controlplane.observed_facts import facts_of, objects_of
from ..controlplane.operand_image import operand_image
from ..controlplane.placement_check import check_placements as decide_placements
from ..controlplane.platform_record import keep_record
from ..controlplane.policy_config_map import mirror_policy
from ..controlplane.revision.content import RevisionContent
from ..controlplane.revision.credentials import gather_credentials
from ..controlplane.revision.history import configurations_in_use, refusal_of
from ..controlplane.revision.revise import revise as decide_revision
from ..controlplane.rollout import roll_out as rollout
from ..controlplane.rollout.guards import plan_guards
from ..controlplane.rollout.observe import observe as observe_pods
from ..controlplane.rollout.prune import prune
from ..controlplane.rollout.removal import remove as remove_from_nodes
from ..controlplane.rollout.result import RolloutResult
from ..controlplane.status import removal_status, status_of, write_error, write_status
from ..controlplane.target_config_maps import (
    config_map,
    installer_service_account,
    network_policies,
)
from ..diagnostics import unknown_scheduler_names, unmanaged_schedulers, writes
from ..effective.control_plane.accepted_settings import AcceptedSettings
from ..effective.control_plane.scheduler import EffectiveControlPlane, effective_control_plane
from ..effective.facts import Facts
from ..effective.managed import moved_objects
from ..effective.pipeline import effective_managed, is_ours
from ..extenders.agents import control_plane_agents, removed_agents
from ..extenders.attribution import attribute_extenders
from ..extenders.status import report_extenders
from ..extenders.validate import ExtenderResult, unattached_extenders
from ..kube.resource import (
    CONFIG_MAPS,
    KUBE_SCHEDULERS,
    NETWORK_POLICIES,
    OPERATOR_SETTINGS,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SECONDARY_SCHEDULERS,
    SERVICE_ACCOUNTS,
)
from ..loadpolicy.reconcile import load_policies
from ..model.apply import apply
from ..model.attachment import CONTROL_PLANE, PROFILE, rejection_findings
from ..model.limits import OVERRIDES
from ..model.placements import PlacementQuestion
from ..model.plan import Action, Delete, Event, Plan, Replace, soonest
from ..model.redirect import as_written, renaming_note
from ..model.snapshot import Snapshot
from ..operatorsettings.placement_settings import placement_settings
from ..operatorsettings.status import report_settings
from ..profiles import aks
from ..profiles.attribution import attribute
from ..profiles.status import report_profiles
from ..profiles.validate import ProfileResult, unattached_profiles
from ..schedulerconfig.feature_gates import Gates
from ..schedulerconfig.newer_versions import newer_version_findings
from ..schedulerconfig.schema import DEFAULT_SCHEDULER
from ..schedulerconfig.validation import Target
from ..secondary.reconcile import secondary_schedulers
from ..status.accepted import forget
from ..status.conditions import Condition, merge_conditions, problem_condition
from ..status.scheduler_lease import control_plane_lease
from .draft import Draft, result_of

STATUS_REFUSED: Final = "StatusRefused"


def record_platform(snapshot: Snapshot, draft: Draft) -> Draft:
    """Record what was decided about the platform, in a write set of its own."""
    if snapshot.spec.get("managementState") == "Removed":
        return draft  # it is deleted with everything else
    writes = keep_record(snapshot)
    ref = CONFIG_MAPS.named(names.PLATFORM_RECORD, snapshot.platform.target_namespace)
    return replace(draft, record={ref: writes} if writes else {})


def find_image(snapshot: Snapshot, draft: Draft) -> Draft:
    """Find the image of kube-scheduler."""
    return replace(draft, image=operand_image(snapshot))


def reconcile_secondary_schedulers(snapshot: Snapshot, draft: Draft) -> Draft:
    """Compose, roll out and report every SecondaryScheduler, each in a write set of its own."""
    facts = facts_of(snapshot, draft.image)
    return replace(draft, secondary=secondary_schedulers(snapshot, objects_of(snapshot), facts))


def reconcile_load_policies(snapshot: Snapshot, draft: Draft) -> Draft:
    """Run what measures and writes the load of nodes, and report it."""
    return replace(draft, loads=load_policies(snapshot))


def diagnose(snapshot: Snapshot, draft: Draft) -> Draft:
    """Find pods with an unknown schedulerName, and schedulers that the operator does not manage."""
    if any(failure.condition == names.SECONDARY_DEGRADED for failure in draft.failures):
        return draft  # the schedulerNames of SecondarySchedulers are unknown
    served = draft.secondary.served
    pods = unknown_scheduler_names.without_scheduler(snapshot.pending_pods, served, snapshot.now)
    found = (
        unknown_scheduler_names.condition(pods, unread=snapshot.pending_unread),
        unmanaged_schedulers.condition(
            unmanaged_schedulers.unmanaged(snapshot, served), unread=snapshot.bindings_unread
        ),
        *platform_condition(snapshot),
        *_api_conditions(snapshot),
    )
    # Pods that wait for a scheduler that is away are listed as well: its status names them.
    attempted = frozenset(served) - draft.secondary.waiting
    return replace(draft, pods_without_scheduler=pods, served=attempted, diagnoses=found)


def report_unmanaged(snapshot: Snapshot, draft: Draft) -> Draft:
    """Report an Unmanaged KubeScheduler; nothing else is read or written."""
    conditions = snapshot.status.get("conditions") or ()
    return replace(draft, plan=report_cluster_operator(snapshot, conditions))


def report_missing(snapshot: Snapshot, draft: Draft) -> Draft:
    """Report that KubeScheduler does not exist; its schedulers keep running."""
    return replace(draft, plan=report_without_kubescheduler(snapshot))


def adopt(snapshot: Snapshot, draft: Draft) -> Draft:
    """Take the inventory of schedulers from before the operator, or read its record."""
    return replace(draft, adopted=adopted(snapshot))


def decide(snapshot: Snapshot, draft: Draft) -> Draft:
    """Decide what the objects of the control plane lead to: the effective configuration.

    While settings have an error, those of the last accepted revision replace them. So an error in
    one field delays neither the edits of the others nor those of other objects.
    """
    facts = facts_of(snapshot, draft.image, draft.adopted)
    control_plane = effective_control_plane(
        objects_of(snapshot), facts, partial(_accepted, snapshot)
    )
    credentials = gather_credentials(snapshot)
    attached = (*draft.secondary.results, *draft.secondary.extenders)
    before = (*draft.failures, *draft.adopted.findings, *_settings_findings(control_plane))
    after = (
        *(finding for result in attached for finding in rejection_findings(result)),
        *desired.image_findings(draft.image),
        *_version_findings(facts),
        *credentials.findings,
        *_refused_statuses(snapshot),
    )
    return replace(
        draft,
        control_plane=control_plane,
        credentials=credentials,
        findings=(*before, *control_plane.findings, *after),
    )


def _accepted(snapshot: Snapshot) -> AcceptedSettings | None:
    return accepted_settings(snapshot, observe_pods(snapshot).disks)


def _settings_findings(control_plane: EffectiveControlPlane) -> tuple[Finding, ...]:
    settings = control_plane.settings
    return rejection_findings(settings) if settings is not None else ()


def _version_findings(facts: Facts) -> tuple[Finding, ...]:
    if not facts.is_stock:  # its tag need not be a version of Kubernetes
        return ()
    return newer_version_findings(facts.version, names.CONFIGURATION_WARNINGS)


def run_agents(snapshot: Snapshot, draft: Draft) -> Draft:
    """Run the agents of SchedulerExtenders on control-plane nodes."""
    composition = result_of(draft.control_plane).composition
    agents = control_plane_agents(
        snapshot,
        (*composition.extenders, *composition.leaving),
        partial(configurations_in_use, snapshot),
    )
    return replace(draft, agents=agents, findings=(*draft.findings, *agents.findings))


def write_observed_config(snapshot: Snapshot, draft: Draft) -> Draft:
    """Write `spec.observedConfig` first if it changed: the next one continues from there.

    While writes fail, the other steps continue: a refused write must not stop them, nor one that
    does not last.
    """
    composition = result_of(draft.control_plane).composition
    observed = composition.observed_config
    if (snapshot.spec.get("observedConfig") or {}) == observed:
        return draft
    if exceeds_depth(snapshot.spec.get(OVERRIDES), DEPTH):
        return draft  # the snapshot does not have all of the spec, so it cannot be written
    kubescheduler = snapshot.kubescheduler or {}
    spec = {**(kubescheduler.get("spec") or {}), "observedConfig": observed}
    text = json.dumps(observed, sort_keys=True)
    event = Event("ObservedConfigChanged", f"Writing updated observed config: {text}")
    write = Replace(KUBE_SCHEDULERS, {**kubescheduler, "spec": spec}, events=(event,))
    if snapshot.last_error or KUBE_SCHEDULERS in {w.ref.resource for w in snapshot.futile_writes}:
        return replace(draft, observing=(write,))
    reports = _object_reports(snapshot, draft, composition.results, composition.extenders)
    return replace(draft, plan=Plan((write,), reports, write_sets=draft.agents.write_sets))


def fill_revision(snapshot: Snapshot, draft: Draft) -> Draft:
    """The content that a revision would have, unless a finding blocks it."""
    content = None
    if not any(finding.blocking for finding in draft.findings):
        credentials = result_of(draft.credentials)
        control_plane = result_of(draft.control_plane)
        content = desired.content_of(control_plane, credentials.parts, draft.adopted)
    too_large = desired.size_findings(content) if content is not None else ()
    return replace(
        draft,
        findings=(*draft.findings, *too_large),
        composed=None if too_large else content,
        observation=observe_pods(snapshot),
    )


def check_placements(snapshot: Snapshot, draft: Draft) -> Draft:
    """Keep the rules in use while an edit of them is simulated or held."""
    observation = result_of(draft.observation)
    settings = draft.settings
    chosen = placement_settings(settings.spec if settings is not None else None)
    existing = partial(decide_revision, snapshot, None, observation.swapping, observation.disks)
    check = decide_placements(snapshot, draft.composed, chosen, existing)
    return replace(draft, content=check.content, check=check)


def revise(snapshot: Snapshot, draft: Draft) -> Draft:
    """Cut a revision if the content changed."""
    content, observation = draft.content, result_of(draft.observation)
    return replace(
        draft,
        targets=_targets(snapshot, content) if content is not None else (),
        revised=decide_revision(snapshot, content, observation.swapping, observation.disks),
    )


def roll_out(snapshot: Snapshot, draft: Draft) -> Draft:
    """Decide what each node does next."""
    revised, observation = result_of(draft.revised), result_of(draft.observation)
    return replace(draft, rollout=rollout.roll_out(snapshot, revised, observation))


def report(snapshot: Snapshot, draft: Draft) -> Draft:
    """Conditions and statuses, and the order of all writes."""
    control_plane, revised = draft.control_plane, result_of(draft.revised)
    rolled, credentials = result_of(draft.rollout), draft.credentials
    refusal = refusal_of(revised.rejected)
    observation = result_of(draft.observation)
    conditions = (
        *from_findings(draft.findings),
        *adoption_conditions(snapshot.platform, draft.adopted, draft.findings),
        *(
            failure_conditions(draft.failures, (names.REVISION_DEGRADED,))
            or revision_conditions(revised.problem, revised.note)
        ),
        Condition(names.STATIC_RESOURCES_DEGRADED, "False", "AsExpected"),
        *constant_conditions(snapshot),
        *rollout_conditions(
            snapshot, observation, rolled, desired=revised.desired, rejected=revised.rejected
        ),
        *_check_conditions(draft),
        *draft.secondary.conditions,
        *draft.diagnoses,
        *draft.loads.conditions,
        *_next_version(draft),
        *failure_conditions(
            draft.failures, (names.SECONDARY_DEGRADED, names.LOAD_POLICIES_DEGRADED)
        ),
    )
    status = status_of(snapshot, revised, observation, rolled, conditions)
    cluster_operator = report_cluster_operator(snapshot, status["conditions"])
    work = (
        *_static_resources(snapshot),
        *draft.adopted.actions,
        *(credentials.actions if credentials is not None else ()),
        *mirror_policy(snapshot),
        *draft.targets,
        *revised.actions,
        *rolled.actions,
    )
    afterwards = (*rolled.afterwards, *draft.observing)
    actions = _in_order(snapshot, work, conditions, status, rolled, afterwards)
    if not actions:
        # Guards and old revisions can wait until everything else is done.
        actions = plan_guards(snapshot, observation, rolled, revised.known) or prune(
            snapshot, revised.history, observation, rolled
        )
    reports: tuple[Action, ...] = ()
    if control_plane is not None:
        composition = control_plane.composition
        reports = _object_reports(
            snapshot,
            draft,
            attribute(composition.results, refusal, composition.config or {}),
            attribute_extenders(composition.extenders, refusal),
        )
    requeue_after = soonest(
        rolled.requeue_after,
        revised.requeue_after,
        cluster_operator.requeue_after,
        control_plane_lease(snapshot)[1],
        draft.agents.requeue_after,
        draft.adopted.requeue_after,
        draft.check.requeue_after if draft.check is not None else None,
    )
    plan = Plan(
        actions,
        (*cluster_operator.reports, *reports),
        requeue_after,
        write_sets=draft.agents.write_sets,
        simulations=_simulations(draft),
    )
    return replace(draft, plan=plan)


def _simulations(draft: Draft) -> tuple[PlacementQuestion, ...] | None:
    """The simulation that the check of placements waits for; None without a check."""
    if draft.check is None:
        return None
    return (draft.check.question,) if draft.check.question is not None else ()


def _check_conditions(draft: Draft) -> tuple[Condition, ...]:
    """Whether an edit waits for a simulation or an approval; empty if that is off."""
    if draft.check is None or draft.check.condition is None:
        return ()
    return (draft.check.condition,)


def _next_version(draft: Draft) -> tuple[Condition, ...]:
    """Whether the next minor version would accept the configuration in use."""
    made = draft.control_plane
    return () if made is None else (next_version_condition(made.inputs, made.composition),)


# --- where the provider runs the control plane's scheduler ----------------------------------------


def decide_managed(snapshot: Snapshot, draft: Draft) -> Draft:
    """Decide what Scheduler and KubeScheduler lead to; other objects are attached later.

    While settings have an error, those that the SecondaryScheduler was written with replace them.
    """
    facts = facts_of(snapshot, draft.image)
    objects = objects_of(snapshot)
    control_plane = effective_managed(objects, facts, partial(accepted_by, snapshot))
    findings = (
        *draft.failures,
        *_settings_findings(control_plane),
        *control_plane.findings,
        *desired.image_findings(draft.image, static_pods=False),
        *_version_findings(facts),
    )
    return replace(draft, control_plane=control_plane, findings=findings)


def request_scheduler(snapshot: Snapshot, draft: Draft) -> Draft:
    """Keep the SecondaryScheduler that has these settings."""
    control_plane = result_of(draft.control_plane)
    # An older image than the default one, while settings are not valid for that.
    image = control_plane.image if control_plane.image != draft.image else ""
    managed = managed_scheduler(snapshot, control_plane, image)
    return replace(draft, managed=managed, findings=(*draft.findings, *managed.findings))


def reconcile_attached_schedulers(snapshot: Snapshot, draft: Draft) -> Draft:
    """Reconcile SecondarySchedulers, with the control plane's objects attached to one of them."""
    name = snapshot.settings.managed_scheduler
    objects, facts = objects_of(snapshot), facts_of(snapshot, operand_image(snapshot))
    if not draft.managed.foreign:
        objects = moved_objects(objects, name)
    found = secondary_schedulers(snapshot, objects, facts)
    known = frozenset({CONTROL_PLANE, name, aks.SCHEDULER, *snapshot.secondaries.schedulers})
    others_serve = {key: who for key, who in found.served.items() if key != DEFAULT_SCHEDULER}
    target = Target(Gates(facts.version))
    own = aks.aks_profiles(snapshot, target, others_serve)
    profiles, extenders = snapshot.scheduler_profiles or {}, snapshot.scheduler_extenders or {}
    results = (
        *found.results,
        *own.results,
        *unattached_profiles(objects.profiles or (), known),
    )
    others = unattached_extenders(objects.extenders or (), known)
    write_sets = dict(found.write_sets)
    if own.actions:
        write_sets[aks.REF] = own.actions
    if draft.managed.action is not None:
        # Its spec is written first; the next reconcile continues with that.
        write_sets.pop(SECONDARY_SCHEDULERS.named(name), None)
    secondary = replace(
        found,
        write_sets=write_sets,
        served={**found.served, **dict.fromkeys(own.scheduler_names, "AKS")},
        results=tuple(_as_written(result, profiles, name) for result in results),
        extenders=tuple(as_written(result, extenders) for result in (*found.extenders, *others)),
    )
    rejected = (f for result in (*results, *others) for f in rejection_findings(result))
    return replace(draft, secondary=secondary, findings=(*draft.findings, *rejected))


def _as_written(
    result: ProfileResult, profiles: Mapping[str, Object], scheduler: str
) -> ProfileResult:
    """The result with the profile as users wrote it, and a note if it has another name here."""
    written = as_written(result, profiles)
    if written.spec is None or written.scheduler_name != DEFAULT_SCHEDULER:
        return written
    if result.scheduler_name != scheduler:
        return written
    note = renaming_note(result.name, DEFAULT_SCHEDULER, scheduler)
    return replace(written, serves=scheduler, warnings=(*written.warnings, note))


def report_schedulers(snapshot: Snapshot, draft: Draft) -> Draft:
    """Conditions and statuses, and the order of all writes."""
    errors = [("SyncError", snapshot.last_error)] if snapshot.last_error else []
    conditions = (
        *from_findings(draft.findings),
        problem_condition(names.INSTALLER_DEGRADED, errors),
        *scheduler_conditions(snapshot),
        *draft.secondary.conditions,
        *draft.diagnoses,
        *draft.loads.conditions,
        *failure_conditions(
            draft.failures, (names.SECONDARY_DEGRADED, names.LOAD_POLICIES_DEGRADED)
        ),
    )
    status = managed_status(snapshot, conditions)
    cluster_operator = report_cluster_operator(snapshot, status["conditions"])
    work = (draft.managed.action,) if draft.managed.action is not None else ()
    error = write_error(snapshot, conditions)
    actions = (*error, *work) if error else (*work, *write_status(snapshot, status))
    reports = _object_reports(snapshot, draft, (), ())
    plan = Plan(actions, (*cluster_operator.reports, *reports), cluster_operator.requeue_after)
    return replace(draft, plan=plan)


def remove_managed(snapshot: Snapshot, draft: Draft) -> Draft:
    """Delete the SecondaryScheduler that the operator made, then its record."""
    name = snapshot.settings.managed_scheduler
    found = snapshot.secondaries.schedulers.get(name)
    left = found is not None and is_ours(found)
    records = snapshot.config_maps.get(names.PLATFORM_RECORD)
    work = (*remove_scheduler(snapshot), *aks.remove_aks_profiles(snapshot))
    if not left and records is not None:
        work = (Delete(CONFIG_MAPS, records),)
    progress = (
        f'SecondaryScheduler "{name}" is being deleted' if left else "all schedulers are removed"
    )
    moving = Condition(names.SCHEDULERS_PROGRESSING, "True", "Removing", progress)
    removed = Condition(names.SCHEDULERS_PROGRESSING, "False", "Removed", progress)
    conditions = (moving if left else removed, *_api_conditions(snapshot))
    status = managed_status(snapshot, conditions)
    cluster_operator = report_cluster_operator(snapshot, status["conditions"], progress)
    forgotten: tuple[Action, ...] = ()
    if not left:
        forgotten = (
            *forget(SCHEDULER_PROFILES, snapshot.scheduler_profiles or {}),
            *forget(SCHEDULER_EXTENDERS, snapshot.scheduler_extenders or {}),
            *forget(OPERATOR_SETTINGS, snapshot.operator_settings or {}),
        )
    plan = Plan(
        (*work, *write_status(snapshot, status)),
        (*cluster_operator.reports, *forgotten),
        cluster_operator.requeue_after,
    )
    return replace(draft, plan=plan)


# --------------------------------------------------------------------------------------------------


def report_failures(snapshot: Snapshot, draft: Draft) -> Draft:
    """Report the failed steps, where the reports of a whole reconcile cannot be made."""
    if snapshot.kubescheduler is None:
        return replace(draft, plan=Plan())
    before = snapshot.status
    conditions = failure_conditions(draft.failures, ())
    old = before.get("conditions") or ()
    status = {**before, "conditions": merge_conditions(old, conditions, snapshot.now)}
    cluster_operator = report_cluster_operator(snapshot, status["conditions"])
    actions = write_status(snapshot, status)
    return replace(draft, plan=Plan(actions, cluster_operator.reports))


def remove(snapshot: Snapshot, draft: Draft) -> Draft:
    """Restore the earlier scheduler of every node, then delete the operator's objects."""
    removal = remove_from_nodes(snapshot)
    rolled = removal.result
    conditions = (*removal_conditions(snapshot, removal), *_api_conditions(snapshot))
    status = removal_status(snapshot, rolled, conditions)
    cluster_operator = report_cluster_operator(snapshot, status["conditions"], removal.progress)
    needed = () if removal.done else _static_resources(snapshot)
    work = (*needed, *unneeded_readers(snapshot, set()), *rolled.actions)
    actions = _in_order(snapshot, work, conditions, status, rolled, rolled.afterwards)
    plan = Plan(
        actions,
        cluster_operator.reports,
        soonest(rolled.requeue_after, cluster_operator.requeue_after),
    )
    if removal.done:
        forgotten = (
            *forget(SCHEDULER_PROFILES, snapshot.scheduler_profiles or {}),
            *forget(SCHEDULER_EXTENDERS, snapshot.scheduler_extenders or {}),
            *forget(OPERATOR_SETTINGS, snapshot.operator_settings or {}),
        )
        plan = replace(
            plan, reports=(*plan.reports, *forgotten), write_sets=removed_agents(snapshot)
        )
    return replace(draft, plan=plan)


def _refused_statuses(snapshot: Snapshot) -> Iterator[Finding]:
    """Errors of objects whose status the API server refuses, which cannot report that."""
    for ref, error in snapshot.write_errors.items():
        if ref.resource == SCHEDULER_PROFILES:
            yield PROFILE.finding(ref.name, STATUS_REFUSED, "status", error)


def _api_conditions(snapshot: Snapshot) -> tuple[Condition, ...]:
    """What the operator noticed about its writes and about etcd."""
    return (
        writes.futile_writes(snapshot.futile_writes),
        writes.restored(snapshot.restored_at, snapshot.now),
    )


def _in_order(
    snapshot: Snapshot,
    work: tuple[Action, ...],
    conditions: Sequence[Condition],
    status: Mapping[str, Any],
    rolled: RolloutResult,
    afterwards: tuple[Action, ...],
) -> tuple[Action, ...]:
    """The work, then the status, which names only what exists, then what depends on the status.

    After a refused write, the status with the error comes first, before the work is tried again.
    """
    error = write_error(snapshot, conditions)
    if error:
        return (*error, *work)
    return (*work, *write_status(snapshot, status, *rolled.events), *afterwards)


def _targets(snapshot: Snapshot, content: RevisionContent) -> tuple[Action, ...]:
    """Writes that give the target ConfigMaps the desired content."""
    return tuple(
        action
        for name, data in content.parts.items()
        for action in apply(
            CONFIG_MAPS,
            snapshot.config_maps,
            config_map(snapshot.platform, name, data),
            ("data",),
        )
    )


def _static_resources(snapshot: Snapshot) -> tuple[Action, ...]:
    account = installer_service_account(snapshot.platform, snapshot.settings.image_pull_secrets)
    # Fields that the settings do not mention keep what others have set.
    fields = [f for f in ("automountServiceAccountToken", "imagePullSecrets") if f in account]
    policies = network_policies(snapshot.platform)
    return (
        *apply(SERVICE_ACCOUNTS, snapshot.service_accounts, account, fields),
        *(
            action
            for policy in policies
            for action in apply(NETWORK_POLICIES, snapshot.network_policies, policy, ("spec",))
        ),
    )


def _object_reports(
    snapshot: Snapshot,
    draft: Draft,
    profiles: Sequence[ProfileResult],
    extenders: Sequence[ExtenderResult],
) -> tuple[Action, ...]:
    """The statuses of SchedulerProfiles, SchedulerExtenders and OperatorSettings."""
    secondary = draft.secondary
    return (
        *report_profiles(
            snapshot.scheduler_profiles or {}, (*profiles, *secondary.results), snapshot.now
        ),
        *report_extenders(
            snapshot.scheduler_extenders or {},
            (*extenders, *secondary.extenders),
            {**secondary.agents, **draft.agents.health},
            snapshot.now,
        ),
        *report_settings(
            snapshot.operator_settings,
            draft.settings,
            snapshot.now,
            draft.check.record if draft.check is not None else None,
            draft.check.events if draft.check is not None else (),
        ),
    )
