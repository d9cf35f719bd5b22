"""The steps of a reconcile; operator/engine/reconcile.py has their order.

A step passes values from one kind's package to another: the packages of the kinds do not know each
other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from ...base import names
from ...base.findings import Finding
from ...base.json_text import exceeds_depth
from ...base.limits import DEPTH
from ...base.management import REMOVED
from ...base.names import OVERRIDES
from ...base.objects import mapping
from ...config.effective.attachment import (
    CONTROL_PLANE,
    PROFILE,
    rejection_findings,
)
from ...config.effective.attribution import attribute_extenders, attribute_profiles
from ...config.effective.control_plane.overrides import ARGUMENTS
from ...config.effective.control_plane.recorded_inputs import (
    NOT_RECORDED,
    RecordedInputs,
    read_inputs,
)
from ...config.effective.control_plane.scheduler import (
    EffectiveControlPlane,
    effective_control_plane,
)
from ...config.effective.facts import Facts
from ...config.effective.managed import moved_objects
from ...config.effective.settings.validate import SettingsResult
from ...config.language.validation.newer_versions import newer_version_findings
from ...kube.resource import (
    CONFIG_MAPS,
    KUBE_SCHEDULERS,
    NETWORK_POLICIES,
    SCHEDULER_PROFILES,
    SERVICE_ACCOUNTS,
    ObjectRef,
)
from ..controlplane.adoption.adopted import Adopted, adoption_conditions
from ..controlplane.adoption.config_files import unneeded_readers
from ..controlplane.cluster_operator import report_cluster_operator
from ..controlplane.conditions import (
    constant_conditions,
    failure_conditions,
    from_findings,
    removal_conditions,
    revision_condition,
    rollout_conditions,
    unmanaged_conditions,
)
from ..controlplane.desired import (
    accepted_settings,
    content_of,
    facts_of,
    facts_of_secondaries,
    image_findings,
    objects_of,
    size_findings,
)
from ..controlplane.managed import managed_name, platform_condition, scheduler_conditions
from ..controlplane.placement_gate import (
    CheckedSpecs,
    RevisionCheck,
    settings_in_effect,
)
from ..controlplane.placement_gate import check_placements as decide_placements
from ..controlplane.revision.content import RevisionContent
from ..controlplane.revision.credentials import gather_credentials
from ..controlplane.revision.history import refusal_of
from ..controlplane.revision.revise import revise as decide_revision
from ..controlplane.rollout.guards import plan_guards
from ..controlplane.rollout.observe import observe as observe_pods
from ..controlplane.rollout.prune import prune
from ..controlplane.rollout.removal import remove as remove_from_nodes
from ..controlplane.rollout.rollout_step import RolloutStep
from ..controlplane.status import (
    in_order,
    new_status,
    not_observed,
    observed_generations,
    status_of,
    write_node_statuses,
    write_status,
)
from ..controlplane.target_config_maps import (
    config_map,
    installer_service_account,
    keep_record,
    mirror_policy,
    network_policies,
)
from ..controlplane.versions import next_version_condition
from ..diagnostics import unknown_scheduler_names, unmanaged_schedulers, writes
from ..extenders.agents import ControlPlaneAgents, removed_agents
from ..extenders.status import report_extenders
from ..model import operand_pods
from ..model.apply import apply
from ..model.plan import Action, Event, PlacementQuestion, Plan, Replace, soonest
from ..model.snapshot import Snapshot
from ..profiles.status import report_profiles
from ..secondary.reconcile import SecondarySchedulers, secondary_schedulers
from ..settings.status import report_settings
from ..status.conditions import Condition
from ..status.in_use import InUse
from ..status.scheduler_lease import control_plane_lease
from .attached import attached_to_secondaries, forget_accepted, unobserved_objects
from .held_edits import load_edit
from .in_use import of_static_pods
from .secondary_gate import secondary_gate
from .stages import (
    DecidedControlPlane,
    Diagnoses,
    Everywhere,
    Filled,
    PreparedRevision,
    Revised,
)

STATUS_REFUSED: Final = "StatusRefused"


def record_platform(snapshot: Snapshot) -> Mapping[ObjectRef, tuple[Action, ...]]:
    """Record the decision about the platform, in a write set of its own."""
    if snapshot.management.state == REMOVED:
        return {}  # it is deleted with everything else
    writes = keep_record(snapshot)
    ref = CONFIG_MAPS.named(names.PLATFORM_RECORD, snapshot.platform.target_namespace)
    return {ref: writes} if writes else {}


def reconcile_secondary_schedulers(snapshot: Snapshot, image: str) -> SecondarySchedulers:
    """Compose, roll out and report every SecondaryScheduler, each in a write set of its own.

    The one in the place of the control plane's scheduler is Managed by managed_steps.py alone; here
    it is only observed.
    """
    objects, facts = objects_of(snapshot), facts_of_secondaries(snapshot, image)
    gate = secondary_gate(snapshot, load_edit(snapshot))
    own = managed_name(snapshot)
    if not own:
        return secondary_schedulers(snapshot, objects, facts, gate=gate)
    return secondary_schedulers(snapshot, moved_objects(objects, own), facts, {own}, gate)


def diagnose(snapshot: Snapshot, secondary: SecondarySchedulers) -> Diagnoses:
    """Find pods with an unknown schedulerName, and schedulers that the operator does not manage."""
    served = secondary.served
    pods = unknown_scheduler_names.without_scheduler(snapshot.pending_pods, served, snapshot.now)
    conditions = (
        unknown_scheduler_names.condition(pods, unread=snapshot.pending_unread),
        unmanaged_schedulers.condition(
            unmanaged_schedulers.unmanaged(snapshot, served), unread=snapshot.bindings_unread
        ),
        *platform_condition(snapshot),
        *api_conditions(snapshot),
    )
    # Pods that wait for an absent scheduler are listed as well: its status names them.
    return Diagnoses(pods, frozenset(served) - secondary.waiting, conditions)


def decide(snapshot: Snapshot, everywhere: Everywhere, kept: Adopted) -> DecidedControlPlane:
    """Compose the effective configuration from the objects of the control plane.

    While settings have an error, those of the last accepted revision replace them. So an error in
    one field delays no edits of other fields or objects.
    """
    facts = facts_of(snapshot, everywhere.image, kept)
    control_plane = effective_control_plane(
        objects_of(snapshot),
        facts,
        lambda: accepted_settings(snapshot, observe_pods(snapshot).disks),
    )
    credentials = gather_credentials(snapshot)
    secondary = everywhere.secondary
    findings = (
        *kept.findings,
        *settings_findings(control_plane),
        *control_plane.findings,
        *(f for r in (*secondary.results, *secondary.extenders) for f in rejection_findings(r)),
        *image_findings(everywhere.image),
        *version_findings(facts),
        *credentials.findings,
        *_refused_statuses(snapshot),
    )
    return DecidedControlPlane(control_plane, credentials, findings)


def settings_findings(control_plane: EffectiveControlPlane) -> tuple[Finding, ...]:
    """Report the errors of OperatorSettings, and what is in use instead."""
    settings = control_plane.settings
    return rejection_findings(settings) if settings is not None else ()


def version_findings(facts: Facts) -> tuple[Finding, ...]:
    """Warn about a kube-scheduler that is newer than the recorded rules."""
    if not facts.is_stock:  # its tag need not be a version of Kubernetes
        return ()
    return newer_version_findings(facts.version, names.CONFIGURATION_WARNINGS)


def write_observed_config(
    snapshot: Snapshot,
    everywhere: Everywhere,
    decided: DecidedControlPlane,
    agents: ControlPlaneAgents,
) -> Plan | tuple[Action, ...]:
    """Write `spec.observedConfig` first if it changed: the next reconcile continues from there.

    While writes fail, the other steps continue: a rejected or futile write must not stop them.

    Returns:
        The whole plan, or the write that follows the others; empty if nothing changed.
    """
    composition = decided.control_plane.composition
    observed = composition.observed_config
    if (snapshot.spec.get("observedConfig") or {}) == observed:
        return ()
    if exceeds_depth(snapshot.spec.get(OVERRIDES), DEPTH):
        return ()  # the snapshot does not have all of the spec, so it cannot be written
    kubescheduler = snapshot.kubescheduler or {}
    spec = {**(kubescheduler.get("spec") or {}), "observedConfig": observed}
    text = json.dumps(observed, sort_keys=True)
    event = Event("ObservedConfigChanged", f"Writing updated observed config: {text}")
    write = Replace(KUBE_SCHEDULERS, {**kubescheduler, "spec": spec}, events=(event,))
    if snapshot.last_error or KUBE_SCHEDULERS in {w.ref.resource for w in snapshot.futile_writes}:
        return (write,)
    in_use = of_static_pods(everywhere.secondary, decided, None)
    settings = decided.control_plane.settings
    reports = (
        *_attached_reports(snapshot, everywhere.secondary, decided, agents, None, in_use),
        *report_settings(snapshot.operator_settings, settings, None, snapshot.now),
    )
    return Plan((write,), reports, write_sets=agents.write_sets)


def fill_revision(snapshot: Snapshot, prepared: PreparedRevision) -> Filled:
    """Make the content that a revision would have, unless a finding blocks it."""
    content, edits = None, prepared.edits
    if edits is not None and not any(finding.blocking for finding in prepared.findings):
        credentials = edits.proposed.credentials.parts
        content = content_of(edits.proposed.control_plane, credentials, prepared.adopted)
    too_large = size_findings(content) if content is not None else ()
    return Filled(None if too_large else content, observe_pods(snapshot), too_large)


def check_placements(
    snapshot: Snapshot, prepared: PreparedRevision, filled: Filled
) -> RevisionCheck:
    """Keep the rules in use while an edit of them is simulated or held."""
    observation, edits = filled.observation, prepared.edits
    settings = settings_in_effect(snapshot, prepared.settings)
    specs = edits.specs if edits is not None else CheckedSpecs()
    existing = partial(decide_revision, snapshot, None, observation.swapping, observation.disks)
    return decide_placements(snapshot, filled.content, settings, specs, existing)


def revise(snapshot: Snapshot, filled: Filled, check: RevisionCheck | None) -> Revised:
    """Cut a revision if the content changed."""
    content, observation = check.content if check is not None else None, filled.observation
    revisions = decide_revision(snapshot, content, observation.swapping, observation.disks)
    return Revised(
        filled, check, _targets(snapshot, content) if content is not None else (), revisions
    )


def report(
    snapshot: Snapshot,
    everywhere: Everywhere,
    prepared: PreparedRevision,
    revised: Revised,
    rolled: RolloutStep,
) -> Plan:
    revisions, check = revised.revisions, revised.check
    conditions = _conditions(everywhere, prepared, revised, rolled)
    status = status_of(rolled, conditions)
    cluster_operator = report_cluster_operator(snapshot, status["conditions"])
    decided = prepared.decided
    work = (
        *_static_resources(snapshot),
        *prepared.adopted.actions,
        *(decided.credentials.actions if decided is not None else ()),
        *mirror_policy(snapshot),
        *revised.targets,
        *revisions.actions,
        *rolled.actions,
    )
    afterwards = (*rolled.afterwards, *prepared.observing)
    actions = in_order(snapshot, work, conditions, status, rolled.events, afterwards)
    if not actions:
        # Guards and old revisions can wait until everything else is done.
        actions = plan_guards(rolled) or prune(rolled)
    reports: tuple[Action, ...] = ()
    if decided is not None:
        secondary, agents = everywhere.secondary, prepared.agents
        in_use = of_static_pods(secondary, decided, revised, rolled, conditions)
        reports = (
            *_attached_reports(snapshot, secondary, decided, agents, revised, in_use),
            *report_settings(
                snapshot.operator_settings,
                _marked_settings(prepared.settings, revised),
                in_use.get(CONTROL_PLANE),
                snapshot.now,
                check.record if check is not None else None,
                (*(check.events if check is not None else ()), *prepared.upgrade.events),
                prepared.upgrade.record,
            ),
        )
    return Plan(
        actions,
        (*cluster_operator.reports, *reports),
        soonest(
            rolled.requeue_after,
            revisions.requeue_after,
            cluster_operator.requeue_after,
            control_plane_lease(snapshot)[1],
            prepared.agents.requeue_after,
            prepared.adopted.requeue_after,
            check.requeue_after if check is not None else None,
            prepared.upgrade.requeue_after,
        ),
        write_sets=prepared.agents.write_sets,
        simulations=_simulations(check),
        upgrades=prepared.upgrade.questions,
    )


def _conditions(
    everywhere: Everywhere,
    prepared: PreparedRevision,
    revised: Revised,
    rolled: RolloutStep,
) -> tuple[Condition, ...]:
    snapshot, failures, check = rolled.snapshot, prepared.failures, revised.check
    control_plane = prepared.decided.control_plane if prepared.decided is not None else None
    findings = (*prepared.findings, *revised.filled.findings)
    return (
        *from_findings(findings, _unused(revised)),
        *_adoption_conditions(snapshot, prepared, findings),
        *(
            failure_conditions(failures, (names.REVISION_DEGRADED,))
            or (revision_condition(revised.revisions),)
        ),
        Condition(names.STATIC_RESOURCES_DEGRADED, "False", "AsExpected"),
        *constant_conditions(snapshot),
        *rollout_conditions(rolled),
        *((check.condition,) if check is not None and check.condition is not None else ()),
        *filter(None, (prepared.upgrade.condition,)),
        *everywhere.secondary.conditions,
        *everywhere.diagnoses.conditions,
        *everywhere.loads.conditions,
        *(
            (next_version_condition(control_plane.composition),)
            if control_plane is not None
            else ()
        ),
        *failure_conditions(failures, (names.SECONDARY_DEGRADED, names.LOAD_POLICIES_DEGRADED)),
    )


def _adoption_conditions(
    snapshot: Snapshot, prepared: PreparedRevision, findings: Sequence[Finding]
) -> tuple[Condition, ...]:
    decided, adopted = prepared.decided, prepared.adopted
    if decided is None:
        return adoption_conditions(snapshot.platform, adopted, findings)
    composition = decided.control_plane.composition
    flags = mapping(composition.observed_config.get(ARGUMENTS))
    return adoption_conditions(
        snapshot.platform, adopted, findings, flags, composition.config or {}
    )


def _simulations(check: RevisionCheck | None) -> tuple[PlacementQuestion, ...] | None:
    """Request the simulation that the check of placements waits for; None without a check."""
    if check is None:
        return None
    return (check.question,) if check.question is not None else ()


def _attached_reports(
    snapshot: Snapshot,
    secondary: SecondarySchedulers,
    decided: DecidedControlPlane,
    agents: ControlPlaneAgents,
    revised: Revised | None,
    in_use: Mapping[str, InUse],
) -> tuple[Action, ...]:
    composition = decided.control_plane.composition
    refusal = refusal_of(revised.revisions.rejected) if revised is not None else None
    unused, used = _unused(revised), _used_inputs(revised)
    profiles = (
        result if used.profiles.get(result.name) == result.spec else replace(result, unused=unused)
        for result in attribute_profiles(composition.results, refusal, composition.config or {})
    )
    extenders = (
        result if used.extenders.get(result.name) == result.spec else replace(result, unused=unused)
        for result in attribute_extenders(composition.extenders, refusal)
    )
    return (
        *report_profiles(
            snapshot.scheduler_profiles or {},
            (*profiles, *secondary.results),
            in_use,
            snapshot.now,
        ),
        *report_extenders(
            snapshot.scheduler_extenders or {},
            (*extenders, *secondary.extenders),
            {**secondary.agents, **agents.health},
            in_use,
            snapshot.now,
        ),
    )


def _unused(revised: Revised | None) -> str:
    """Why no scheduler runs the settings that were composed; empty if one does, or will."""
    if revised is None:
        return ""
    rejected, check = revised.revisions.rejected, revised.check
    if rejected is not None:
        refused = rejected.outcome == names.OUTCOME_REFUSED
        did = "refused" if refused else "did not stay healthy with"
        return f"kube-scheduler {did} revision {rejected.number}, which has this"
    if check is not None and check.condition is not None and check.condition.status == "True":
        return "this is of an edit that waits; PlacementCheckProgressing has the reason"
    return ""


def _marked_settings(settings: SettingsResult | None, revised: Revised) -> SettingsResult | None:
    """The result for OperatorSettings; the parts about checks are always in use."""
    if settings is None or settings.spec is None:
        return settings
    own = {key: value for key, value in settings.spec.items() if key not in NOT_RECORDED}
    used = _used_inputs(revised).own_settings.get(names.CLUSTER, {})
    return settings if own == used else replace(settings, unused=_unused(revised))


def _used_inputs(revised: Revised | None) -> RecordedInputs:
    """The objects of the newest revision that was neither refused nor failed."""
    history = revised.revisions.history if revised is not None else ()
    used = next((revision for revision in reversed(history) if not revision.bad), None)
    return (read_inputs(used.inputs) if used is not None else None) or RecordedInputs({}, {})


def observed_conditions(snapshot: Snapshot) -> Sequence[Condition]:
    """The conditions that follow from an observation alone, whatever is desired."""
    static_pods = snapshot.platform.owns_static_pods
    return unmanaged_conditions(snapshot) if static_pods else scheduler_conditions(snapshot)


def report_failures(
    snapshot: Snapshot, failures: Sequence[Finding], observed: Sequence[Condition]
) -> Plan:
    """Report the failed steps, and what is observed, when a whole report is not possible."""
    if snapshot.kubescheduler is None:
        return Plan()
    failed = failure_conditions(failures, ())
    types = {condition.type for condition in failed}
    conditions = (*failed, *(condition for condition in observed if condition.type not in types))
    status = new_status(snapshot, conditions)
    cluster_operator = report_cluster_operator(snapshot, status["conditions"])
    return Plan(write_status(snapshot, status), cluster_operator.reports)


def report_unmanaged(
    snapshot: Snapshot, everywhere: Everywhere, failures: Sequence[Finding]
) -> Plan:
    """Report what is observed of the static Pods, and that the rest is not."""
    reported = (*observed_conditions(snapshot), *of_the_rest(snapshot, everywhere, failures))
    conditions = (*reported, *not_observed(snapshot, reported))
    ready = sum(operand_pods.read(pod).ready for pod in snapshot.operand_pods.values())
    generation = observed_generations(snapshot)["observedGeneration"]
    status = new_status(snapshot, conditions, observedGeneration=generation, readyReplicas=ready)
    cluster_operator = report_cluster_operator(snapshot, status["conditions"])
    reports = (
        *cluster_operator.reports,
        *attached_to_secondaries(snapshot, everywhere.secondary),
        *unobserved_objects(snapshot),
    )
    return Plan(
        write_status(snapshot, status),
        reports,
        soonest(cluster_operator.requeue_after, control_plane_lease(snapshot)[1]),
    )


def of_the_rest(
    snapshot: Snapshot, everywhere: Everywhere, failures: Sequence[Finding]
) -> tuple[Condition, ...]:
    """The conditions about everything but the control plane's scheduler."""
    return (
        *everywhere.secondary.conditions,
        *(everywhere.diagnoses.conditions or api_conditions(snapshot)),
        *everywhere.loads.conditions,
        *failure_conditions(failures, ()),
    )


