"""The plans for all SecondarySchedulers. They share nothing but schedulerNames.

An error in one, even a defect of the operator, stops neither the others nor the control plane.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from ..base import names
from ..base.findings import Finding
from ..base.json_text import parse_json
from ..base.objects import Object, age, mapping
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
from .attached import attach_extenders, attach_profiles, with_extenders
from .compose import scheduler_names
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
from .permitted import refused_settings
from .plan import NOT_ALLOWED, plan
from .request import read


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


def secondary_schedulers(
    snapshot: Snapshot,
    image: str,
    version_of: Callable[[str], Version],
) -> SecondarySchedulers:
    """Plan all SecondarySchedulers; `image` is the control plane's, empty if it is unknown."""
    settings = snapshot.settings
    operand = OperandDefaults(image, settings.image_pull_secrets, settings.operator_image)
    planned: dict[str, ObjectPlan] = {}
    results: list[ProfileResult] = []
    extender_results: list[ExtenderResult] = []
    agents: dict[str, AgentHealth] = {}
    waiting: set[str] = set()
    served = dict.fromkeys(control_plane_names(snapshot), CONTROL_PLANE)
    objects = snapshot.scheduler_profiles
    profiles = None if objects is None else by_scheduler(objects.values())
    kept = snapshot.scheduler_extenders
    extenders = None if kept is None else by_scheduler(kept.values())
    filters = main_filters(snapshot, version_of(image)) if snapshot.secondaries.schedulers else None
    # Oldest first: the older object keeps a schedulerName.
    for obj in sorted(snapshot.secondaries.schedulers.values(), key=age):
        name = obj["metadata"]["name"]
        if "deletionTimestamp" in obj["metadata"]:
            continue
        try:
            readable, beyond = _readable(obj)
            version = version_of(str((readable.get("spec") or {}).get("image") or image))
            request = read(readable)
            target = target_of(request, operand, version)
            mine = None if profiles is None else profiles.get(name, ())
            calls = attach_extenders(
                request,
                obj,
                None if extenders is None else extenders.get(name, ()),
                target,
                profiles=max(len(request.profiles), 1) + len(mine or ()),
                images=settings.agent_images,
            )
            request = with_extenders(request, calls)
            attached = attach_profiles(request, obj, mine, target, served)
            desired = desired_scheduler(
                readable, snapshot.platform, operand, version, attached.profiles, calls
            )
            desired = name_profiles_in(desired, attached.results)
            further = [*_place(snapshot, desired), *_conflicts(desired, served), *attached.findings]
            further += (*beyond, *calls.findings)
            further += refused_settings(
                request, image, settings.allowed_images, settings.agent_images
            )
            further += different_filters(name, desired.composition, filters)
            if is_stock(request, operand):
                further += _skew(snapshot, version)
            if not any(finding.reason == NOT_ALLOWED for finding in further):
                running = _running(obj) if beyond else ()
                claims = dict.fromkeys((*desired.composition.scheduler_names, *running))
                served |= {claim: _named(name) for claim in claims if claim not in served}
            claim = claim_of(
                readable,
                snapshot.secondaries.schedulers.values(),
                (*desired.composition.scheduler_names, *_running(obj)),
                snapshot.pending_pods,
                snapshot.assignment_way,
            )
            if claim is not None:
                further += overlap_findings(claim)
                if (
                    condition_in(mapping(obj.get("status")), names.AVAILABLE).get("status")
                    != "True"
                ):
                    waiting |= {*desired.composition.scheduler_names, *_running(obj)}
            planned[name], asked = plan(snapshot, obj, desired, version, further, claim)
            refusal = _refusal(name, desired.content, asked)
            extender_results += attribute_extenders(calls.chosen.results, refusal)
            pods = tuple(snapshot.secondaries.objects.get(name, {}).get(PODS, {}).values())
            workload = f"{DEPLOYMENTS.kind}/{name}"
            agents |= {
                agent.name: of_sidecars(agent, request.namespace, workload, pods)
                for agent in request.sidecar_agents
            }
            results += attribute(attached.results, refusal, refusal.config if refusal else {})
        except Exception as error:
            planned[name] = defect(snapshot, SECONDARY_SCHEDULERS, obj, error)
            served |= {claim: _named(name) for claim in _running(obj) if claim not in served}
    waits = [each.requeue_after for each in planned.values()]
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
        tuple(results),
        tuple(extender_results),
        agents,
        served,
        frozenset(waiting),
        soonest(*waits),
    )


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
