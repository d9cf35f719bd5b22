"""The plans for all SecondarySchedulers. They share nothing but schedulerNames.

An error in one, even a defect of the operator, stops neither the others nor the control plane.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from ..base import names
from ..base.findings import Finding
from ..base.json_text import parse_json
from ..base.objects import Object, age, mapping
from ..effective.secondary.attached import attach_extenders, attach_profiles, with_extenders
from ..effective.secondary.compose import scheduler_names
from ..effective.secondary.permitted import refused_settings
from ..effective.secondary.request import SchedulerRequest, read
from ..extenders.agent_health import of_sidecars
from ..extenders.attribution import attribute_extenders
from ..extenders.status import AgentHealth
from ..extenders.validate import ExtenderResult
from ..kube.resource import DEPLOYMENTS, PODS, SECONDARY_SCHEDULERS, ObjectRef
from ..model.attachment import SPEC, Refusal, by_scheduler, path_from
from ..model.limits import limit_problems
from ..model.plan import Action, soonest
from ..model.snapshot import Snapshot
from ..profiles.attribution import attribute
from ..profiles.validate import ProfileResult
from ..schedulerconfig.version_skew import version_skew
from ..schedulerconfig.versions import Version
from ..status.conditions import Condition, condition_in
from ..status.object_status import ObjectPlan, defect, objects_condition
from .assignment import claim_of, overlap_findings
from .content import SecondaryContent
from .desired import (
    DesiredScheduler,
    OperandDefaults,
    desired_scheduler,
    is_stock,
    name_profiles_in,
    target_of,
)
from .filter_differences import CONTROL_PLANE, different_filters, main_filters
from .history import HistoryEntry
from .plan import NOT_ALLOWED, plan


@dataclass(frozen=True, slots=True)
class SecondarySchedulers:
    """The result for all SecondarySchedulers.

    Attributes:
        write_sets: SecondaryScheduler -> the writes for it.
        conditions: conditions of KubeScheduler: whether any SecondaryScheduler is Degraded.
        results: the results for their SchedulerProfiles.
        extenders: the results for their SchedulerExtenders.
        agents: SchedulerExtender -> the health of its agents in their pods.
        served: schedulerName -> the scheduler that serves it, including the control plane's.
        waiting: the schedulerNames of those with `spec.assign` that do not schedule.
        requeue_after: seconds until the next reconcile if nothing changes; None if none is needed.
    """

    write_sets: Mapping[ObjectRef, tuple[Action, ...]] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    results: tuple[ProfileResult, ...] = ()
    extenders: tuple[ExtenderResult, ...] = ()
    agents: Mapping[str, AgentHealth] = field(default_factory=dict)
    served: Mapping[str, str] = field(default_factory=dict)
    waiting: frozenset[str] = frozenset()
    requeue_after: float | None = None


@dataclass(frozen=True, slots=True)
class _Context:
    """What the plans of all SecondarySchedulers start from.

    Attributes:
        snapshot: the observed state.
        image: the control plane's image; empty if it is unknown.
        operand: the defaults of their Pods.
        version_of: the version of an image.
        profiles: SchedulerProfiles by scheduler; None: the API does not serve the kind.
        extenders: SchedulerExtenders likewise.
        filters: the filters of the control plane's scheduler; None if they are unknown.
    """

    snapshot: Snapshot
    image: str
    operand: OperandDefaults
    version_of: Callable[[str], Version]
    profiles: Mapping[str, Sequence[Object]] | None
    extenders: Mapping[str, Sequence[Object]] | None
    filters: frozenset[str] | None


@dataclass(slots=True)
class _Collected:
    """What the plans add up to; attributes as in SecondarySchedulers, `planned` by name."""

    served: dict[str, str]
    planned: dict[str, ObjectPlan] = field(default_factory=dict)
    results: list[ProfileResult] = field(default_factory=list)
    extenders: list[ExtenderResult] = field(default_factory=list)
    agents: dict[str, AgentHealth] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)

    def claim(self, name: str, scheduler_names: Iterable[str]) -> None:
        """Record that a SecondaryScheduler serves schedulerNames that no other one serves."""
        self.served |= {
            claim: _named(name) for claim in scheduler_names if claim not in self.served
        }


def secondary_schedulers(
    snapshot: Snapshot,
    image: str,
    version_of: Callable[[str], Version],
) -> SecondarySchedulers:
    """Plan all SecondarySchedulers; `image` is the control plane's, empty if it is unknown."""
    settings = snapshot.settings
    objects, kept = snapshot.scheduler_profiles, snapshot.scheduler_extenders
    context = _Context(
        snapshot,
        image,
        OperandDefaults(image, settings.image_pull_secrets, settings.operator_image),
        version_of,
        profiles=None if objects is None else by_scheduler(objects.values()),
        extenders=None if kept is None else by_scheduler(kept.values()),
        filters=main_filters(snapshot, version_of(image))
        if snapshot.secondaries.schedulers
        else None,
    )
    collected = _Collected(dict.fromkeys(control_plane_names(snapshot), CONTROL_PLANE))
    # Oldest first: the older object keeps a schedulerName.
    for obj in sorted(snapshot.secondaries.schedulers.values(), key=age):
        if "deletionTimestamp" in obj["metadata"]:
            continue
        try:
            _plan_one(context, obj, collected)
        except Exception as error:
            name = obj["metadata"]["name"]
            collected.planned[name] = defect(snapshot, SECONDARY_SCHEDULERS, obj, error)
            collected.claim(name, _running(obj))
    planned = collected.planned
    return SecondarySchedulers(
        {
            SECONDARY_SCHEDULERS.named(name): each.actions
            for name, each in planned.items()
            if each.actions
        },
        (
            objects_condition(
                names.SECONDARY_DEGRADED,
                "SecondarySchedulerDegraded",
                {f"{name}: ": each.degraded for name, each in planned.items()},
            ),
        ),
        tuple(collected.results),
        tuple(collected.extenders),
        collected.agents,
        collected.served,
        frozenset(collected.waiting),
        soonest(*(each.requeue_after for each in planned.values())),
    )


