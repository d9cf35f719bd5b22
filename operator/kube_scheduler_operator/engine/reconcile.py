"""The pass: one snapshot in, one plan out, in the order in which a configuration travels.

observe -> compose -> check (config/) -> revise (revision/) -> roll out (rollout/) -> report
(status/). Nothing here talks to a cluster or looks at a clock; the same snapshot always gives the
same plan. A step that fails becomes a condition of its own, and the later steps work with what is
known: a configuration with a mistake in it never stops a rollout that had begun, and never touches
a running scheduler.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..base import names
from ..base.objects import Object
from ..controlplane.cluster_operator import report_cluster_operator, report_without_kubescheduler
from ..controlplane.compose import Composition
from ..controlplane.conditions import (
    from_findings,
    removal_conditions,
    requeue_for_lease,
    revision_conditions,
    rollout_conditions,
)
from ..controlplane.desired import composed, content_of, image_findings
from ..controlplane.operand_image import operand_image, operand_version
from ..controlplane.revision.attribution import blamed_extenders, blamed_profiles, refusal_of
from ..controlplane.revision.content import Content
from ..controlplane.revision.credentials import gather
from ..controlplane.revision.revise import revise
from ..controlplane.rollout.guards import guard
from ..controlplane.rollout.observe import look
from ..controlplane.rollout.prune import prune
from ..controlplane.rollout.removal import remove
from ..controlplane.rollout.result import Stepped, describe
from ..controlplane.rollout.step import step
from ..controlplane.status import complaint, removal_status, status_of, write_status
from ..controlplane.target_config_maps import config_map, installer_service_account
from ..extenders.agents import Agents, control_plane_agents, removed_agents
from ..extenders.status import report_extenders
from ..extenders.validate import ExtenderVerdict
from ..kube.resource import (
    CONFIG_MAPS,
    KUBE_SCHEDULERS,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SERVICE_ACCOUNTS,
)
from ..loadpolicy.reconcile import LoadPolicies, load_policies
from ..model.apply import apply
from ..model.attachment import Judged, said
from ..model.plan import Action, Event, Plan, Replace, soonest
from ..model.snapshot import Snapshot
from ..profiles.status import report_profiles
from ..secondary.reconcile import Secondary, secondary_schedulers
from ..status.accepted import forget
from ..status.conditions import Condition


def reconcile(snapshot: Snapshot) -> Plan:
    """Everything that should be done about the cluster as `snapshot` shows it."""
    if snapshot.spec.get("managementState") == "Unmanaged":
        return report_cluster_operator(snapshot, snapshot.status.get("conditions") or ())
    image = operand_image(snapshot)
    secondary = secondary_schedulers(snapshot, image, partial(operand_version, snapshot))
    loads = load_policies(snapshot)
    plan = _control_plane(snapshot, image, secondary, loads)
    wait = soonest(plan.requeue_after, secondary.requeue_after, loads.requeue_after)
    chains = {**secondary.chains, **loads.chains, **plan.chains}
    return replace(plan, chains=chains, unserved=secondary.unserved, requeue_after=wait)


def _control_plane(
    snapshot: Snapshot, image: str, secondary: Secondary, loads: LoadPolicies
) -> Plan:
    """What should be done about the schedulers in static pods."""
    kubescheduler = snapshot.kubescheduler
    if kubescheduler is None:
        return report_without_kubescheduler(snapshot)
    if snapshot.spec.get("managementState") == "Removed":
        return _removing(snapshot)

    # Observe, compose, check.
    composition = composed(snapshot, image)
    credentials = gather(snapshot)
    agents = control_plane_agents(snapshot, (*composition.extenders, *composition.leaving))
    others: tuple[Judged, ...] = (*secondary.verdicts, *secondary.extenders)
    of_others = (finding for verdict in others for finding in said(verdict))
    findings = (
        *composition.findings,
        *of_others,
        *agents.findings,
        *image_findings(image),
        *credentials.findings,
    )
    profiles = snapshot.scheduler_profiles or {}
    observing: tuple[Action, ...] = ()
    if (snapshot.spec.get("observedConfig") or {}) != composition.observed_config:
        observing = (_write_observed(kubescheduler, composition),)
        if not snapshot.trouble:
            verdicts = (*composition.verdicts, *secondary.verdicts)
            reports = report_profiles(profiles, verdicts, snapshot.now)
            extenders = _report_extenders(snapshot, composition.extenders, secondary, agents)
            return Plan(observing, (*reports, *extenders), chains=agents.chains)

    # Revise.
    content = None
    if not any(finding.blocking for finding in findings):
        content = content_of(snapshot, composition, image, credentials.parts)
    targets = _targets(snapshot, content) if content is not None else ()
    seen = look(snapshot)
    revised = revise(snapshot, content, seen.swapping)

    # Roll out.
    stepped = step(snapshot, revised, seen)

    # Report.
    refusal = refusal_of(revised.rejected)
    verdicts = (*blamed_profiles(composition, refusal), *secondary.verdicts)
    reports = report_profiles(profiles, verdicts, snapshot.now)
    blamed = blamed_extenders(composition, refusal)
    extenders = _report_extenders(snapshot, blamed, secondary, agents)
    number = revised.wanted.number if revised.wanted is not None else 0
    conditions = (
        *from_findings(findings),
        *revision_conditions("", revised.note),
        Condition(names.STATIC_RESOURCES_DEGRADED, "False", "AsExpected"),
        *rollout_conditions(
            snapshot,
            stepped,
            wanted=revised.wanted,
            rejected=revised.rejected,
            description=describe(stepped.entries, number),
        ),
        *secondary.conditions,
        *loads.conditions,
    )
    status = status_of(snapshot, revised, stepped, conditions)
    cluster_operator = report_cluster_operator(snapshot, status["conditions"])
    work = (
        *_static_resources(snapshot),
        *credentials.actions,
        *targets,
        *revised.actions,
        *stepped.actions,
    )
    stepped.afterwards.extend(observing)
    actions = _in_order(snapshot, work, conditions, status, stepped)
    if not actions:
        # Only when there is nothing else to do: in a hurry, guards and the past can wait.
        actions = guard(snapshot, stepped) or prune(snapshot, revised.history, stepped)
    requeue_after = soonest(
        stepped.requeue_after,
        cluster_operator.requeue_after,
        requeue_for_lease(snapshot, snapshot.now),
        agents.requeue_after,
    )
    reports = (*cluster_operator.reports, *reports, *extenders)
    return Plan(actions, reports, requeue_after, chains=agents.chains)


def _removing(snapshot: Snapshot) -> Plan:
    """The way out: what was there before the operator comes back, then our objects go."""
    removal = remove(snapshot)
    stepped = removal.stepped
    conditions = removal_conditions(snapshot, removal)
    status = removal_status(snapshot, stepped, conditions)
    cluster_operator = report_cluster_operator(snapshot, status["conditions"], removal.progress)
    needed = () if removal.done else _static_resources(snapshot)
    work = (*needed, *stepped.actions)
    actions = _in_order(snapshot, work, conditions, status, stepped)
    requeue_after = soonest(stepped.requeue_after, cluster_operator.requeue_after)
    left: tuple[Action, ...] = ()
    chains: Mapping[str, tuple[Action, ...]] = {}
    if removal.done:
        chains = removed_agents(snapshot)
        left = (
            *forget(SCHEDULER_PROFILES, snapshot.scheduler_profiles or {}),
            *forget(SCHEDULER_EXTENDERS, snapshot.scheduler_extenders or {}),
        )
    return Plan(actions, (*cluster_operator.reports, *left), requeue_after, chains=chains)


def _in_order(
    snapshot: Snapshot,
    work: tuple[Action, ...],
    conditions: Sequence[Condition],
    status: Mapping[str, Any],
    stepped: Stepped,
) -> tuple[Action, ...]:
    """Work, then the status, which promises that what it names exists, then what rests on it.

    But when the API refused some of the work, people must be told before it is tried again.
    """
    told = complaint(snapshot, conditions)
    if told:
        return (*told, *work)
    return (*work, *write_status(snapshot, status, *stepped.events), *stepped.afterwards)


def _write_observed(kubescheduler: Object, composition: Composition) -> Action:
    spec = {**(kubescheduler.get("spec") or {}), "observedConfig": composition.observed_config}
    text = json.dumps(composition.observed_config, sort_keys=True)
    event = Event("ObservedConfigChanged", f"Writing updated observed config: {text}")
    return Replace(KUBE_SCHEDULERS, {**kubescheduler, "spec": spec}, events=(event,))


def _targets(snapshot: Snapshot, content: Content) -> tuple[Action, ...]:
    """Writes that make the target ConfigMaps say what is wanted."""
    wanted = [config_map(snapshot.platform, name, data) for name, data in content.parts.items()]
    return tuple(
        action
        for obj in wanted
        for action in apply(CONFIG_MAPS, snapshot.config_maps, obj, ("data",))
    )


def _static_resources(snapshot: Snapshot) -> tuple[Action, ...]:
    account = installer_service_account(snapshot.platform, snapshot.settings.image_pull_secrets)
    # Where we are told nothing about them, what somebody else has set stays.
    fields = [f for f in ("automountServiceAccountToken", "imagePullSecrets") if f in account]
    return apply(SERVICE_ACCOUNTS, snapshot.service_accounts, account, fields)


def _report_extenders(
    snapshot: Snapshot, own: Sequence[ExtenderVerdict], secondary: Secondary, agents: Agents
) -> tuple[Action, ...]:
    return report_extenders(
        snapshot.scheduler_extenders or {},
        (*own, *secondary.extenders),
        {**secondary.agents, **agents.health},
        snapshot.now,
    )
