"""The plans for all SecondarySchedulers. They share nothing but schedulerNames.

An error in one, even a defect of the operator, stops neither the others nor the control plane. It
does not stop the observation of that one either: whether it gets Pods depends on what it does now.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

from ...base import names
from ...base.defects import DEFECT
from ...base.findings import Finding
from ...base.json_text import parse_json
from ...base.objects import Object, annotation, is_being_deleted, label
from ...config.effective.attachment import Refusal, is_ours
from ...config.effective.attribution import attribute_extenders, attribute_profiles
from ...config.effective.control_plane.recorded_inputs import read_inputs
from ...config.effective.extenders.validate import ExtenderResult
from ...config.effective.facts import Facts
from ...config.effective.objects import Objects
from ...config.effective.profiles.validate import ProfileResult
from ...config.effective.secondary.request import SchedulerRequest
from ...config.effective.secondary.request import read as read_request
from ...config.effective.secondary.scheduler import (
    NOT_ALLOWED,
    DefectiveSecondary,
    EffectiveSecondary,
    effective_secondaries,
    running_names,
)
from ...config.language.command_line import parse
from ...config.language.feature_gates import FLAG as FEATURE_GATES
from ...config.language.feature_gates import Gates, parse_gates
from ...config.language.schema import DEFAULT_SCHEDULER
from ...config.language.validation.configuration import Target
from ...config.language.versions import Version
from ...config.language.warnings.configuration import filters_of_all_profiles, scheduler_names
from ...kube.resource import CONFIG_MAPS, DEPLOYMENTS, PODS, SECONDARY_SCHEDULERS, ObjectRef
from ..extenders.agents import of_sidecars
from ..extenders.status import AgentHealth
from ..model import operand_pods
from ..model.apply import deletions, keep
from ..model.plan import Action, PlacementQuestion, soonest
from ..model.snapshot import Snapshot
from ..status.conditions import Condition, is_true
from ..status.in_use import InUse
from ..status.object_status import ObjectPlan, defect, objects_condition, with_status
from .assignment import NOT_KNOWN, Claim, assigned_pods, claim_of, overlap_findings
from .content import (
    Existing,
    SecondaryContent,
    config_map,
    content_of,
    keep_deployment,
    keep_static_objects,
    running_hash,
)
from .desired import DesiredScheduler, OperandDefaults, desired_scheduler
from .gate import Gate, GateInput, SecondaryCheck, checks_condition, no_gate
from .history import BAD, History, HistoryEntry, begun, find, kept, last_good, with_outcome
from .history import read as read_history
from .in_use import in_use
from .outcome import SchedulerPod, content_outcome, read_pod
from .status import SchedulerState, report


@dataclass(frozen=True, slots=True)
class SecondarySchedulers:
    write_sets: Mapping[ObjectRef, tuple[Action, ...]] = field(default_factory=dict)
    # of KubeScheduler: whether any SecondaryScheduler is Degraded, and whether an edit waits
    conditions: tuple[Condition, ...] = ()
    results: tuple[ProfileResult, ...] = ()  # for their SchedulerProfiles
    extenders: tuple[ExtenderResult, ...] = ()
    agents: Mapping[str, AgentHealth] = field(default_factory=dict)  # by SchedulerExtender
    # schedulerName -> the scheduler that serves it, including the control plane's
    served: Mapping[str, str] = field(default_factory=dict)
    # the schedulerNames of those with `spec.assign` that do not schedule
    waiting: frozenset[str] = frozenset()
    # what they run of the objects attached to them, by SecondaryScheduler
    in_use: Mapping[str, InUse] = field(default_factory=dict)
    # the checks of placements, by SecondaryScheduler; without those that are not checked
    checks: Mapping[str, SecondaryCheck] = field(default_factory=dict)
    # seconds until the next reconcile if nothing changes; None if none is needed
    requeue_after: float | None = None

    @property
    def simulations(self) -> tuple[PlacementQuestion, ...]:
        questions = (check.question for check in self.checks.values())
        return tuple(question for question in questions if question is not None)


@dataclass(frozen=True, slots=True)
class _Planned:
    """The part of SecondarySchedulers that comes from one of them."""

    name: str
    plan: ObjectPlan
    results: tuple[ProfileResult, ...] = ()
    extenders: tuple[ExtenderResult, ...] = ()
    agents: Mapping[str, AgentHealth] = field(default_factory=dict)
    waiting: frozenset[str] = frozenset()
    in_use: InUse | None = None
    check: SecondaryCheck | None = None


def secondary_schedulers(
    snapshot: Snapshot,
    objects: Objects,
    facts: Facts,
    unmanaged: Container[str] = (),
    gate: Gate = no_gate,
) -> SecondarySchedulers:
    """Plan all SecondarySchedulers: compose them, then roll out and report each by itself.

    Those that are `unmanaged` are only observed and reported. `gate` checks their placements.
    """
    if objects.secondaries:
        running = replace(facts.control_plane, filters=main_filters(snapshot, facts.version))
        facts = replace(facts, control_plane=running)
    effective = effective_secondaries(objects, facts, control_plane_names(snapshot))
    operand = OperandDefaults(
        facts.image or "", snapshot.settings.image_pull_secrets, snapshot.settings.operator_image
    )
    planned = [
        _contained(snapshot, operand, made, unmanaged, gate)
        for made in effective.schedulers
        if not is_being_deleted(made.obj)
    ]
    together = _together(planned)
    waiting = checks_condition(snapshot.status, together.checks)
    return replace(together, conditions=(*together.conditions, *waiting), served=effective.served)


def observed_schedulers(snapshot: Snapshot) -> SecondarySchedulers:
    """Observe and report all, after an unexpected error of `secondary_schedulers`."""
    error = RuntimeError("the step that composes all SecondarySchedulers failed")
    planned = [
        _defect(snapshot, name, error)
        for name, obj in sorted(snapshot.secondaries.schedulers.items())
        if not is_being_deleted(obj)
    ]
    return replace(_together(planned), conditions=())  # KubeScheduler has that of the step


def _together(planned: Sequence[_Planned]) -> SecondarySchedulers:
    return SecondarySchedulers(
        {SECONDARY_SCHEDULERS.named(s.name): s.plan.actions for s in planned if s.plan.actions},
        (
            objects_condition(
                names.SECONDARY_DEGRADED,
                "SecondarySchedulerDegraded",
                {f"{scheduler.name}: ": scheduler.plan.degraded for scheduler in planned},
            ),
        ),
        tuple(result for scheduler in planned for result in scheduler.results),
        tuple(result for scheduler in planned for result in scheduler.extenders),
        {name: health for scheduler in planned for name, health in scheduler.agents.items()},
        waiting=frozenset(name for scheduler in planned for name in scheduler.waiting),
        in_use={s.name: s.in_use for s in planned if s.in_use is not None},
        checks={s.name: s.check for s in planned if s.check is not None},
        requeue_after=soonest(*(scheduler.plan.requeue_after for scheduler in planned)),
    )


def _contained(
    snapshot: Snapshot,
    operand: OperandDefaults,
    made: EffectiveSecondary | DefectiveSecondary,
    unmanaged: Container[str],
    gate: Gate,
) -> _Planned:
    """Plan one scheduler; an unexpected error becomes its condition."""
    if isinstance(made, DefectiveSecondary):
        return _defect(snapshot, made.name, made.error)
    try:
        if made.name in unmanaged:
            return _observed(snapshot, snapshot.secondaries.schedulers[made.name])
        return _planned(snapshot, operand, made, gate)
    except Exception as error:
        return _defect(snapshot, made.name, error)


def _defect(snapshot: Snapshot, name: str, error: Exception) -> _Planned:
    """Report an unexpected error; if it also prevents the observation, nothing is assigned."""
    obj = snapshot.secondaries.schedulers[name]
    assigned = () if assigned_pods(obj) is None else (_UNKNOWN,)
    failed = defect(snapshot, SECONDARY_SCHEDULERS, obj, error, ("assignment",), assigned)
    finding = Finding(names.DEGRADED, DEFECT, "", failed.degraded, blocking=True)
    try:
        return _observed(snapshot, obj, finding)
    except Exception:
        return _Planned(name, failed, waiting=frozenset(running_names(obj)))


_UNKNOWN: Final = Condition(
    names.ASSIGNED,
    "False",
    NOT_KNOWN,
    f"whether this scheduler schedules is not known; new Pods go to {DEFAULT_SCHEDULER}",
)


def _observed(snapshot: Snapshot, obj: Object, *findings: Finding) -> _Planned:
    """Report what runs, and write nothing else."""
    request, serving = read_request(obj), running_names(obj)
    claim = _claim(snapshot, obj, serving)
    state, _ = _observe(snapshot, obj, request, findings, claim)
    allowed = snapshot.platform.secondary_namespaces(snapshot.settings.secondary_namespaces)
    state = replace(state, readable=request.namespace in allowed)
    planned = with_status(snapshot, SECONDARY_SCHEDULERS, obj, report(snapshot, state), ())
    return _Planned(request.name, planned, waiting=_waiting(obj, claim, serving))


def _planned(
    snapshot: Snapshot, operand: OperandDefaults, made: EffectiveSecondary, gate: Gate
) -> _Planned:
    obj = snapshot.secondaries.schedulers[made.name]
    desired = desired_scheduler(made, snapshot.platform, operand)
    serving = (*desired.composition.scheduler_names, *running_names(obj))
    claim = _claim(snapshot, made.obj, serving)
    overlaps = overlap_findings(claim) if claim is not None else ()
    version = made.target.gates.version
    further = (*made.findings, *overlaps)
    check = _checked(snapshot, made, desired, further, gate)
    planned, entry, runs = plan(snapshot, obj, desired, version, further, claim, check)
    refusal = _refusal(made.name, desired.content, entry)
    profiles = attribute_profiles(made.profiles, refusal, refusal.config if refusal else {})
    extenders = attribute_extenders(made.extenders, refusal)
    if check is not None and check.waits:
        unused = f"this may be of an edit that waits; {_STATE_OF_CHECK} {made.name} has the reason"
        profiles = tuple(replace(result, unused=unused) for result in profiles)
        extenders = tuple(replace(result, unused=unused) for result in extenders)
    return _Planned(
        made.name,
        planned,
        profiles,
        extenders,
        _agent_health(snapshot, desired),
        _waiting(obj, claim, serving),
        runs,
        check,
    )


_STATE_OF_CHECK: Final = f"{names.PLACEMENT_CHECK_PROGRESSING} of SecondaryScheduler"


def _checked(
    snapshot: Snapshot,
    made: EffectiveSecondary,
    desired: DesiredScheduler,
    further: Sequence[Finding],
    gate: Gate,
) -> SecondaryCheck | None:
    """Ask the gate about what is composed; without an error, its content may wait."""
    if gate == no_gate or not made.is_permitted:
        return None
    obj = snapshot.secondaries.schedulers[made.name]
    existing = snapshot.secondaries.objects.get(made.name, {})
    blocks = any(finding.blocking for finding in (*further, *desired.findings))
    config_maps = _own_contents(existing)
    asked = GateInput(
        obj,
        made,
        desired,
        None if blocks else desired.content,
        existing.get(DEPLOYMENTS, {}).get(made.name),
        _contents(existing),
        config_maps,
        read_history(obj),
    )
    return gate(asked)


def _claim(snapshot: Snapshot, obj: Object, serving: Sequence[str]) -> Claim | None:
    schedulers = snapshot.secondaries.schedulers.values()
    return claim_of(obj, schedulers, serving, snapshot.pending_pods, snapshot.assignment_way)


def _waiting(obj: Object, claim: Claim | None, serving: Sequence[str]) -> frozenset[str]:
    """Return the schedulerNames whose Pods wait, if `obj` claims Pods and does not schedule."""
    waits = claim is not None and not is_true(obj, names.AVAILABLE)
    return frozenset(serving) if waits else frozenset()


def _agent_health(snapshot: Snapshot, desired: DesiredScheduler) -> dict[str, AgentHealth]:
    request = desired.request
    pods = tuple(snapshot.secondaries.objects.get(request.name, {}).get(PODS, {}).values())
    workload = f"{DEPLOYMENTS.kind}/{request.name}"
    return {
        agent.name: of_sidecars(agent, request.namespace, workload, pods)
        for agent in request.sidecar_agents
    }


def _refusal(
    name: str, content: SecondaryContent | None, entry: HistoryEntry | None
) -> Refusal | None:
    """Read kube-scheduler's refusal of the desired content; None if it did not refuse it."""
    if content is None or entry is None or not entry.bad:
        return None
    verb = "refused" if entry.outcome == names.OUTCOME_REFUSED else "did not stay healthy with"
    state = (
        f'kube-scheduler {verb} configuration {entry.hash} of SecondaryScheduler "{name}"; correct '
        "or revert this setting"
    )
    return Refusal(content.config, entry.message, state)


