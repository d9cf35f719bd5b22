"""The status of the cluster's scheduler: what `status` prints, and the console's pages show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...base import names
from ...base.field_types import named
from ...base.management import MANAGED, management_state
from ...base.objects import Object, mapping
from ...base.platform import Platform
from ...config.effective.control_plane.recorded_inputs import profile_changes
from ...kube import resource as kinds
from ...kube.api import Api
from ...kube.errors import Forbidden
from ...kube.resource import Resource
from ...operator.controlplane.revision.history import Revision
from ...operator.model import operand_pods
from ...operator.status.conditions import condition_in
from ...operator.status.lease_reading import lease_problem
from ...operator.status.running import images_that_run
from ..checks.check import CheckState, ClusterFacts, Observed
from ..checks.condition_hints import advice
from ..checks.operation import INFORMATIONAL, NO_KUBESCHEDULER, severity, silence
from ..checks.table import NOT_OBSERVED, RUNNING, UNOBSERVED, run_checks
from ..cluster import cluster_configuration
from ..cluster.compare import parse_revision
from ..cluster.operands import identity, lease_of
from ..cluster.operator_objects import find_object, find_singleton, list_by_name
from ..cluster.revisions import (
    LaterRevision,
    later_revisions,
    list_revisions,
    nodes_by_revision,
)
from ..console.errors import CommandError, error_message

if TYPE_CHECKING:
    from ...kube.client import ApiClient


@dataclass(frozen=True, slots=True)
class StatusProblem:
    """What is wrong, and what to do."""

    condition: str  # or the check
    reason: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class ObjectWarning:
    """A warning about an object."""

    object: str
    message: str


@dataclass(frozen=True, slots=True)
class NodeState:
    """The scheduler of a control-plane node."""

    node: str
    revision: int  # 0: none
    target: int  # 0: none
    runs: int | None  # the revision of its pod, 0 for a stock one; None: it has no pod
    ready: bool
    restarts: int
    image: str
    leader: bool


@dataclass(frozen=True, slots=True)
class NodeWithScheduler(NodeState):
    """The same, with what its pod shows; null without a pod."""

    scheduler: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Assignment:
    """Whether the pods of `spec.assign` are assigned to a SecondaryScheduler."""

    scheduler: str
    assigned: bool
    message: str


@dataclass(frozen=True, slots=True)
class SecondaryState:
    """The state of a SecondaryScheduler."""

    name: str
    ready: int
    replicas: int
    available: str  # True, False or Unknown
    image: str
    leader: str


@dataclass(frozen=True, slots=True)
class LoadPolicyState:
    """The state of a LoadPolicy."""

    name: str
    source: str
    nodes: Mapping[str, Any]
    accepted: str  # True, False or Unknown
    available: str
    message: str


@dataclass(frozen=True, slots=True)
class ProfileState:
    """The state of a SchedulerProfile."""

    name: str
    scheduler_name: str
    scheduler: str  # the SecondaryScheduler that has it; empty: the control plane's scheduler
    state: str  # the reason of Accepted; empty: not observed
    generation: int
    accepted_generation: int
    message: str


@dataclass(frozen=True, slots=True)
class SettingsState:
    """The state of the OperatorSettings."""

    name: str
    pods: Sequence[str]  # fields of spec.pods that are set
    placement_check: str  # empty: off
    state: str
    message: str


@dataclass(frozen=True, slots=True)
class ExtenderState:
    """The state of a SchedulerExtender."""

    name: str
    scheduler: str
    state: str
    available: str
    endpoint: str  # empty: it is not called
    ready: int  # of its agents
    desired: int


@dataclass(frozen=True, slots=True)
class Status:
    """The state of the cluster's scheduler, its problems and the next steps."""

    healthy: bool
    profile: str
    profile_changed_by: str
    log_level: str
    management_state: str
    revision: int  # the latest; 0: none
    later_revisions: Sequence[LaterRevision]  # than those that nodes run
    lease_holder: str
    lease_problem: str
    profiling_since: int  # a revision; 0: off
    silence: str  # why the operator observes nothing now; empty: it does
    conditions: Mapping[str, str]  # of the ClusterOperator: type -> status
    progress: str
    progressing: bool
    problems: Sequence[StatusProblem]
    not_observed: Sequence[str]
    warnings: Sequence[ObjectWarning]
    assignments: Sequence[Assignment]
    managed: bool  # the provider runs the control plane's scheduler
    platform: str
    secondary_schedulers: Sequence[SecondaryState]
    events_in: str  # the namespace of the events to read
    nodes: Sequence[NodeState | NodeWithScheduler]
    load_policies: Sequence[LoadPolicyState]
    scheduler_profiles: Sequence[ProfileState]
    operator_settings: Sequence[SettingsState]
    scheduler_extenders: Sequence[ExtenderState]
    notes: Sequence[str] = named("", default=())  # what the reader may not see

    @property
    def hints(self) -> tuple[str, ...]:
        """What to do about the problems, each once."""
        return tuple(dict.fromkeys(one.hint for one in self.problems if one.hint))


