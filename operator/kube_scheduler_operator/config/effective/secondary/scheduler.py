"""What a SecondaryScheduler leads to, with the objects that are attached to it.

read its spec → SchedulerExtenders, each by itself → SchedulerProfiles, each by itself → compose and
validate → what depends on other schedulers and on the operator's settings.

An error in one, even a defect of the operator, does not stop the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from ....base import names
from ....base.findings import Finding
from ....base.objects import Object, age, is_being_deleted, mapping
from ....base.platform import Platform
from ....base.spec_limits import limit_problems
from ....base.templates import canonical_json
from ...language.feature_gates import Gates
from ...language.validation.configuration import Target
from ...language.validation.newer_versions import newer_version_findings
from ...language.versions import version_skew
from ...language.warnings.configuration import filter_difference, shared_nodes_warning
from ..attachment import SPEC, by_scheduler, path_from
from ..attribution import relocated
from ..extenders.validate import ExtenderResult, OwnExtenders, validate_extenders
from ..facts import Facts, is_stock_image
from ..objects import Objects
from ..profiles.validate import ProfileResult, validate_profiles
from .attached import asked_for, attach_extenders, attach_profiles
from .compose import SecondaryComposition, compose
from .confinement import refused_settings
from .request import SchedulerRequest, read

CONTROL_PLANE: Final = "the control plane's scheduler"
NOT_ALLOWED: Final = "NamespaceNotAllowed"
"""The reason of the error that the operator may run no scheduler in a namespace."""


@dataclass(frozen=True, slots=True)
class EffectiveSecondary:
    """What one SecondaryScheduler would run."""

    obj: Object  # without the fields that a spec beyond the limits hides
    request: SchedulerRequest  # with its SchedulerExtenders
    target: Target  # its kube-scheduler
    composition: SecondaryComposition
    # the results for the objects whose spec names it
    profiles: tuple[ProfileResult, ...] = ()
    extenders: tuple[ExtenderResult, ...] = ()
    findings: tuple[Finding, ...] = ()  # errors and warnings besides those of the composition
    unreadable: bool = False  # whether its spec is beyond the limits
    key: str = ""  # what its composition depends on, as text

    @property
    def name(self) -> str:
        return self.request.name

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        return (*self.findings, *self.composition.findings)

    @property
    def blocking(self) -> bool:
        """Whether the operator would not roll it out."""
        return any(finding.blocking for finding in self.all_findings)

    @property
    def is_permitted(self) -> bool:
        """Whether the operator may run it in its namespace."""
        return not any(finding.reason == NOT_ALLOWED for finding in self.findings)


@dataclass(frozen=True, slots=True)
class DefectiveSecondary:
    """A SecondaryScheduler that an unexpected error stopped."""

    obj: Object
    error: Exception

    @property
    def name(self) -> str:
        return str(self.obj["metadata"]["name"])


@dataclass(frozen=True, slots=True)
class EffectiveSecondaries:
    """What all SecondarySchedulers would run."""

    schedulers: tuple[EffectiveSecondary | DefectiveSecondary, ...] = ()  # oldest first
    # schedulerName -> the scheduler that serves it, including the control plane's
    served: Mapping[str, str] = field(default_factory=dict)

    def of(self, name: str) -> EffectiveSecondary:
        """Return the SecondaryScheduler of this name.

        Raises:
            KeyError: it does not exist.
            Exception: an unexpected error in its composition.
        """
        scheduler = next((item for item in self.schedulers if item.name == name), None)
        if scheduler is None:
            raise KeyError(name)
        if isinstance(scheduler, DefectiveSecondary):
            raise scheduler.error
        return scheduler


def effective_secondaries(
    objects: Objects, facts: Facts, control_plane: Iterable[str]
) -> EffectiveSecondaries:
    """Compose all SecondarySchedulers; never raise, whatever users wrote.

    `control_plane` has the schedulerNames of the control plane's scheduler.
    """
    profiles = None if objects.profiles is None else by_scheduler(objects.profiles)
    extenders = None if objects.extenders is None else by_scheduler(objects.extenders)
    served = dict.fromkeys(control_plane, CONTROL_PLANE)
    schedulers: list[EffectiveSecondary | DefectiveSecondary] = []
    # Oldest first: the older object keeps a schedulerName.
    for obj in sorted(objects.secondaries, key=age):
        name = obj["metadata"]["name"]
        attached = Attached(
            None if profiles is None else profiles.get(name, ()),
            None if extenders is None else extenders.get(name, ()),
        )
        try:
            scheduler = effective_secondary(obj, attached, facts, served)
        except Exception as error:
            schedulers.append(DefectiveSecondary(obj, error))
            claims = running_names(obj)
        else:
            schedulers.append(scheduler)
            claims = _claims(scheduler)
        if not is_being_deleted(obj):  # it keeps no schedulerName from others
            served |= {claim: named(name) for claim in claims if claim not in served}
    return EffectiveSecondaries(tuple(schedulers), served)


@dataclass(frozen=True, slots=True)
class Attached:
    """The objects that name a SecondaryScheduler, or named it; None: the kind is not served."""

    profiles: Sequence[Object] | None = ()
    extenders: Sequence[Object] | None = ()


def effective_secondary(
    obj: Object, attached: Attached, facts: Facts, served: Mapping[str, str]
) -> EffectiveSecondary:
    """Compose one SecondaryScheduler; `served` maps schedulerNames to their schedulers."""
    readable, beyond = _readable(obj)
    request = read(readable)
    target = target_of(request, facts)
    profiles_in_all = max(len(request.profiles), 1) + len(attached.profiles or ())
    extenders, refused = attach_extenders(
        request, obj, attached.extenders, target, facts, profiles_in_all
    )
    called, agents = asked_for(extenders)
    request = replace(request, called=called, agents=agents)
    profiles = attach_profiles(request, obj, attached.profiles, target, served)
    key = canonical_json([_bare(readable), list(profiles.profiles), called, agents])
    request, composition = composed(key, facts.platform, target)
    composition = _with_findings(composition, _image_findings(request, facts, target))
    if profiles.results and composition.findings:
        at = relocated(composition.findings, composition.config.get("profiles"), profiles.results)
        composition = replace(composition, findings=at)
    findings = (
        *_place(request, facts),
        *_conflicts(composition, served),
        *profiles.findings,
        *beyond,
        *refused,
        *_settings(request, composition, facts),
        *_skew(facts, target),
    )
    return EffectiveSecondary(
        obj=readable,
        request=request,
        target=target,
        composition=composition,
        profiles=profiles.results,
        extenders=extenders.results,
        findings=findings,
        unreadable=bool(beyond),
        key=key,
    )


def _bare(obj: Object) -> Object:
    """Return the part of an object on which its composition depends."""
    metadata = obj["metadata"]
    identity = {"name": metadata["name"], "uid": metadata.get("uid")}
    return {"metadata": identity, "spec": obj.get("spec")}


@lru_cache(maxsize=1024)
def composed(
    key: str, platform: Platform, target: Target
) -> tuple[SchedulerRequest, SecondaryComposition]:
    """Compose what a key describes; cached, because most reconciles have the same keys."""
    obj, profiles, called, agents = json.loads(key)
    request = replace(read(obj), called=called, agents=agents)
    return request, compose(request, platform, target, profiles)


def target_of(request: SchedulerRequest, facts: Facts) -> Target:
    version = facts.version_of(request.image or facts.image or "")
    explicit = {str(name): bool(on) for name, on in request.feature_gates.items()}
    return Target(Gates(version, explicit), stock=facts.stock and is_stock(request, facts.image))


def is_stock(request: SchedulerRequest, image: str | None) -> bool:
    """Return False for an image other than `image`, which may have other plugins and any tag."""
    if not request.image or request.image == image:
        return True
    return is_stock_image(request.image)


def _with_findings(
    composition: SecondaryComposition, findings: Sequence[Finding]
) -> SecondaryComposition:
    if not findings:
        return composition
    # Warnings about filters are left out while an error stops the rollout.
    filters = None if any(finding.blocking for finding in findings) else composition.filters
    return replace(composition, findings=(*composition.findings, *findings), filters=filters)


def _image_findings(request: SchedulerRequest, facts: Facts, target: Target) -> list[Finding]:
    """Report what is unknown about the image; nothing for files, which do not show the default."""
    if facts.image is None:
        return []
    findings: list[Finding] = []
    if target.stock:  # the tag of another image need not be a version of Kubernetes
        findings += newer_version_findings(target.gates.version, names.WARNINGS)
    if not request.image and not facts.image:
        why = (
            "no Pod of the control plane's scheduler is visible"
            if facts.platform.owns_static_pods
            else "the API server's version is not a release of Kubernetes"
        )
        message = (
            f"the default image is unknown, because {why}; set spec.image here, or OPERAND_IMAGE "
            "on the operator's Deployment"
        )
        findings.append(
            Finding(names.DEGRADED, "NoOperandImage", "spec.image", message, blocking=True)
        )
    return findings


_PLAIN_FIELDS: Final = ("namespace", "image", "replicas", "logLevel", "assign")
"""The fields that do not depend on the rest of a spec."""


def _readable(obj: Object) -> tuple[Object, tuple[Finding, ...]]:
    """Hide the fields of a spec beyond the limits; return (object, errors)."""
    spec = mapping(obj.get("spec"))
    findings = tuple(
        Finding(names.DEGRADED, p.reason, path_from(SPEC, p), p.message, blocking=True)
        for p in limit_problems(spec)
    )
    if findings:
        obj = {**obj, "spec": {key: spec[key] for key in _PLAIN_FIELDS if key in spec}}
    return obj, findings


def running_names(obj: Object) -> tuple[str, ...]:
    """Return the schedulerNames that the scheduler serves according to its status."""
    profiles = mapping(obj.get("status")).get("profiles") or ()
    return tuple(str(mapping(profile).get("schedulerName")) for profile in profiles)


def named(name: str) -> str:
    return f'SecondaryScheduler "{name}"'


def _claims(scheduler: EffectiveSecondary) -> tuple[str, ...]:
    """Return the schedulerNames that younger schedulers may not serve."""
    if not scheduler.is_permitted:
        return ()
    running = running_names(scheduler.obj) if scheduler.unreadable else ()
    return (*scheduler.composition.scheduler_names, *running)


def _place(request: SchedulerRequest, facts: Facts) -> Iterator[Finding]:
    allowed = facts.permissions.namespaces
    if allowed is None or request.namespace in allowed:
        return
    message = (
        f'the operator has no access to namespace "{request.namespace}"; add it to '
        "SECONDARY_NAMESPACES of the operator's Deployment and grant the RBAC rights there (Helm: "
        f"secondarySchedulers.namespaces), or create this object in {' or '.join(allowed)}"
    )
    yield Finding(names.DEGRADED, NOT_ALLOWED, "spec.namespace", message, blocking=True)


def _conflicts(composition: SecondaryComposition, served: Mapping[str, str]) -> list[Finding]:
    """Report schedulerNames that another scheduler serves: two would bind the same pods."""
    return [
        Finding(
            names.DEGRADED,
            "SchedulerNameTaken",
            "spec.profiles",
            f'{served[name]} already serves schedulerName "{name}", and two schedulers with one '
            "name overcommit nodes; use another schedulerName",
            blocking=True,
        )
        for name in dict.fromkeys(composition.scheduler_names)
        if name in served
    ]


def _settings(
    request: SchedulerRequest, composition: SecondaryComposition, facts: Facts
) -> Iterator[Finding]:
    """Report settings that conflict with the operator or the control plane."""
    permissions, main = facts.permissions, facts.control_plane.filters
    yield from refused_settings(request, facts.image or "", permissions)
    if main is None or composition.filters is None:
        return
    difference = filter_difference(CONTROL_PLANE, main, request.name, composition.filters)
    if difference:
        problem = shared_nodes_warning(CONTROL_PLANE, difference)
        where = "spec.profiles"
        yield Finding(names.WARNINGS, problem.reason, where, problem.sentence, blocking=False)


def _skew(facts: Facts, target: Target) -> Iterator[Finding]:
    """Warn about a version that the API server's version does not support."""
    if facts.server_version is None or not target.stock:
        return
    problem = version_skew(target.gates.version, facts.server_version)
    if problem:
        yield Finding(names.WARNINGS, "VersionSkew", "spec.image", problem, blocking=False)


def of_unknown_scheduler(
    scheduler: str, attached: Attached, facts: Facts, target: Target
) -> tuple[tuple[ProfileResult, ...], tuple[ExtenderResult, ...]]:
    """Return the results for the objects of a SecondaryScheduler that is not known, each by itself.

    The cluster may have it, with a first profile and extenders of its own.
    """
    chosen = validate_extenders(
        scheduler,
        attached.extenders or (),
        OwnExtenders(None, f"{named(scheduler)} itself"),
        target,
        facts,
    )
    _, results = validate_profiles(scheduler, attached.profiles or (), {}, target)
    return results, chosen.results