# --- one scheduler: from its observed and desired state to writes and status ------------------


def plan(
    snapshot: Snapshot,
    obj: Object,
    desired: DesiredScheduler,
    version: Version,
    further: Sequence[Finding] = (),
    claim: Claim | None = None,
    check: SecondaryCheck | None = None,
) -> tuple[ObjectPlan, HistoryEntry | None, InUse]:
    """Return (plan for `obj`, history entry of the desired content, what it runs of its objects).

    There is an entry if that content was ever rolled out.

    The desired content is rolled out unless it is invalid or is known to fail; then the last known
    good content stays or returns. The Deployment removes a pod only after its successor is Ready,
    so scheduling continues during the rollout.

    `further` has the findings that are not about its configuration; a blocking one stops its
    rollout. `claim` has the pods of its `spec.assign`. `check` has the content that its placements
    permit; while an edit waits, it is the content in use.
    """
    name = obj["metadata"]["name"]
    existing = snapshot.secondaries.objects.get(name, {})
    findings = (*further, *desired.findings)
    if any(f.condition == names.DEGRADED and f.reason == NOT_ALLOWED for f in further):
        # The operator can neither read nor write in that namespace.
        state = SchedulerState(obj, desired.request, findings, readable=False, claim=claim)
        reported = report(snapshot, state)
        runs = in_use(state, desired.composition, None, {}, reported.status)
        return with_status(snapshot, SECONDARY_SCHEDULERS, obj, reported, ()), None, runs
    state, contents = _observe(snapshot, obj, desired.request, findings, claim)
    running = running_hash(state.deployment)
    content = None if any(finding.blocking for finding in findings) else desired.content
    permitted = content if check is None else check.content
    target = _target(permitted, state.history, running, contents)
    history = state.history
    work: list[Action] = []
    if target is not None:
        history = begun(history, target.hash, snapshot.now)
        work += keep_static_objects(desired.request, existing)
        work += _keep_config_map(obj, desired, target, existing)
        work += keep_deployment(desired.request, target, existing)
    state = replace(
        state, history=history, content=content, target=target, version=version, check=check
    )
    if not work:
        # Old ConfigMaps can wait until everything else is done.
        work += _prune(existing, history, state.pods, target, running)
    entry = find(history, content.hash) if content is not None else None
    # Why an edit may be rolled out is known only as long as it is not.
    is_new = target is not None and target.hash != running
    first = check is not None and check.passes and bool(check.record) and is_new
    reported = report(snapshot, state)
    planned = with_status(snapshot, SECONDARY_SCHEDULERS, obj, reported, work, first=first)
    config_maps = _own_contents(existing)
    runs = in_use(state, desired.composition, content, config_maps, reported.status)
    return planned, entry, runs