async def read_status(api: ApiClient, platform: Platform, *, verbose: bool = False) -> Status:
    """Read the status.

    Raises:
        CommandError: the pods of the scheduler are not known.
    """
    # Loaded here, so that completion does not wait for it.
    from ..adoption.cluster_facts import facts_of_pods

    facts = await facts_of_pods(api, ClusterFacts(api.clock.now(), platform))
    scheduler = mapping(await find_singleton(api, kinds.SCHEDULERS))
    kubescheduler = await find_singleton(api, kinds.KUBE_SCHEDULERS)
    reported = await find_object(api, kinds.CLUSTER_OPERATORS.named(names.CLUSTEROPERATOR))
    if facts.operand_pods.error:
        raise CommandError(facts.operand_pods.error)
    pods = facts.operand_pods.get()
    revisions = await list_revisions(api, platform)
    profiling_since = _profiling_since(revisions)
    notes: list[str] = []
    profiles = await _listed(api, kinds.SCHEDULER_PROFILES, notes)
    extenders = await _listed(api, kinds.SCHEDULER_EXTENDERS, notes)
    settings = await _listed(api, kinds.OPERATOR_SETTINGS, notes)
    load_policies = await _listed(api, kinds.LOAD_POLICIES, notes)
    secondaries = await _listed(api, kinds.SECONDARY_SCHEDULERS, notes)
    kubeadm = await _kubeadm(api, platform)
    objects = {
        resource.kind: Observed({obj["metadata"]["name"]: obj for obj in listed})
        for resource, listed in (
            (kinds.SCHEDULER_PROFILES, profiles),
            (kinds.SCHEDULER_EXTENDERS, extenders),
            (kinds.OPERATOR_SETTINGS, settings),
            (kinds.SECONDARY_SCHEDULERS, secondaries),
            (kinds.LOAD_POLICIES, load_policies),
        )
    }
    with_objects = replace(facts, kubescheduler=Observed(kubescheduler), kinds=objects)
    observed = _observed(facts, with_objects)
    overall = {condition["type"]: condition for condition in _conditions(reported)}
    problems = [*_problems(kubescheduler, reported), *observed[CheckState.FAILED]]
    progressing = overall.get("Progressing", {})
    spec = mapping(mapping(kubescheduler).get("spec"))
    status = mapping(mapping(kubescheduler).get("status"))
    idle = lease_problem(facts.operand_lease.value, _lease_place(platform), "scheduler", facts.now)
    lease = mapping(facts.operand_lease.value)
    holder = "" if idle else str(mapping(lease.get("spec")).get("holderIdentity") or "")
    return Status(
        healthy=not problems and _is_reported_healthy(kubescheduler, overall),
        profile=mapping(scheduler.get("spec")).get("profile") or "LowNodeUtilization",
        profile_changed_by=profile_changes(spec, _good_inputs(revisions)),
        log_level=spec.get("logLevel") or "Normal",
        management_state=management_state(kubescheduler).state,
        revision=status.get("latestAvailableRevision", 0),
        later_revisions=later_revisions(
            revisions,
            nodes_by_revision(kubescheduler or {}),
            int(status.get("latestAvailableRevision") or 0),
        ),
        lease_holder=holder,
        lease_problem=facts.operand_lease.error or idle,
        profiling_since=profiling_since,
        silence=silence(facts),
        conditions={type_: c["status"] for type_, c in sorted(overall.items())},
        progress=progressing.get("message", ""),
        progressing=progressing.get("status") == "True",
        problems=problems,
        not_observed=[found.message for found in observed[CheckState.NOT_CHECKED]],
        warnings=[
            *(
                ObjectWarning(found.condition, found.message)
                for found in observed[CheckState.WARNING]
            ),
            *_warnings(kubescheduler, "KubeScheduler", *INFORMATIONAL),
            *(
                warning
                for obj in (*profiles, *extenders, *settings, *secondaries, *load_policies)
                for warning in _warnings(
                    obj, f"{obj['kind']} {obj['metadata']['name']}", names.WARNINGS
                )
            ),
            *(
                ObjectWarning(cluster_configuration.OWNER, sentence)
                for sentence in cluster_configuration.disagreements(
                    kubeadm, kubescheduler, [operand_pods.read(pod).image for pod in pods.values()]
                )
            ),
        ],
        assignments=list(_assignments(secondaries)),
        managed=not platform.owns_static_pods,
        platform=condition_in(status, names.PLATFORM_CHANGED).get("message", ""),
        secondary_schedulers=[_secondary(obj) for obj in secondaries],
        events_in=platform.operator_namespace,
        nodes=list(_nodes(status, pods, holder, verbose=verbose)),
        load_policies=[_load_policy(obj) for obj in load_policies],
        scheduler_profiles=[_profile(obj) for obj in profiles],
        operator_settings=[_settings(obj) for obj in settings],
        scheduler_extenders=[_extender(obj) for obj in extenders],
        notes=notes,
    )


