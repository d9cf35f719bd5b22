"""What is rolled out, as one ConfigMap by content hash: the configuration and the pods' spec.

Everything that can make a scheduler fail is in it, so that going back means to go back with all of
it: a configuration that is good with one image may be bad with another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from ..base import names
from ..base.objects import Object
from ..extenders.agent import Agent, agent_file, container, volumes
from ..manifests.pods import canonical_json, render_file
from ..model.workloads import digest
from ..schedulerconfig.canonical import config_text
from ..schedulerconfig.versions import Version
from .compose import CONFIG_DIRECTORY, PORT, Composition
from .request import TOLERATIONS, Request

USER: Final = 65532
"""The user `nonroot` of distroless images; kube-scheduler needs none in particular."""

_ROLLOUT: Final = "pod-template-hash"

REASON_KEY: Final = "forceRedeploymentReason"
IMAGE_KEY: Final = "image"

LIVEZ_SINCE: Final = Version(1, 32)
"""The first kube-scheduler that can tell being alive from being ready for sure."""

CONFINEMENT: Final[Mapping[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


@dataclass(frozen=True, slots=True)
class Content:
    """The data of a ConfigMap: key -> text."""

    data: Mapping[str, str]

    @property
    def hash(self) -> str:
        """The first digits of SHA-256 over keys and texts."""
        return _hash(self.items)

    @property
    def items(self) -> tuple[tuple[str, str], ...]:
        """The data as something that can be a key: strings remember their own hashes."""
        return tuple(sorted(self.data.items()))

    @property
    def config(self) -> Mapping[str, Any]:
        """The KubeSchedulerConfiguration."""
        return _parsed(self.data[names.CONFIG_KEY])

    @property
    def arguments(self) -> tuple[str, ...]:
        """kube-scheduler's arguments."""
        containers = _parsed(self.data[names.POD_KEY])["containers"]
        return tuple(containers[0]["args"])

    @property
    def image(self) -> str:
        """kube-scheduler's image."""
        return self.data.get(IMAGE_KEY, "")


@lru_cache(maxsize=1024)
def _hash(items: tuple[tuple[str, str], ...]) -> str:
    return digest(canonical_json(dict(items)))


@lru_cache(maxsize=512)
def _parsed(text: str) -> Mapping[str, Any]:
    document: dict[str, Any] = json.loads(text)
    return document


def content_of(config_map: Object) -> Content:
    """The content that was put into a ConfigMap."""
    return Content(config_map.get("data") or {})


def make_content(
    request: Request,
    composition: Composition,
    *,
    image: str,
    command: tuple[str, ...],
    version: Version,
    stock: bool,
    pull_secrets: tuple[str, ...],
    agent_image: str = "",
) -> Content:
    """The content that a request comes to.

    Args:
        request: what is asked for.
        composition: its configuration, with nothing wrong in it.
        image: kube-scheduler's.
        command: how it is started.
        version: of that kube-scheduler.
        stock: whether the version says for sure how it can be probed.
        pull_secrets: names of the Secrets with which the pods pull images.
        agent_image: of agents that do not say theirs.
    """
    spec = pod_spec(
        request,
        composition.arguments,
        image=image,
        command=command,
        version=version,
        stock=stock,
        pull_secrets=pull_secrets,
        agent_image=agent_image,
    )
    data = {
        names.CONFIG_KEY: config_text(composition.config),
        names.POD_KEY: canonical_json(spec),
        IMAGE_KEY: image,
        **{_agent_key(agent): agent_file(agent) for agent in request.sidecar_agents},
    }
    if request.reason:
        data[REASON_KEY] = request.reason
    return Content(data)


def pod_spec(
    request: Request,
    arguments: tuple[str, ...],
    *,
    image: str,
    command: tuple[str, ...],
    version: Version,
    stock: bool,
    pull_secrets: tuple[str, ...],
    agent_image: str = "",
) -> dict[str, Any]:
    """The spec of the pods, without the name of the ConfigMap."""
    modern = stock and version >= LIVEZ_SINCE
    (spec,) = render_file(
        "secondary-scheduler-pod.yaml.j2",
        request=request,
        arguments=list(arguments),
        image=image,
        command=list(command),
        paths={"live": "/livez", "ready": "/readyz"}
        if modern
        else {"live": "/healthz", "ready": "/healthz"},
        port=PORT,
        user=USER,
        names=names,
        config_directory=CONFIG_DIRECTORY,
        confinement=dict(CONFINEMENT),
        tolerations=list(TOLERATIONS if request.tolerations is None else request.tolerations),
        spreading=list(_spread(request) if request.spread is None else request.spread),
        affinity=dict(_affinity(request)),
        pull_secrets=[{"name": name} for name in pull_secrets],
        # What a sidecar does not say of its confinement is as for the scheduler.
        sidecars=[
            {
                **sidecar,
                "securityContext": {**CONFINEMENT, **(sidecar.get("securityContext") or {})},
            }
            for sidecar in request.sidecars
        ],
    )
    spec["volumes"] += [dict(volume) for volume in request.volumes]
    for agent in request.sidecar_agents:
        spec["containers"].append(container(agent, agent_image))
        spec["volumes"] += volumes(agent, "", _agent_key(agent))
    return spec


def _agent_key(agent: Agent) -> str:
    return f"{agent.object_name}.json"


def _spread(request: Request) -> tuple[dict[str, Any], ...]:
    """Over nodes; where there are too few of them, as far as that is possible.

    Only pods of the same rollout count, for the others are on their way out. Zones are not among
    these constraints: kube-scheduler scores none of them on nodes that lack the label of one, and
    on many clusters no node has a zone.
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


def _affinity(request: Request) -> Mapping[str, Any]:
    """What is asked for, or away from the zones of the others: no matter where there are none."""
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
    """`NAME-config-HASH`."""
    return f"{name}-{names.CONFIG}-{content_hash}"


def config_map(request: Request, content: Content) -> dict[str, Any]:
    """The ConfigMap of a content; nobody can change it under a running scheduler."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": config_map_name(request.name, content.hash),
            "namespace": request.namespace,
            "labels": {
                names.SECONDARY_LABEL: request.name,
                names.CONFIG_HASH_LABEL: content.hash,
                **names.OWN_LABELS,
            },
            "ownerReferences": [owner(request)],
        },
        "immutable": True,
        "data": dict(content.data),
    }


def pod_template(request: Request, content: Content) -> dict[str, Any]:
    """The Deployment's template: the content's spec, with its ConfigMap in it."""
    spec: dict[str, Any] = json.loads(content.data[names.POD_KEY])
    for volume in spec["volumes"]:
        source = volume.get("configMap")
        if source is not None and not source.get("name"):
            # Others name theirs: these are of the content itself.
            source["name"] = config_map_name(request.name, content.hash)
    return {
        "metadata": {
            "labels": {**request.labels, names.CONFIG_HASH_LABEL: content.hash},
            "annotations": {"kubectl.kubernetes.io/default-container": names.OPERAND},
        },
        "spec": spec,
    }


def owner(request: Request) -> dict[str, Any]:
    """The reference by which everything goes with its SecondaryScheduler."""
    return {
        "apiVersion": "kube-scheduler-operator.dev/v1alpha1",
        "kind": "SecondaryScheduler",
        "name": request.name,
        "uid": request.uid,
        "controller": True,
    }
