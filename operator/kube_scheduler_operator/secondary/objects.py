"""What is made for a SecondaryScheduler: accounts and rights, Service, budget, Deployment."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from .. import names
from ..apply import contains, keep, with_metadata
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
from ..manifests.render import canonical_json, render_file
from ..plan import Action, Create, Event, Replace
from ..platform import AUTHENTICATION_NAMESPACE
from ..snapshot import Object, annotation
from .compose import PORT
from .content import Content, digest, owner, pod_template
from .request import Request

Existing = Mapping[Resource, Mapping[str, Object]]
"""What was made for one SecondaryScheduler: kind -> name -> object."""

_RESTART: Final = "kubectl.kubernetes.io/restartedAt"

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
    """Make the Deployment, or have it run `content`.

    The API server completes it, so what it says cannot be compared with what was written. But its
    generation grows with every edit of its spec: one beyond that of our last write is somebody's.
    """
    wanted, spec_hash = _deployment(
        request.name, request.uid, request.namespace, request.replicas, content
    )
    found = existing.get(DEPLOYMENTS, {}).get(request.name)
    where = f"Deployment/{request.name} -n {request.namespace}"
    generation = int(found["metadata"].get("generation") or 0) if found else 0
    notes = {
        names.SPEC_HASH_ANNOTATION: spec_hash,
        names.WRITTEN_GENERATION_ANNOTATION: str(generation + 1),
    }
    noted = {**wanted, "metadata": {**wanted["metadata"], "annotations": notes}}
    if found is None:
        message = f"Created {where} with configuration {content.hash}"
        event = Event("DeploymentCreated", message)
        return (Create(DEPLOYMENTS, noted, (event,), exclusive=True),)
    written = annotation(found, names.WRITTEN_GENERATION_ANNOTATION)
    edited = not written.isdecimal() or generation > int(written)
    if annotation(found, names.SPEC_HASH_ANNOTATION) == spec_hash and not edited:
        metadata = with_metadata(found, wanted)
        if metadata == found["metadata"]:
            return ()
        event = Event("DeploymentUpdated", f"Updated {where} because metadata changed")
        return (Replace(DEPLOYMENTS, {**found, "metadata": metadata}, events=(event,)),)
    wanted = _with_restart(wanted, found)
    if edited and contains(found.get("spec"), wanted["spec"]):
        # Nothing that matters: `kubectl rollout restart`, say.
        notes[names.WRITTEN_GENERATION_ANNOTATION] = str(generation)
        event = Event("DeploymentUpdated", f"Took note of generation {generation} of {where}")
        return (
            Replace(
                DEPLOYMENTS, {**found, "metadata": with_metadata(found, noted)}, events=(event,)
            ),
        )
    why = "somebody changed it" if edited else f"configuration {content.hash} is rolled out"
    if running_hash(found) == content.hash and not edited:
        why = "spec of the SecondaryScheduler changed"
    changed = {**found, "metadata": with_metadata(found, noted), "spec": wanted["spec"]}
    event = Event("DeploymentUpdated", f"Updated {where} because {why}")
    return (Replace(DEPLOYMENTS, changed, events=(event,)),)


def _with_restart(wanted: Mapping[str, Any], found: Object) -> Mapping[str, Any]:
    """`wanted` with the mark that `kubectl rollout restart` leaves, which is nobody's mistake."""
    template = (found.get("spec") or {}).get("template") or {}
    mark = ((template.get("metadata") or {}).get("annotations") or {}).get(_RESTART)
    if mark is None:
        return wanted
    spec = wanted["spec"]
    metadata = spec["template"]["metadata"]
    annotations = {**metadata["annotations"], _RESTART: mark}
    marked = {**spec["template"], "metadata": {**metadata, "annotations": annotations}}
    return {**wanted, "spec": {**spec, "template": marked}}


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
