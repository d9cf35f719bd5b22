"""Makes the content of a SecondaryScheduler to roll out, cached by what it depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from ...base import names
from ...base.findings import Finding
from ...base.limits import CONFIG_MAP_BYTES
from ...base.objects import mapping
from ...base.platform import Platform
from ...base.spec_limits import TOO_LARGE
from ...base.templates import canonical_json, render_file
from ...config.effective.control_plane.recorded_inputs import record_secondary
from ...config.effective.extenders.agent import (
    CONFINEMENT,
    ManagedAgent,
    agent_file,
    container,
    volumes,
)
from ...config.effective.secondary.compose import CONFIG_DIRECTORY, PORT, SecondaryComposition
from ...config.effective.secondary.confinement import confined
from ...config.effective.secondary.request import SchedulerRequest
from ...config.effective.secondary.scheduler import EffectiveSecondary, composed
from ...config.language.plugins.target_scheduler import Target
from ...config.language.versions import Version
from ..model.workloads import CONTROL_PLANE_TOLERATIONS
from .content import IMAGE_KEY, REASON_KEY, SecondaryContent

USER: Final = 65532
"""The user `nonroot` of distroless images; kube-scheduler runs as any user."""

_TOKEN_MOUNT: Final[Mapping[str, Any]] = {
    "name": "api-access",
    "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    "readOnly": True,
}
_TOKEN_SECONDS: Final = 3607
"""The lifetime of the tokens that the API server mounts by itself."""

_ROLLOUT: Final = "pod-template-hash"

LIVEZ_SINCE: Final = Version(1, 32)
"""The first kube-scheduler with separate endpoints for liveness and readiness."""


@dataclass(frozen=True, slots=True)
class OperandDefaults:
    image: str  # the control plane's kube-scheduler image; empty if it is unknown
    pull_secrets: tuple[str, ...] = ()  # of the target namespace
    agent_image: str = ""  # the operator's own image


@dataclass(frozen=True, slots=True)
class DesiredScheduler:
    request: SchedulerRequest  # the SecondaryScheduler with defaults
    composition: SecondaryComposition  # validated
    content: SecondaryContent | None  # to roll out; None if it has errors
    inputs: str = ""  # the specs that lead to it, for `kubectl scheduler rollout undo`

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.composition.findings


def desired_scheduler(
    made: EffectiveSecondary, platform: Platform, operand: OperandDefaults
) -> DesiredScheduler:
    composition = made.composition
    if composition.blocking:
        return DesiredScheduler(made.request, composition, None)
    content = _content(made.key, platform, operand, made.target)
    if content.size > CONFIG_MAP_BYTES:
        message = (
            f"its ConfigMap would have {content.size} bytes, and the limit is {CONFIG_MAP_BYTES}; "
            "shorten its profiles, extenders or sidecars"
        )
        too_large = Finding(names.DEGRADED, TOO_LARGE, "spec", message, blocking=True)
        findings = (*composition.findings, too_large)
        return DesiredScheduler(made.request, replace(composition, findings=findings), None)
    return DesiredScheduler(made.request, composition, content, _inputs(made))


def _inputs(made: EffectiveSecondary) -> str:
    profiles, extenders = (
        {result.name: result.spec for result in results if result.spec is not None}
        for results in (made.profiles, made.extenders)
    )
    return record_secondary(mapping(made.obj.get("spec")), profiles, extenders)


@lru_cache(maxsize=1024)
def _content(
    key: str, platform: Platform, operand: OperandDefaults, target: Target
) -> SecondaryContent:
    request, composition = composed(key, platform, target)
    image = request.image or operand.image
    default_command = platform.operand_command if target.stock else ("kube-scheduler",)
    pull_secrets = request.pull_secrets
    if pull_secrets is None:
        own = request.namespace == platform.target_namespace
        pull_secrets = operand.pull_secrets if own else ()
    modern = target.stock and target.gates.version >= LIVEZ_SINCE
    paths = ("/livez", "/readyz") if modern else ("/healthz", "/healthz")
    (spec,) = render_file(
        "secondary-scheduler-pod.yaml.j2",
        request=request,
        arguments=list(composition.arguments),
        image=image,
        command=list(request.command or default_command),
        paths=dict(zip(("live", "ready"), paths, strict=True)),
        port=PORT,
        user=USER,
        names=names,
        config_directory=CONFIG_DIRECTORY,
        confinement=dict(CONFINEMENT),
        tolerations=list(
            CONTROL_PLANE_TOLERATIONS if request.tolerations is None else request.tolerations
        ),
        spreading=list(_spread(request) if request.spread is None else request.spread),
        affinity=dict(_affinity(request)),
        pull_secrets=[{"name": name} for name in pull_secrets],
        # A sidecar inherits the scheduler's security context unless it sets its own.
        sidecars=[
            {**sidecar, "securityContext": confined(sidecar)} for sidecar in request.sidecars
        ],
        token_mount=_TOKEN_MOUNT,
        token_seconds=_TOKEN_SECONDS,
    )
    spec["volumes"] += [dict(volume) for volume in request.volumes]
    agents = [
        replace(agent, scheduler_names=composition.scheduler_names)
        for agent in request.sidecar_agents
    ]
    for agent in agents:
        of_agent = container(agent, operand.agent_image)
        # Agents run under the scheduler's account; sidecars of users do not.
        of_agent["volumeMounts"] = [*of_agent["volumeMounts"], dict(_TOKEN_MOUNT)]
        spec["containers"].append(of_agent)
        spec["volumes"] += volumes(agent, "", _agent_key(agent))
    data = {
        names.CONFIG_KEY: canonical_json(composition.config),
        names.POD_KEY: canonical_json(spec),
        IMAGE_KEY: image,
        **{_agent_key(agent): agent_file(agent) for agent in agents},
    }
    if request.reason:
        data[REASON_KEY] = request.reason
    return SecondaryContent(data)


def _agent_key(agent: ManagedAgent) -> str:
    return f"{agent.object_name}.json"


def _spread(request: SchedulerRequest) -> tuple[dict[str, Any], ...]:
    """Spread over nodes, as far as there are enough of them.

    Only pods of the same rollout count, because the others are being replaced. Zones are not a
    constraint here: kube-scheduler ignores all soft constraints on a node that lacks the label of
    one, and on many clusters no node has a zone.
    """
    return (
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": request.selector},
            "matchLabelKeys": [_ROLLOUT],
        },
    )


def _affinity(request: SchedulerRequest) -> Mapping[str, Any]:
    """Return the requested affinity; by default, the pods prefer different zones."""
    if request.affinity or request.spread is not None:
        return request.affinity
    term = {
        "topologyKey": "topology.kubernetes.io/zone",
        "labelSelector": {"matchLabels": request.selector},
        "matchLabelKeys": [_ROLLOUT],
    }
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
