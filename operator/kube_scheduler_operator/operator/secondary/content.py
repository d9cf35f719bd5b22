"""The content to roll out: configuration and Pod spec, in one ConfigMap named by content hash.

It contains everything that can make a scheduler fail, so that a return to the last known good
content restores all of it: a configuration may be valid for one image and invalid for another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from ...base import names
from ...base.json_text import parse_json
from ...base.objects import Object, is_controlled_by, mapping
from ...base.spec_limits import data_bytes
from ...base.templates import canonical_json, render_file
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
from ...config.language.versions import Version
from ...kube.resource import CONFIG_MAPS, SECONDARY_SCHEDULERS
from ..model.apply import new_object
from ..model.workloads import CONTROL_PLANE_TOLERATIONS, digest

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

REASON_KEY: Final = "forceRedeploymentReason"
IMAGE_KEY: Final = "image"

LIVEZ_SINCE: Final = Version(1, 32)
"""The first kube-scheduler with separate endpoints for liveness and readiness."""


@dataclass(frozen=True, slots=True)
class SecondaryContent:
    """The data of a ConfigMap: key -> text."""

    data: Mapping[str, str]

    @property
    def hash(self) -> str:
        return _hash(self.items)

    @property
    def items(self) -> tuple[tuple[str, str], ...]:
        """The data in hashable form; strings cache their hashes."""
        return tuple(sorted(self.data.items()))

    @property
    def config(self) -> Mapping[str, Any]:
        return _parsed(self.data[names.CONFIG_KEY])

    @property
    def arguments(self) -> tuple[str, ...]:
        containers = _parsed(self.data[names.POD_KEY])["containers"]
        return tuple(containers[0]["args"])

    @property
    def size(self) -> int:
        """The bytes that count for the limit of a ConfigMap."""
        return data_bytes(self.data)

    @property
    def image(self) -> str:
        return self.data.get(IMAGE_KEY, "")


@lru_cache(maxsize=1024)
def _hash(items: tuple[tuple[str, str], ...]) -> str:
    return digest(canonical_json(dict(items)))


@lru_cache(maxsize=512)
def _parsed(text: str) -> Mapping[str, Any]:
    document: dict[str, Any] = parse_json(text)
    return document


def content_of(config_map: Object) -> SecondaryContent:
    return SecondaryContent(config_map.get("data") or {})


def is_content(config_map: Object, scheduler: Object, content_hash: str) -> bool:
    """Return whether a ConfigMap has the content `content_hash` of a SecondaryScheduler.

    The hash must come from the SecondaryScheduler's status, which only the operator writes. Labels
    and the name prove nothing: everyone who may write ConfigMaps can set them.
    """
    owner, metadata = scheduler["metadata"], config_map["metadata"]
    return (
        metadata["name"] == config_map_name(owner["name"], content_hash)
        and metadata.get("namespace") == mapping(scheduler.get("spec")).get("namespace")
        and is_controlled_by(config_map, str(owner.get("uid") or ""))
        and content_of(config_map).hash == content_hash
    )


@dataclass(frozen=True, slots=True)
class SchedulerProgram:
    """The kube-scheduler in the Pods of a SecondaryScheduler."""

    image: str
    command: tuple[str, ...]
    version: Version
    stock: bool  # whether it is a release of Kubernetes; the version then determines the probes
    pull_secrets: tuple[str, ...]
    agent_image: str = ""  # the default image of agents


def make_content(
    request: SchedulerRequest, composition: SecondaryComposition, program: SchedulerProgram
) -> SecondaryContent:
    modern = program.stock and program.version >= LIVEZ_SINCE
    paths = ("/livez", "/readyz") if modern else ("/healthz", "/healthz")
    (spec,) = render_file(
        "secondary-scheduler-pod.yaml.j2",
        request=request,
        arguments=list(composition.arguments),
        image=program.image,
        command=list(program.command),
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
        pull_secrets=[{"name": name} for name in program.pull_secrets],
        # A sidecar inherits the scheduler's security context unless it sets its own.
        sidecars=[
            {**sidecar, "securityContext": confined(sidecar)} for sidecar in request.sidecars
        ],
        token_mount=_TOKEN_MOUNT,
        token_seconds=_TOKEN_SECONDS,
    )
    spec["volumes"] += [dict(volume) for volume in request.volumes]
    for agent in request.sidecar_agents:
        of_agent = container(agent, program.agent_image)
        # Agents run under the scheduler's account; sidecars of users do not.
        of_agent["volumeMounts"] = [*of_agent["volumeMounts"], dict(_TOKEN_MOUNT)]
        spec["containers"].append(of_agent)
        spec["volumes"] += volumes(agent, "", _agent_key(agent))
    data = {
        names.CONFIG_KEY: canonical_json(composition.config),
        names.POD_KEY: canonical_json(spec),
        IMAGE_KEY: program.image,
        **{_agent_key(agent): agent_file(agent) for agent in request.sidecar_agents},
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


def config_map_name(name: str, content_hash: str) -> str:
    return f"{name}-{names.CONFIG}-{content_hash}"


def config_map(request: SchedulerRequest, content: SecondaryContent) -> dict[str, Any]:
    made = new_object(
        CONFIG_MAPS,
        config_map_name(request.name, content.hash),
        request.namespace,
        labels={names.SECONDARY_LABEL: request.name, names.CONFIG_HASH_LABEL: content.hash},
        ownerReferences=[SECONDARY_SCHEDULERS.owner(request.name, request.uid)],
    )
    return {**made, "immutable": True, "data": dict(content.data)}


def pod_template(request: SchedulerRequest, content: SecondaryContent) -> dict[str, Any]:
    """Make the Deployment's template: the Pod spec with the name of its ConfigMap."""
    spec: dict[str, Any] = parse_json(content.data[names.POD_KEY])
    for volume in spec["volumes"]:
        source = volume.get("configMap")
        if source is not None and not source.get("name"):
            # Volumes with a name of their own stay; these belong to the content.
            source["name"] = config_map_name(request.name, content.hash)
    return {
        "metadata": {
            "labels": {**request.labels, names.CONFIG_HASH_LABEL: content.hash},
            "annotations": {"kubectl.kubernetes.io/default-container": names.OPERAND},
        },
        "spec": spec,
    }