def _is_reported_healthy(
    kubescheduler: Object | None, overall: Mapping[str, Mapping[str, Any]]
) -> bool:
    """Whether the ClusterOperator reports that all is well; it reports nothing unless Managed."""
    if management_state(kubescheduler).state != MANAGED:
        return True
    expected = {"Available": "True", "Degraded": "False"}
    return all(overall.get(type_, {}).get("status") == good for type_, good in expected.items())


def _lease_place(platform: Platform) -> str:
    lease = lease_of(platform)
    return f"{lease.namespace}/{lease.name}"


def _observed(
    facts: ClusterFacts, with_objects: ClusterFacts
) -> dict[CheckState, list[StatusProblem]]:
    """Return what the Pods, Deployments and Leases show now, whatever the conditions say.

    Also which of the objects the operator does not observe.
    """
    found: dict[CheckState, list[StatusProblem]] = {state: [] for state in CheckState}
    checks = (*RUNNING, *UNOBSERVED) if silence(facts) else RUNNING
    for result in (*run_checks(checks, facts), *run_checks(NOT_OBSERVED, with_objects)):
        problem = StatusProblem(result.check, "Observed", result.cause, result.hint)
        found[result.state].append(problem)
    return found


async def _listed(api: Api, resource: Resource, notes: list[str]) -> list[Object]:
    """List the objects of a kind by name; none, and a note, without permission."""
    try:
        objects = await list_by_name(api, resource) or {}
    except Forbidden as error:
        plural = f"{resource.kind.removesuffix('s')}s".replace("ys", "ies")
        notes.append(f"{plural} are not shown: {error_message(error)}")
        return []
    return [obj for _, obj in sorted(objects.items())]


async def _kubeadm(api: Api, platform: Platform) -> Object | None:
    """Return the ConfigMap of kubeadm; None without permission or without kubeadm."""
    if not platform.owns_static_pods or platform.cluster_config:
        return None
    try:
        return await find_object(api, cluster_configuration.REF)
    except Forbidden:
        return None


def _profiling_since(revisions: Sequence[Revision]) -> int:
    """Return the oldest of the latest good revisions with profiling on; 0 if it is off."""
    since = 0
    for revision in reversed([revision for revision in revisions if not revision.bad]):
        if not parse_revision(revision.content).config.get("enableProfiling"):
            break
        since = revision.number
    return since


def _good_inputs(revisions: Sequence[Revision]) -> str:
    """Return the recorded inputs of the latest good revision; empty without one."""
    return next((revision.inputs for revision in reversed(revisions) if not revision.bad), "")


def _nodes(
    status: Mapping[str, Any], pods: Mapping[str, Object], holder: str, *, verbose: bool
) -> Iterator[NodeState]:
    """Yield the state of each control-plane node; `holder` is that of the schedulers' Lease."""
    entries = {entry["nodeName"]: entry for entry in status.get("nodeStatuses") or ()}
    for node in sorted({*entries, *pods}):
        pod = operand_pods.read(pods[node]) if node in pods else None
        facts = (
            node,
            entries.get(node, {}).get("currentRevision", 0),
            entries.get(node, {}).get("targetRevision", 0),
            pod.revision if pod else None,
            bool(pod and pod.ready),
            pod.restarts if pod else 0,
            pod.image if pod else "",
            holder.startswith(f"{node}_"),
        )
        if verbose:
            yield NodeWithScheduler(*facts, identity(pods.get(node)))
        else:
            yield NodeState(*facts)


def _conditions(obj: Object | None) -> Sequence[Mapping[str, Any]]:
    conditions: Sequence[Any] | None = mapping(mapping(obj).get("status")).get("conditions")
    return conditions or ()


