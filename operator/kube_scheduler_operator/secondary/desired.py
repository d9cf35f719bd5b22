"""The desired state of a SecondaryScheduler, cached by content."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ..base import names
from ..base.findings import Finding
from ..base.limits import CONFIG_MAP_BYTES
from ..base.objects import Object
from ..base.platform import Platform
from ..effective.secondary.attached import NO_EXTENDERS, AttachedExtenders, asked_for
from ..effective.secondary.compose import SecondaryComposition, compose
from ..effective.secondary.request import SchedulerRequest, read
from ..manifests.templates import canonical_json
from ..model.limits import TOO_LARGE
from ..profiles.attribution import relocated
from ..profiles.validate import ProfileResult
from ..schedulerconfig.feature_gates import Gates
from ..schedulerconfig.newer_versions import newer_version_findings
from ..schedulerconfig.validation import Target
from ..schedulerconfig.versions import Version
from .content import SchedulerProgram, SecondaryContent, make_content


@dataclass(frozen=True, slots=True)
class OperandDefaults:
    """The defaults of a secondary scheduler's images.

    Attributes:
        image: the control plane's kube-scheduler image; empty if it is unknown.
        pull_secrets: the imagePullSecrets of the target namespace.
        agent_image: the default image of agents: the operator's own.
    """

    image: str
    pull_secrets: tuple[str, ...] = ()
    agent_image: str = ""


@dataclass(frozen=True, slots=True)
class DesiredScheduler:
    """The desired state.

    Attributes:
        request: the SecondaryScheduler with defaults.
        composition: its configuration and flags, validated.
        content: the content to roll out; None if there are errors.
    """

    request: SchedulerRequest
    composition: SecondaryComposition
    content: SecondaryContent | None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All errors and warnings."""
        return self.composition.findings


def desired_scheduler(
    obj: Object,
    platform: Platform,
    operand: OperandDefaults,
    version: Version,
    profiles: Sequence[Mapping[str, Any]] = (),
    extenders: AttachedExtenders = NO_EXTENDERS,
) -> DesiredScheduler:
    """The desired state of a SecondaryScheduler; `profiles` is empty for those of its spec only."""
    metadata = obj["metadata"]
    identity = {"name": metadata["name"], "uid": metadata.get("uid")}
    bare = {"metadata": identity, "spec": obj.get("spec")}
    key = canonical_json([bare, list(profiles), *asked_for(extenders)])
    return _want(key, platform, operand, version)


@lru_cache(maxsize=1024)
def _want(
    key: str, platform: Platform, operand: OperandDefaults, version: Version
) -> DesiredScheduler:
    obj, profiles, called, agents = json.loads(key)
    request = replace(read(obj), called=called, agents=agents)
    image = request.image or operand.image
    stock = is_stock(request, operand)
    composition = compose(request, platform, version, stock=stock, profiles=profiles)
    if stock:  # the tag of another image need not be a version of Kubernetes
        note = newer_version_findings(version, names.WARNINGS)
        composition = replace(composition, findings=(*composition.findings, *note))
    if not image:
        why = (
            "no Pod of the control plane's scheduler is visible"
            if platform.owns_static_pods
            else "the API server's version is not a release of Kubernetes"
        )
        message = (
            f"the default image is unknown, because {why}; set spec.image here, or OPERAND_IMAGE "
            "on the operator's Deployment"
        )
        missing = Finding(names.DEGRADED, "NoOperandImage", "spec.image", message, blocking=True)
        findings = (*composition.findings, missing)
        composition = SecondaryComposition(composition.config, composition.arguments, findings)
    if composition.blocking:
        return DesiredScheduler(request, composition, None)
    default = operand.pull_secrets if request.namespace == platform.target_namespace else ()
    program = SchedulerProgram(
        image=image,
        command=request.command or (("kube-scheduler",) if not stock else platform.operand_command),
        version=version,
        stock=stock,
        pull_secrets=default if request.pull_secrets is None else request.pull_secrets,
        agent_image=operand.agent_image,
    )
    content = make_content(request, composition, program)
    if content.size > CONFIG_MAP_BYTES:
        message = (
            f"its ConfigMap would have {content.size} bytes, and the limit is {CONFIG_MAP_BYTES}; "
            "shorten its profiles, extenders or sidecars"
        )
        large = Finding(names.DEGRADED, TOO_LARGE, "spec", message, blocking=True)
        findings = (*composition.findings, large)
        return DesiredScheduler(request, replace(composition, findings=findings), None)
    return DesiredScheduler(request, composition, content)


def name_profiles_in(
    desired: DesiredScheduler, results: tuple[ProfileResult, ...]
) -> DesiredScheduler:
    """`desired` with findings about the profile of a SchedulerProfile attributed to that object."""
    composition = desired.composition
    if not results or not composition.findings:
        return desired
    found = relocated(composition.findings, composition.config.get("profiles"), results)
    return replace(desired, composition=replace(composition, findings=found))


def target_of(request: SchedulerRequest, operand: OperandDefaults, version: Version) -> Target:
    """The kube-scheduler that will run, for the validation of a configuration."""
    explicit = {str(name): bool(on) for name, on in request.feature_gates.items()}
    return Target(Gates(version, explicit), stock=is_stock(request, operand))


def is_stock(request: SchedulerRequest, operand: OperandDefaults) -> bool:
    """False for a custom image, which may have other plugins and any tag."""
    image = request.image or operand.image
    if not request.image or image == operand.image:
        return True
    return "/kube-scheduler:" in f"/{image}" or "/kube-scheduler@" in f"/{image}"