def _plan_one(context: _Context, obj: Object, collected: _Collected) -> None:
    """Plan one SecondaryScheduler; `collected` has the results of the older ones."""
    snapshot, name = context.snapshot, obj["metadata"]["name"]
    readable, beyond = _readable(obj)
    version = context.version_of(str((readable.get("spec") or {}).get("image") or context.image))
    request = read(readable)
    target = target_of(request, context.operand, version)
    mine = None if context.profiles is None else context.profiles.get(name, ())
    calls = attach_extenders(
        request,
        obj,
        None if context.extenders is None else context.extenders.get(name, ()),
        target,
        profiles=max(len(request.profiles), 1) + len(mine or ()),
        images=snapshot.settings.agent_images,
    )
    request = with_extenders(request, calls)
    attached = attach_profiles(request, obj, mine, target, collected.served)
    desired = desired_scheduler(
        readable, snapshot.platform, context.operand, version, attached.profiles, calls
    )
    desired = name_profiles_in(desired, attached.results)
    further = [
        *_place(snapshot, desired),
        *_conflicts(desired, collected.served),
        *attached.findings,
        *beyond,
        *calls.findings,
        *_settings_findings(context, request, desired, version),
    ]
    running = _running(obj)
    if not any(finding.reason == NOT_ALLOWED for finding in further):
        claims = (*desired.composition.scheduler_names, *(running if beyond else ()))
        collected.claim(name, dict.fromkeys(claims))
    claim = claim_of(
        readable,
        snapshot.secondaries.schedulers.values(),
        (*desired.composition.scheduler_names, *running),
        snapshot.pending_pods,
        snapshot.assignment_way,
    )
    if claim is not None:
        further += overlap_findings(claim)
        available = condition_in(mapping(obj.get("status")), names.AVAILABLE)
        if available.get("status") != "True":
            collected.waiting |= {*desired.composition.scheduler_names, *running}
    collected.planned[name], asked = plan(snapshot, obj, desired, version, further, claim)
    refusal = _refusal(name, desired.content, asked)
    collected.extenders += attribute_extenders(calls.chosen.results, refusal)
    pods = tuple(snapshot.secondaries.objects.get(name, {}).get(PODS, {}).values())
    workload = f"{DEPLOYMENTS.kind}/{name}"
    collected.agents |= {
        agent.name: of_sidecars(agent, request.namespace, workload, pods)
        for agent in request.sidecar_agents
    }
    collected.results += attribute(attached.results, refusal, refusal.config if refusal else {})


