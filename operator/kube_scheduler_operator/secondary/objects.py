"""What is made for a SecondaryScheduler: accounts and rights, Service, budget, Deployment."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from ..base import names
from ..base.objects import Object
from ..base.platform import AUTHENTICATION_NAMESPACE
from ..kube.resource import (
    CLUSTER_ROLE_BINDINGS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from ..manifests.pods import canonical_json, render_file
from ..model.apply import keep
from ..model.plan import Action
from ..model.workloads import digest, keep_workload
from .compose import PORT
from .content import Content, owner, pod_template
from .request import Request

Existing = Mapping[Resource, Mapping[str, Object]]
"""What was made for one SecondaryScheduler: kind -> name -> object."""

# In the order in which they are needed: kind -> resource and what of it is ours to say.
_KINDS: Final[dict[str, tuple[Resource, tuple[str, ...]]]] = {
    "ServiceAccount": (SERVICE_ACCOUNTS, ()),
    "ClusterRoleBinding": (CLUSTER_ROLE_BINDINGS, ("roleRef", "subjects")),
    "RoleBinding": (ROLE_BINDINGS, ("roleRef", "subjects")),
    "Role": (ROLES, ("rules",)),
    "Service": (SERVICES, ("spec",)),
    "PodDisruptionBudget": (DISRUPTION_BUDGETS, ("spec",)),
}


def keep_static_objects(request: Request, existing: Existing) -> tuple[Action, ...]:
    """Make or correct everything but ConfigMaps and Deployment."""
    return tuple(
        action
        for obj in _objects(request)
        if obj["kind"] in _KINDS
        for resource, fields in [_KINDS[obj["kind"]]]
        for action in keep(resource, existing.get(resource, {}), obj, fields)
    )


def keep_deployment(request: Request, content: Content, existing: Existing) -> tuple[Action, ...]:
    """Make the Deployment, or have it run `content`."""
    wanted, spec_hash = _deployment(
        request.name, request.uid, request.namespace, request.replicas, content
    )
    found = existing.get(DEPLOYMENTS, {}).get(request.name)
    what = f"configuration {content.hash}"
    why = f"{what} is rolled out"
    if running_hash(found) == content.hash:
        why = "spec of the SecondaryScheduler changed"
    return keep_workload(DEPLOYMENTS, found, wanted, spec_hash, what=what, why=why)


def running_hash(deployment: Object | None) -> str:
    """The content that a Deployment rolls out, or has; empty if there is none."""
    template = ((deployment or {}).get("spec") or {}).get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    return str(labels.get(names.CONFIG_HASH_LABEL, ""))


def _objects(request: Request) -> tuple[Mapping[str, Any], ...]:
    """All that is made but ConfigMaps; the same objects each time, so nobody may change them."""
    return _rendered(request.name, request.uid, request.namespace, request.replicas)


# A template costs more than everything else in a pass.
@lru_cache(maxsize=512)
def _rendered(name: str, uid: str, namespace: str, replicas: int) -> tuple[dict[str, Any], ...]:
    documents = render_file(
        "secondary-scheduler.yaml.j2",
        request=(request := Request(name, uid, namespace, replicas=replicas)),
        owner=owner(request),
        authentication_namespace=AUTHENTICATION_NAMESPACE,
        port=PORT,
        names=names,
    )
    return tuple(documents)


def _deployment(
    name: str, uid: str, namespace: str, replicas: int, content: Content
) -> tuple[Mapping[str, Any], str]:
    """The Deployment, and a hash over its spec; the same object each time: nobody may change it."""
    return _made(name, uid, namespace, replicas, content.items)


@lru_cache(maxsize=512)
def _made(
    name: str, uid: str, namespace: str, replicas: int, items: tuple[tuple[str, str], ...]
) -> tuple[Mapping[str, Any], str]:
    request = Request(name, uid, namespace, replicas=replicas)
    (bare,) = (obj for obj in _objects(request) if obj["kind"] == "Deployment")
    template = pod_template(request, Content(dict(items)))
    spec = {**bare["spec"], "template": template}
    return {**bare, "spec": spec}, digest(canonical_json(spec))