def _observe(
    snapshot: Snapshot,
    obj: Object,
    request: SchedulerRequest,
    findings: Sequence[Finding],
    claim: Claim | None,
) -> tuple[SchedulerState, dict[str, SecondaryContent]]:
    """Return (what runs, with what runs as the target; the contents that exist, by hash)."""
    name = obj["metadata"]["name"]
    existing = snapshot.secondaries.objects.get(name, {})
    deployment = existing.get(DEPLOYMENTS, {}).get(name)
    pods = tuple(read_pod(pod) for _, pod in sorted(existing.get(PODS, {}).items()))
    history, running = read_history(obj), running_hash(deployment)
    result = content_outcome(snapshot, deployment, pods, find(history, running))
    if result.outcome:
        history = with_outcome(history, running, result.outcome, snapshot.now, result.message)
    contents = _contents(existing)
    state = SchedulerState(
        obj=obj,
        request=request,
        findings=findings,
        deployment=deployment,
        pods=pods,
        history=history,
        result=result,
        target=contents.get(running),
        served=_served(pods, contents),
        images={key: content.image for key, content in contents.items()},
        claim=claim,
    )
    return state, contents


def _contents(existing: Existing) -> dict[str, SecondaryContent]:
    """Read the contents of existing ConfigMaps, by hash; ignore those with a wrong hash."""
    return {key: content_of(obj) for key, obj in _own_contents(existing).items()}


