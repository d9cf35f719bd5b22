"""The content to roll out, and the objects of a SecondaryScheduler that run it.

The content is configuration and Pod spec, in one ConfigMap named by content hash. It contains
everything that can make a scheduler fail, so that a return to the last known good content restores
all of it: a configuration may be valid for one image and invalid for another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from ...base import names
from ...base.json_text import parse_json
from ...base.objects import Object, is_controlled_by, mapping
from ...base.platform import AUTHENTICATION_NAMESPACE
from ...base.spec_limits import data_bytes
from ...base.templates import canonical_json, render_file
from ...config.effective.secondary.compose import PORT
from ...config.effective.secondary.request import SchedulerRequest
from ...kube.resource import (
    CLUSTER_ROLE_BINDINGS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    ROLE_BINDINGS,
    ROLES,
    SECONDARY_SCHEDULERS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from ..model.apply import keep, new_object
from ..model.plan import Action
from ..model.workloads import digest, keep_workload

REASON_KEY: Final = "forceRedeploymentReason"
IMAGE_KEY: Final = "image"

Existing = Mapping[Resource, Mapping[str, Object]]
"""The objects of one SecondaryScheduler: kind -> name -> object."""

# In the order of creation: kind -> resource, and its fields that the operator owns.
_KINDS: Final[dict[str, tuple[Resource, tuple[str, ...]]]] = {
    "ServiceAccount": (SERVICE_ACCOUNTS, ()),
    "ClusterRoleBinding": (CLUSTER_ROLE_BINDINGS, ("roleRef", "subjects")),
    "RoleBinding": (ROLE_BINDINGS, ("roleRef", "subjects")),
    "Role": (ROLES, ("rules",)),
    "Service": (SERVICES, ("spec",)),
    "PodDisruptionBudget": (DISRUPTION_BUDGETS, ("spec",)),
}


@dataclass(frozen=True, slots=True)
class SecondaryContent:
    """The data of a ConfigMap: key -> text."""

    data: Mapping[str, str]
    # not part of its identity: the settings of users for it, if they are not the desired ones
    inputs: str = field(default="", compare=False)

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
    def pod(self) -> Mapping[str, Any]:
        """The Pod spec."""
        return _parsed(self.data[names.POD_KEY])

    @property
    def operand(self) -> Mapping[str, Any]:
        """The container of kube-scheduler."""
        container: Mapping[str, Any] = self.pod["containers"][0]
        return container

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(self.operand["args"])

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


# --- account, RBAC, Service, disruption budget, Deployment --------------------------------------


def keep_static_objects(request: SchedulerRequest, existing: Existing) -> tuple[Action, ...]:
    """Create or correct everything except ConfigMaps and the Deployment."""
    return tuple(
        action
        for obj in _objects(request)
        if obj["kind"] in _KINDS
        for resource, fields in [_KINDS[obj["kind"]]]
        for action in keep(resource, existing.get(resource, {}), obj, fields)
    )


def keep_deployment(
    request: SchedulerRequest, content: SecondaryContent, existing: Existing
) -> tuple[Action, ...]:
    """Create the Deployment, or roll out `content` with it."""
    desired, spec_hash = _deployment(
        request.name, request.uid, request.namespace, request.replicas, content.items
    )
    deployment = existing.get(DEPLOYMENTS, {}).get(request.name)
    what = f"configuration {content.hash}"
    why = f"{what} is rolled out"
    if running_hash(deployment) == content.hash:
        why = "spec of the SecondaryScheduler changed"
    return keep_workload(DEPLOYMENTS, deployment, desired, spec_hash, what=what, why=why)


def running_hash(deployment: Object | None) -> str:
    """Return the hash of the content that a Deployment runs or rolls out; empty without one."""
    template = ((deployment or {}).get("spec") or {}).get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    return str(labels.get(names.CONFIG_HASH_LABEL, ""))


def _objects(request: SchedulerRequest) -> tuple[Mapping[str, Any], ...]:
    """Render all objects except ConfigMaps; cached, so callers must not change them."""
    return _rendered(request.name, request.uid, request.namespace, request.replicas)


# Rendering a template costs more than the rest of a reconcile.
@lru_cache(maxsize=512)
def _rendered(name: str, uid: str, namespace: str, replicas: int) -> tuple[dict[str, Any], ...]:
    documents = render_file(
        "secondary-scheduler.yaml.j2",
        request=SchedulerRequest(name, uid, namespace, replicas=replicas),
        owner=SECONDARY_SCHEDULERS.owner(name, uid),
        authentication_namespace=AUTHENTICATION_NAMESPACE,
        port=PORT,
        names=names,
    )
    return tuple(documents)


@lru_cache(maxsize=512)
def _deployment(
    name: str, uid: str, namespace: str, replicas: int, items: tuple[tuple[str, str], ...]
) -> tuple[Mapping[str, Any], str]:
    """Make the Deployment and a hash of its spec; cached, so callers must not change it."""
    request = SchedulerRequest(name, uid, namespace, replicas=replicas)
    (bare,) = (obj for obj in _objects(request) if obj["kind"] == "Deployment")
    template = pod_template(request, SecondaryContent(dict(items)))
    spec = {**bare["spec"], "template": template}
    return {**bare, "spec": spec}, digest(canonical_json(spec))