def _problems(
    kubescheduler: Object | None, cluster_operator: Object | None
) -> Iterator[StatusProblem]:
    if kubescheduler is None:
        yield StatusProblem(
            "KubeScheduler", "NotFound", NO_KUBESCHEDULER.cause, NO_KUBESCHEDULER.hint
        )
    for condition in _conditions(kubescheduler):
        if severity(condition, cluster_operator) is CheckState.FAILED:
            reason, message = condition.get("reason", ""), condition.get("message", "")
            hint = advice(condition["type"], reason).hint
            yield StatusProblem(condition["type"], reason, message, hint)


def _state(obj: Object) -> str:
    """Return the reason of Accepted; empty until the operator has observed the object."""
    status = mapping(obj.get("status"))
    if status.get("observedGeneration") != obj["metadata"].get("generation"):
        return ""
    return str(condition_in(status, names.ACCEPTED).get("reason", ""))


def _assignments(secondaries: Sequence[Object]) -> Iterator[Assignment]:
    """Yield whether Pods are assigned, for each SecondaryScheduler with `spec.assign`."""
    for obj in secondaries:
        condition = condition_in(mapping(obj.get("status")), names.ASSIGNED)
        if condition or mapping(obj.get("spec")).get("assign") is not None:
            message = condition.get("message") or "not observed by the operator yet"
            assigned = condition.get("status") == "True"
            name = obj["metadata"]["name"]
            yield Assignment(scheduler=name, assigned=assigned, message=message)


def _secondary(obj: Object) -> SecondaryState:
    status = mapping(obj.get("status"))
    return SecondaryState(
        name=obj["metadata"]["name"],
        ready=status.get("readyReplicas", 0),
        replicas=mapping(obj.get("spec")).get("replicas", 0),
        available=condition_in(status, names.AVAILABLE).get("status", "Unknown"),
        image=", ".join(images_that_run(obj)),
        leader=status.get("leaseHolder", ""),
    )


def _warnings(obj: Object | None, owner: str, *types: str) -> Iterator[ObjectWarning]:
    """Yield the warnings in conditions of these types, one entry per line."""
    for condition in _conditions(obj):
        if condition["type"] in types and condition["status"] == "True":
            for line in str(condition.get("message", "")).splitlines():
                yield ObjectWarning(object=owner, message=line)


def _profile(obj: Object) -> ProfileState:
    status, spec = mapping(obj.get("status")), mapping(obj.get("spec"))
    return ProfileState(
        name=obj["metadata"]["name"],
        scheduler_name=status.get("schedulerName") or spec.get("schedulerName") or "",
        scheduler=spec.get("scheduler") or "",
        state=_state(obj),
        generation=obj["metadata"].get("generation", 0),
        accepted_generation=status.get("acceptedGeneration", 0),
        message=condition_in(status, names.ACCEPTED).get("message", ""),
    )


def _settings(obj: Object) -> SettingsState:
    # Loaded here, because few clusters have these settings.
    from ...config.effective.settings.validate import OFF, placement_settings

    pods = mapping(mapping(obj.get("spec")).get("pods"))
    mode = placement_settings(obj.get("spec")).mode
    accepted = condition_in(mapping(obj.get("status")), names.ACCEPTED)
    return SettingsState(
        name=obj["metadata"]["name"],
        pods=sorted(name for name, value in pods.items() if value),
        placement_check=mode if mode != OFF else "",
        state=_state(obj),
        message=accepted.get("message", ""),
    )


def _load_policy(obj: Object) -> LoadPolicyState:
    status = mapping(obj.get("status"))
    available = condition_in(status, names.AVAILABLE)
    return LoadPolicyState(
        name=obj["metadata"]["name"],
        source=status.get("source", ""),
        nodes=status.get("nodes") or {},
        accepted=condition_in(status, names.ACCEPTED).get("status", "Unknown"),
        available=available.get("status", "Unknown"),
        message=available.get("message", ""),
    )


def _extender(obj: Object) -> ExtenderState:
    status = mapping(obj.get("status"))
    agent = mapping(status.get("agent"))
    return ExtenderState(
        name=obj["metadata"]["name"],
        scheduler=mapping(obj.get("spec")).get("scheduler") or "",
        state=_state(obj),
        available=condition_in(status, names.AVAILABLE).get("status", "Unknown"),
        endpoint=status.get("endpoint") or "",
        ready=agent.get("ready", 0),
        desired=agent.get("desired", 0),
    )