def _own_contents(existing: Existing) -> dict[str, Object]:
    """The ConfigMaps of contents, by hash."""
    found = {}
    for obj in existing.get(CONFIG_MAPS, {}).values():
        content_hash = content_of(obj).hash
        if not is_being_deleted(obj) and label(obj, names.CONFIG_HASH_LABEL) == content_hash:
            found[content_hash] = obj
    return found


def _served(
    pods: Sequence[SchedulerPod], contents: Mapping[str, SecondaryContent]
) -> frozenset[str]:
    """Return the schedulerNames that every Ready pod serves; any of them may lead."""
    served = [
        frozenset(scheduler_names(contents[pod.hash].config) if pod.hash in contents else ())
        for pod in pods
        if pod.ready
    ]
    return frozenset.intersection(*served) if served else frozenset()


def _target(
    desired: SecondaryContent | None,
    history: History,
    running: str,
    contents: dict[str, SecondaryContent],
) -> SecondaryContent | None:
    """Choose the content to run; None if none can run."""
    known = find(history, desired.hash) if desired is not None else None
    if desired is not None and (known is None or known.outcome not in BAD):
        return desired
    entry = find(history, running)
    if desired is None and running in contents and (entry is None or not entry.bad):
        return contents[running]
    good = last_good(history, contents.__contains__)
    if good:
        return contents[good]
    # There is no last known good content, so the desired or the running one stays.
    return desired or contents.get(running)


