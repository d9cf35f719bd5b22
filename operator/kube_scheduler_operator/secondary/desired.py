"""What a SecondaryScheduler comes to; asked in every pass, and worked out once for each content."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ..base import names
from ..base.findings import Finding
from ..base.objects import Object
from ..base.platform import Platform
from ..manifests.pods import canonical_json
from ..schedulerconfig.check import Target
from ..schedulerconfig.feature_gates import Gates
from ..schedulerconfig.versions import Version
from .compose import Composition, compose
from .content import Content, make_content
from .extenders import NO_EXTENDERS, GivenExtenders, asked_for
from .request import Request, read


@dataclass(frozen=True, slots=True)
class Operand:
    """The kube-scheduler that is to run where nothing else is said.

    Attributes:
        image: the control plane's; empty if it is not known.
        pull_secrets: Secrets of the target namespace with which it is pulled.
        agent_image: of agents that do not say theirs: the operator's own.
    """

    image: str
    pull_secrets: tuple[str, ...] = ()
    agent_image: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for.

    Attributes:
        request: with its defaults.
        composition: configuration and flags, and what is wrong with them.
        content: what is to be rolled out; None if something is wrong.
    """

    request: Request
    composition: Composition
    content: Content | None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What somebody should know or fix."""
        return self.composition.findings


def want(
    obj: Object,
    platform: Platform,
    operand: Operand,
    version: Version,
    profiles: Sequence[Mapping[str, Any]] = (),
    extenders: GivenExtenders = NO_EXTENDERS,
) -> Wanted:
    """What `obj` asks for.

    Args:
        obj: a SecondaryScheduler.
        platform: the kind of cluster.
        operand: the control plane's kube-scheduler.
        version: of the image that will run: `obj`'s own or the control plane's.
        profiles: all that this scheduler is to run; empty: the request's own.
        extenders: what SchedulerExtenders come to.
    """
    metadata = obj["metadata"]
    identity = {"name": metadata["name"], "uid": metadata.get("uid")}
    bare = {"metadata": identity, "spec": obj.get("spec")}
    key = canonical_json([bare, list(profiles), *asked_for(extenders)])
    return _want(key, platform, operand, version)


@lru_cache(maxsize=1024)
def _want(key: str, platform: Platform, operand: Operand, version: Version) -> Wanted:
    obj, profiles, called, agents = json.loads(key)
    request = replace(read(obj), called=called, agents=agents)
    image = request.image or operand.image
    stock = is_stock(request, operand)
    composition = compose(request, platform, version, stock=stock, profiles=profiles)
    if not image:
        message = (
            "the image of the control plane's scheduler is not known, because none of its pods is "
            "visible; set spec.image here, or OPERAND_IMAGE on the operator's Deployment"
        )
        missing = Finding(names.DEGRADED, "NoOperandImage", "spec.image", message, blocking=True)
        findings = (*composition.findings, missing)
        composition = Composition(composition.config, composition.arguments, findings)
    if composition.blocking:
        return Wanted(request, composition, None)
    default = operand.pull_secrets if request.namespace == platform.target_namespace else ()
    content = make_content(
        request,
        composition,
        image=image,
        command=request.command or (("kube-scheduler",) if not stock else platform.operand_command),
        version=version,
        stock=stock,
        pull_secrets=default if request.pull_secrets is None else request.pull_secrets,
        agent_image=operand.agent_image,
    )
    return Wanted(request, composition, content)


def target_of(request: Request, operand: Operand, version: Version) -> Target:
    """The kube-scheduler that will run, as the check of a configuration wants to know it."""
    explicit = {str(name): bool(on) for name, on in request.feature_gates.items()}
    return Target(Gates(version, explicit), stock=is_stock(request, operand))


def is_stock(request: Request, operand: Operand) -> bool:
    """False for an image of one's own, which may have more plugins, and a tag of its own."""
    image = request.image or operand.image
    if not request.image or image == operand.image:
        return True
    return "/kube-scheduler:" in f"/{image}" or "/kube-scheduler@" in f"/{image}"