def remove(snapshot: Snapshot, everywhere: Everywhere, failures: Sequence[Finding]) -> Plan:
    """Restore the earlier scheduler of every node, then delete the operator's objects."""
    removal = remove_from_nodes(snapshot)
    rolled = removal.step
    reported = (*removal_conditions(removal), *of_the_rest(snapshot, everywhere, failures))
    conditions = (*reported, *not_observed(snapshot, reported))
    left = write_node_statuses(snapshot, rolled.node_statuses)
    fields = {**observed_generations(snapshot), "nodeStatuses": left}
    status = new_status(snapshot, conditions, **fields)
    cluster_operator = report_cluster_operator(snapshot, status["conditions"], removal.progress)
    needed = () if removal.done else _static_resources(snapshot)
    work = (*needed, *unneeded_readers(snapshot, set()), *rolled.actions)
    actions = in_order(snapshot, work, conditions, status, rolled.events, rolled.afterwards)
    plan = Plan(
        actions,
        (*cluster_operator.reports, *attached_to_secondaries(snapshot, everywhere.secondary)),
        soonest(rolled.requeue_after, cluster_operator.requeue_after),
    )
    if removal.done:
        reports = (*plan.reports, *forget_accepted(snapshot))
        plan = replace(plan, reports=reports, write_sets=removed_agents(snapshot))
    return plan


def _refused_statuses(snapshot: Snapshot) -> Iterator[Finding]:
    """Report objects whose status the API server rejects: their own status cannot."""
    for ref, error in snapshot.write_errors.items():
        if ref.resource == SCHEDULER_PROFILES:
            yield PROFILE.finding(ref.name, STATUS_REFUSED, "status", error)


def api_conditions(snapshot: Snapshot) -> tuple[Condition, ...]:
    """Report futile writes, and a restore of etcd."""
    return (
        writes.futile_writes(snapshot.futile_writes),
        writes.restored(snapshot.restored_at, snapshot.now),
    )


def _targets(snapshot: Snapshot, content: RevisionContent) -> tuple[Action, ...]:
    """Write the desired content into the target ConfigMaps."""
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
    # Fields that the settings do not mention keep the values of others.
    fields = [f for f in ("automountServiceAccountToken", "imagePullSecrets") if f in account]
    return (
        *apply(SERVICE_ACCOUNTS, snapshot.service_accounts, account, fields),
        *(
            action
            for policy in network_policies(snapshot.platform)
            for action in apply(NETWORK_POLICIES, snapshot.network_policies, policy, ("spec",))
        ),
    )