def _keep_config_map(
    obj: Object, desired: DesiredScheduler, target: SecondaryContent, existing: Existing
) -> tuple[Action, ...]:
    """Create the ConfigMap of `target`; an existing one is immutable except for its metadata."""
    wanted = config_map(desired.request, target)
    known = existing.get(CONFIG_MAPS, {})
    settings = _settings(obj, desired, known.get(wanted["metadata"]["name"]))
    if target.inputs:
        wanted["metadata"]["annotations"] = {names.ACCEPTED_SETTINGS_ANNOTATION: target.inputs}
    elif settings and desired.content is not None and target.hash == desired.content.hash:
        # For `kubectl scheduler rollout undo`: the settings of users that led to this content.
        wanted["metadata"]["annotations"] = {names.ACCEPTED_SETTINGS_ANNOTATION: settings}
    return keep(CONFIG_MAPS, known, wanted, ())


def _settings(obj: Object, desired: DesiredScheduler, existing: Object | None) -> str:
    """The settings of users that lead to the desired content.

    The managed scheduler is made of other objects, which its own annotation has. Of another one,
    several specs can lead to one content, and the first one stays recorded.
    """
    if is_ours(obj):
        return annotation(obj, names.ACCEPTED_SETTINGS_ANNOTATION)
    recorded = annotation(existing, names.ACCEPTED_SETTINGS_ANNOTATION) if existing else ""
    inputs = read_inputs(recorded) if recorded else None
    return recorded if inputs is not None and inputs.secondary is not None else desired.inputs