def _settings_findings(
    context: _Context, request: SchedulerRequest, desired: DesiredScheduler, version: Version
) -> Iterator[Finding]:
    """Findings about settings that depend on the operator and on the control plane."""
    settings = context.snapshot.settings
    yield from refused_settings(
        request, context.image, settings.allowed_images, settings.agent_images
    )
    yield from different_filters(request.name, desired.composition, context.filters)
    if is_stock(request, context.operand):
        yield from _skew(context.snapshot, version)


def _readable(obj: Object) -> tuple[Object, tuple[Finding, ...]]:
    """The object without the fields that a spec beyond the limits hides, and the error if so."""
    spec = mapping(obj.get("spec"))
    findings = tuple(
        Finding(names.DEGRADED, p.reason, path_from(SPEC, p), p.message, blocking=True)
        for p in limit_problems(spec)
    )
    if findings:
        obj = {**obj, "spec": {key: spec[key] for key in _PLAIN_FIELDS if key in spec}}
    return obj, findings


_PLAIN_FIELDS: Final = ("namespace", "image", "replicas", "logLevel", "assign")
"""The fields that do not depend on the rest of a spec."""


def _running(obj: Object) -> tuple[str, ...]:
    """The schedulerNames that the scheduler serves according to its status."""
    profiles = mapping(obj.get("status")).get("profiles") or ()
    return tuple(str(mapping(one).get("schedulerName")) for one in profiles)


def _refusal(
    name: str, content: SecondaryContent | None, entry: HistoryEntry | None
) -> Refusal | None:
    """kube-scheduler's refusal of the desired content; None if it did not refuse it."""
    if content is None or entry is None or not entry.bad:
        return None
    did = "refused" if entry.outcome == names.OUTCOME_REFUSED else "did not stay healthy with"
    state = (
        f'kube-scheduler {did} configuration {entry.hash} of SecondaryScheduler "{name}"; correct '
        "or revert this setting"
    )
    return Refusal(content.config, entry.message, state)


def _named(name: str) -> str:
    return f'SecondaryScheduler "{name}"'


def control_plane_names(snapshot: Snapshot) -> tuple[str, ...]:
    """The schedulerNames in the operator's configuration of the control plane's scheduler."""
    data = (snapshot.config_maps.get(names.CONFIG) or {}).get("data") or {}
    return _names_in(data.get(names.CONFIG_KEY, "{}"))


@lru_cache(maxsize=16)
def _names_in(text: str) -> tuple[str, ...]:
    try:
        return scheduler_names(parse_json(text))
    except (ValueError, AttributeError, TypeError):
        return scheduler_names({})  # another writer has changed the ConfigMap


def _place(snapshot: Snapshot, desired: DesiredScheduler) -> list[Finding]:
    allowed = snapshot.platform.secondary_namespaces(snapshot.settings.secondary_namespaces)
    namespace = desired.request.namespace
    if namespace in allowed:
        return []
    message = (
        f'the operator has no access to namespace "{namespace}"; add it to SECONDARY_NAMESPACES of '
        "the operator's Deployment and grant the RBAC rights there (Helm: "
        f"secondarySchedulers.namespaces), or create this object in {' or '.join(allowed)}"
    )
    return [Finding(names.DEGRADED, NOT_ALLOWED, "spec.namespace", message, blocking=True)]


def _skew(snapshot: Snapshot, version: Version) -> Iterator[Finding]:
    """The warning about a version that the API server's does not support.

    Elsewhere the default is the version of the control plane's scheduler.
    """
    if snapshot.platform.owns_static_pods:
        return
    with suppress(ValueError):
        problem = version_skew(version, Version.parse(snapshot.server_version))
        if problem:
            yield Finding(names.WARNINGS, "VersionSkew", "spec.image", problem, blocking=False)


def _conflicts(desired: DesiredScheduler, served: Mapping[str, str]) -> list[Finding]:
    """Errors for schedulerNames that another scheduler serves: two would bind the same pods."""
    return [
        Finding(
            names.DEGRADED,
            "SchedulerNameTaken",
            "spec.profiles",
            f'{served[name]} already serves schedulerName "{name}", and two schedulers with one '
            "name overcommit nodes; use another schedulerName",
            blocking=True,
        )
        for name in dict.fromkeys(desired.composition.scheduler_names)
        if name in served
    ]
