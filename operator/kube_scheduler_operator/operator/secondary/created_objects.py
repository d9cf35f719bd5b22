"""The objects of a SecondaryScheduler: account, RBAC, Service, disruption budget, Deployment."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from ...base import names
from ...base.objects import Object
from ...base.platform import AUTHENTICATION_NAMESPACE
from ...base.templates import canonical_json, render_file
from ...config.effective.secondary.compose import PORT
from ...config.effective.secondary.request import SchedulerRequest
from ...kube.resource import (
    CLUSTER_ROLE_BINDINGS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    ROLE_BINDINGS,
    ROLES,
    SECONDARY_SCHEDULERS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from ..model.apply import keep
from ..model.plan import Action
from ..model.workloads import digest, keep_workload
from .content import SecondaryContent, pod_template

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