def _prune(
    existing: Existing,
    history: History,
    pods: Sequence[SchedulerPod],
    target: SecondaryContent | None,
    running: str,
) -> tuple[Action, ...]:
    """Delete ConfigMaps that no pod runs and no rollout would return to."""
    in_use = [*(pod.hash for pod in pods), running, *([target.hash] if target else [])]
    stays = kept(history, in_use)
    known = existing.get(CONFIG_MAPS, {}).items()
    unneeded = {n: obj for n, obj in known if label(obj, names.CONFIG_HASH_LABEL) not in stays}
    return deletions(CONFIG_MAPS, unneeded)


# --- the control plane's scheduler ------------------------------------------------------------


def control_plane_names(snapshot: Snapshot) -> tuple[str, ...]:
    """Read the schedulerNames in the operator's configuration of the control plane's scheduler."""
    return _names_in(_part(snapshot, names.CONFIG, names.CONFIG_KEY) or "{}")


@lru_cache(maxsize=16)
def _names_in(text: str) -> tuple[str, ...]:
    try:
        return scheduler_names(parse_json(text))
    except (ValueError, AttributeError, TypeError):
        return scheduler_names({})  # another writer has changed the ConfigMap


def main_filters(snapshot: Snapshot, version: Version) -> frozenset[str] | None:
    """Return the filter plugins of default-scheduler; None if its configuration is unknown.

    All schedulers place pods on the same nodes, without knowing each other's latest decisions. With
    the same filters, a node that is full for one is full for the other a moment later. With
    different filters, one fills nodes by rules that the other does not apply. So secondary
    schedulers are compared with the control plane's: of two that differ, one differs from that.
    """
    config = _part(snapshot, names.CONFIG, names.CONFIG_KEY)
    pod = _part(snapshot, names.POD, names.POD_KEY)
    return _main_filters(config, pod, version) if config and pod else None


@lru_cache(maxsize=4)
def _main_filters(config: str, pod: str, version: Version) -> frozenset[str] | None:
    try:
        flags = parse(operand_pods.read(parse_json(pod)).arguments)
        target = Target(Gates(version, parse_gates(flags.get(FEATURE_GATES, ()))))
        return filters_of_all_profiles({"profiles": [_main_profile(parse_json(config))]}, target)
    except (KeyError, TypeError, AttributeError, ValueError):
        return None  # another writer has changed the ConfigMap


def _main_profile(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Choose the profile default-scheduler, which serves most pods, else the first profile."""
    profiles: list[Mapping[str, Any]] = config.get("profiles") or [{}]
    names_ = [profile.get("schedulerName") or DEFAULT_SCHEDULER for profile in profiles]
    index = names_.index(DEFAULT_SCHEDULER) if DEFAULT_SCHEDULER in names_ else 0
    return profiles[index]


def _part(snapshot: Snapshot, name: str, key: str) -> str:
    return str(((snapshot.config_maps.get(name) or {}).get("data") or {}).get(key) or "")
