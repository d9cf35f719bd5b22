"""The steps of a reconcile; engine/reconcile.py has their order.

A step passes values from one kind's package to another: the packages of the kinds do not know each
other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..base import names
from ..controlplane import desired
from ..controlplane.base_configuration import base_configuration
from ..controlplane.cluster_operator import report_cluster_operator, report_without_kubescheduler
from ..controlplane.compose import combine
from ..controlplane.conditions import (
    constant_conditions,
    from_findings,
    removal_conditions,
    revision_conditions,
    rollout_conditions,
)
from ..controlplane.observe_attached import observe_extenders, observe_profiles
from ..controlplane.operand_image import operand_image, operand_version
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
from ..controlplane.target_config_maps import config_map, installer_service_account
from ..diagnostics import unknown_scheduler_names, unmanaged_schedulers
from ..extenders.agents import control_plane_agents, removed_agents
from ..extenders.attribution import attribute_extenders
from ..extenders.status import report_extenders
from ..extenders.validate import ExtenderResult
from ..kube.resource import (
    CONFIG_MAPS,
    KUBE_SCHEDULERS,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SERVICE_ACCOUNTS,
)
from ..loadpolicy.reconcile import load_policies
from ..model.apply import apply
from ..model.attachment import rejection_findings
from ..model.plan import Action, Event, Plan, Replace, soonest
from ..model.snapshot import Snapshot
from ..profiles.attribution import attribute
from ..profiles.status import report_profiles
from ..profiles.validate import ProfileResult
from ..secondary.reconcile import secondary_schedulers
from ..status.accepted import forget
from ..status.conditions import Condition
from ..status.scheduler_lease import control_plane_lease
from .draft import Draft, result_of


def reconcile_secondary_schedulers(snapshot: Snapshot, draft: Draft) -> Draft:
    """Compose, roll out and report every SecondaryScheduler, each in a write set of its own."""
    image = operand_image(snapshot)
    secondary = secondary_schedulers(snapshot, image, partial(operand_version, snapshot))
    return replace(draft, image=image, secondary=secondary)


def reconcile_load_policies(snapshot: Snapshot, draft: Draft) -> Draft:
    """Run what measures and writes the load of nodes, and report it."""
    return replace(draft, loads=load_policies(snapshot))


def diagnose(snapshot: Snapshot, draft: Draft) -> Draft:
    """Find pods with an unknown schedulerName, and schedulers that the operator does not manage."""
    served = draft.secondary.served
    pods = unknown_scheduler_names.without_scheduler(snapshot.pending_pods, served, snapshot.now)
    found = (
        unknown_scheduler_names.condition(pods),
        unmanaged_schedulers.condition(unmanaged_schedulers.unmanaged(snapshot, served)),
    )
    return replace(draft, pods_without_scheduler=pods, diagnoses=found)


def report_unmanaged(snapshot: Snapshot, draft: Draft) -> Draft:
    """Report an Unmanaged KubeScheduler; nothing else is read or written."""
    conditions = snapshot.status.get("conditions") or ()
    return replace(draft, plan=report_cluster_operator(snapshot, conditions))


def report_missing(snapshot: Snapshot, draft: Draft) -> Draft:
    """Report that KubeScheduler does not exist; its schedulers keep running."""
    return replace(draft, plan=report_without_kubescheduler(snapshot))


def observe(snapshot: Snapshot, draft: Draft) -> Draft:
    """Read the settings of the cluster and of users: what all profiles and extenders share."""
    inputs = desired.inputs_of(snapshot, draft.image)
    return replace(draft, inputs=inputs, base=base_configuration(inputs))


def validate_extenders(snapshot: Snapshot, draft: Draft) -> Draft:
    """Validate each SchedulerExtender of the control plane by itself."""
    del snapshot  # it is in the inputs
    extenders = observe_extenders(result_of(draft.inputs), result_of(draft.base))
    return replace(draft, extenders=extenders)


def validate_profiles(snapshot: Snapshot, draft: Draft) -> Draft:
    """Validate each SchedulerProfile of the control plane by itself, with its extenders."""
    del snapshot  # it is in the inputs
    profiles = observe_profiles(
        result_of(draft.inputs), result_of(draft.base), result_of(draft.extenders)
    )
    return replace(draft, profiles=profiles)


def compose(snapshot: Snapshot, draft: Draft) -> Draft:
    """Merge everything into the effective configuration and validate it."""
    composition = combine(
        result_of(draft.base), result_of(draft.extenders), result_of(draft.profiles)
    )
    credentials = gather_credentials(snapshot)
    attached = (*draft.secondary.results, *draft.secondary.extenders)
    findings = (
        *composition.findings,
        *(finding for result in attached for finding in rejection_findings(result)),
        *desired.image_findings(draft.image),
        *credentials.findings,
    )
    return replace(draft, composition=composition, credentials=credentials, findings=findings)


def run_agents(snapshot: Snapshot, draft: Draft) -> Draft:
    """Run the agents of SchedulerExtenders on control-plane nodes."""
    composition = result_of(draft.composition)
    agents = control_plane_agents(
        snapshot,
        (*composition.extenders, *composition.leaving),
        partial(configurations_in_use, snapshot),
    )
    return replace(draft, agents=agents, findings=(*draft.findings, *agents.findings))


def write_observed_config(snapshot: Snapshot, draft: Draft) -> Draft:
    """Write `spec.observedConfig` first if it changed: the next one continues from there.

    While writes fail, the other steps continue: a refused write must not stop them.
    """
    observed = result_of(draft.composition).observed_config
    if (snapshot.spec.get("observedConfig") or {}) == observed:
        return draft
    kubescheduler = snapshot.kubescheduler or {}
    spec = {**(kubescheduler.get("spec") or {}), "observedConfig": observed}
    text = json.dumps(observed, sort_keys=True)
    event = Event("ObservedConfigChanged", f"Writing updated observed config: {text}")
    write = Replace(KUBE_SCHEDULERS, {**kubescheduler, "spec": spec}, events=(event,))
    if snapshot.last_error:
        return replace(draft, observing=(write,))
    composition = result_of(draft.composition)
    reports = _object_reports(snapshot, draft, composition.results, composition.extenders)
    return replace(draft, plan=Plan((write,), reports, write_sets=draft.agents.write_sets))


def revise(snapshot: Snapshot, draft: Draft) -> Draft:
    """Cut a revision if the content changed, unless a finding blocks it."""
    content = None
    if not any(finding.blocking for finding in draft.findings):
        credentials = result_of(draft.credentials)
        composition = result_of(draft.composition)
        content = desired.content_of(snapshot, composition, draft.image, credentials.parts)
    observation = observe_pods(snapshot)
    return replace(
        draft,
        targets=_targets(snapshot, content) if content is not None else (),
        revised=decide_revision(snapshot, content, observation.swapping),
        observation=observation,
    )


def roll_out(snapshot: Snapshot, draft: Draft) -> Draft:
    """Decide what each node does next."""
    revised, observation = result_of(draft.revised), result_of(draft.observation)
    return replace(draft, rollout=rollout.roll_out(snapshot, revised, observation))


def report(snapshot: Snapshot, draft: Draft) -> Draft:
    """Conditions and statuses, and the order of all writes."""
    composition, revised = result_of(draft.composition), result_of(draft.revised)
    rolled, credentials = result_of(draft.rollout), result_of(draft.credentials)
    refusal = refusal_of(revised.rejected)
    observation = result_of(draft.observation)
    conditions = (
        *from_findings(draft.findings),
        *revision_conditions("", revised.note),
        Condition(names.STATIC_RESOURCES_DEGRADED, "False", "AsExpected"),
        *constant_conditions(snapshot),
        *rollout_conditions(
            snapshot, observation, rolled, desired=revised.desired, rejected=revised.rejected
        ),
        *draft.secondary.conditions,
        *draft.diagnoses,
        *draft.loads.conditions,
    )
    status = status_of(snapshot, revised, observation, rolled, conditions)
    cluster_operator = report_cluster_operator(snapshot, status["conditions"])
    work = (
        *_static_resources(snapshot),
        *credentials.actions,
        *mirror_policy(snapshot),
        *draft.targets,
        *revised.actions,
        *rolled.actions,
    )
    afterwards = (*rolled.afterwards, *draft.observing)
    actions = _in_order(snapshot, work, conditions, status, rolled, afterwards)
    if not actions:
        # Guards and old revisions can wait until everything else is done.
        actions = plan_guards(snapshot, observation, rolled) or prune(
            snapshot, revised.history, observation, rolled
        )
    reports = _object_reports(
        snapshot,
        draft,
        attribute(composition.results, refusal, composition.config or {}),
        attribute_extenders(composition.extenders, refusal),
    )
    requeue_after = soonest(
        rolled.requeue_after,
        cluster_operator.requeue_after,
        control_plane_lease(snapshot)[1],
        draft.agents.requeue_after,
    )
    plan = Plan(
        actions,
        (*cluster_operator.reports, *reports),
        requeue_after,
        write_sets=draft.agents.write_sets,
    )
    return replace(draft, plan=plan)


def remove(snapshot: Snapshot, draft: Draft) -> Draft:
    """Restore the earlier scheduler of every node, then delete the operator's objects."""
    removal = remove_from_nodes(snapshot)
    rolled = removal.result
    conditions = removal_conditions(snapshot, removal)
    status = removal_status(snapshot, rolled, conditions)
    cluster_operator = report_cluster_operator(snapshot, status["conditions"], removal.progress)
    needed = () if removal.done else _static_resources(snapshot)
    work = (*needed, *rolled.actions)
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
        )
        plan = replace(
            plan, reports=(*plan.reports, *forgotten), write_sets=removed_agents(snapshot)
        )
    return replace(draft, plan=plan)


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
    return apply(SERVICE_ACCOUNTS, snapshot.service_accounts, account, fields)


def _object_reports(
    snapshot: Snapshot,
    draft: Draft,
    profiles: Sequence[ProfileResult],
    extenders: Sequence[ExtenderResult],
) -> tuple[Action, ...]:
    """The statuses of SchedulerProfiles and SchedulerExtenders, of all schedulers."""
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
    )
