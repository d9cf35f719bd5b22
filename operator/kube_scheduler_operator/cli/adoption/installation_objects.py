"""What an installation creates, and whether this user and the API server allow it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ...base import assets, names
from ...base.objects import Object, mapping
from ...base.platform import Platform
from ...kube import resource as kinds
from ...kube.errors import ApiError, Forbidden, Invalid, KubeError, NotFound
from ...operator.controlplane.node_pods import render_restore_pod
from ..checks.check import DryRun
from ..console.input_files import read_documents

if TYPE_CHECKING:
    from ...kube.client import ApiClient

_PARALLEL: Final = 8
"""Requests at a time."""

_VERBS: Final = ("create", "get", "patch")
"""What `kubectl apply --server-side` does with an object."""

_ROLES: Final = {
    kind.kind: kind
    for kind in (kinds.CLUSTER_ROLES, kinds.CLUSTER_ROLE_BINDINGS, kinds.ROLES, kinds.ROLE_BINDINGS)
}
"""The kinds of RBAC, whose creation has a rule of its own against escalation."""


@dataclass(frozen=True, slots=True, order=True)
class AccessRequest:
    """A question to the authorizer of the API server."""

    verb: str  # as in RBAC; empty: all
    group: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""  # of a nonResourceURL, instead

    def __str__(self) -> str:
        """Return a clause: `create deployments.apps in namespace x`."""
        if self.path:
            return f"{self.verb} {self.path}"
        plural, _, subresource = self.resource.partition("/")
        kind = f"{plural}.{self.group}" if self.group else plural
        kind += f"/{subresource}" if subresource else ""
        kind += f' "{self.name}"' if self.name else ""
        return f"{self.verb} {kind}" + (f" in namespace {self.namespace}" if self.namespace else "")

    def attributes(self) -> dict[str, Any]:
        """Return the part of a review's spec."""
        if self.path:
            return {"nonResourceAttributes": {"path": self.path, "verb": self.verb}}
        resource, _, subresource = self.resource.partition("/")
        attributes = {
            "verb": self.verb,
            "group": self.group,
            "resource": resource,
            "subresource": subresource,
            "namespace": self.namespace,
            "name": self.name,
        }
        return {"resourceAttributes": {key: value for key, value in attributes.items() if value}}


def installation_objects(platform: Platform, files: Sequence[str] = ()) -> list[Object]:
    """Read the objects of these files; without files, those of deploy/ for the platform."""
    if files:
        return [obj for name in files for obj in read_documents(name)]
    # RKE2 has the objects of kubeadm.
    name = "kubeadm" if platform.name == "rke2" else platform.name
    return _load(assets.text("bindata", f"installation/{name}.yaml"))


def own_crds() -> list[Object]:
    """Return the CustomResourceDefinitions of this version, but ClusterOperator's on OpenShift."""
    crds = []
    for file in sorted(assets.directory("crds").iterdir(), key=lambda file: file.name):
        if file.name.endswith(".yaml") and file.name != "kustomization.yaml":
            crds += _load(file.read_text(encoding="utf-8"))
    return crds


def _load(text: str) -> list[Object]:
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [obj for obj in yaml.load_all(text, Loader=loader) if obj]


# --- rights -----------------------------------------------------------------------------------


async def needed_rights(api: ApiClient, objects: Iterable[Object]) -> list[AccessRequest]:
    """Return the requests of `kubectl apply` of these objects, once each."""
    served: dict[str, dict[str, Mapping[str, Any]]] = {}
    needed: set[AccessRequest] = set()
    for obj in objects:
        version = str(obj["apiVersion"])
        if version not in served:
            served[version] = await _served(api, version)
        kind = served[version].get(str(obj["kind"]))
        if kind is None:
            continue  # its CustomResourceDefinition is part of the installation
        namespace = obj["metadata"].get("namespace", "") if kind.get("namespaced") else ""
        group = version.rpartition("/")[0]
        needed |= {AccessRequest(verb, group, str(kind["name"]), namespace) for verb in _VERBS}
    return sorted(needed)


async def _served(api: ApiClient, version: str) -> dict[str, Mapping[str, Any]]:
    path = f"/apis/{version}" if "/" in version else f"/api/{version}"
    try:
        resources = (await api.get_path(path)).get("resources") or ()
    except NotFound:
        return {}
    return {kind["kind"]: kind for kind in resources if "/" not in kind["name"]}


def account_rights(objects: Iterable[Object], namespace: str, account: str) -> list[AccessRequest]:
    """Return the rights that the roles of the installation grant to a ServiceAccount."""
    every = list(objects)
    roles = {
        (obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj
        for obj in every
        if obj.get("kind") in ("Role", "ClusterRole")
    }
    rights: set[AccessRequest] = set()
    for binding in every:
        if binding.get("kind") not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        subjects = binding["subjects"]
        if (namespace, account) not in ((s.get("namespace"), s.get("name")) for s in subjects):
            continue
        scope = str(binding["metadata"].get("namespace", ""))
        ref = binding["roleRef"]
        role = roles.get((ref["kind"], scope if ref["kind"] == "Role" else "", ref["name"]))
        for rule in mapping(role).get("rules") or ():
            rights |= set(_of_rule(rule, scope))
    return sorted(rights)


def _of_rule(rule: Mapping[str, Any], namespace: str) -> Iterator[AccessRequest]:
    for verb in rule.get("verbs") or ():
        for path in rule.get("nonResourceURLs") or ():
            yield AccessRequest(verb, path=path)
        for group in rule.get("apiGroups") or ():
            for resource in rule.get("resources") or ():
                for name in rule.get("resourceNames") or ("",):
                    yield AccessRequest(verb, group, resource, namespace, name)


async def denied(
    api: ApiClient, requests: Sequence[AccessRequest], user: Mapping[str, Any] | None = None
) -> list[str]:
    """Return what this user, or `user` (of a SubjectAccessReview), may not do.

    Raises:
        KubeError: reviews cannot be requested.
    """
    kind = kinds.SUBJECT_ACCESS_REVIEWS if user else kinds.SELF_SUBJECT_ACCESS_REVIEWS
    semaphore = asyncio.Semaphore(_PARALLEL)

    async def is_allowed(request: AccessRequest) -> bool:
        spec = {**request.attributes(), **(user or {})}
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {}, "spec": spec}
        async with semaphore:
            review = await api.create(kind, body)
        return bool(mapping(review.get("status")).get("allowed"))

    allowed = await asyncio.gather(*map(is_allowed, requests))
    return [str(request) for request, yes in zip(requests, allowed, strict=True) if not yes]


# --- dry runs ---------------------------------------------------------------------------------


def installation_pods(platform: Platform, objects: Iterable[Object]) -> list[tuple[str, Object]]:
    """Return the Pods of an installation as (description, Pod); `default` is their ServiceAccount.

    The Pod on a node has what each of the operator's Pods there has: directories of the node, its
    network and its processes.
    """
    pods: list[tuple[str, Object]] = []
    image = names.PROGRAM
    for obj in objects:
        if obj.get("kind") not in ("Deployment", "DaemonSet"):
            continue
        template = obj["spec"]["template"]
        metadata = {
            **mapping(template.get("metadata")),
            "generateName": f"{obj['metadata']['name']}-",
            "namespace": obj["metadata"]["namespace"],
        }
        spec = {**template["spec"], "serviceAccountName": "default"}
        image = next(iter(_images(template["spec"])), image)
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        pods.append((f"a Pod of {obj['kind']} {obj['metadata']['name']}", pod))
    if platform.owns_static_pods:
        on_node = render_restore_pod(platform, "node", 0, image)
        del on_node["metadata"]["name"]
        on_node["metadata"]["generateName"] = f"{names.INSTALLER}-"
        on_node["spec"]["serviceAccountName"] = "default"
        pods.append(("an installer Pod, which writes files of its node", on_node))
    return pods


def images_of(objects: Iterable[Object]) -> list[str]:
    """Return the images of Deployments and DaemonSets, once each."""
    images: dict[str, None] = {}
    for obj in objects:
        if obj.get("kind") in ("Deployment", "DaemonSet"):
            images |= dict.fromkeys(_images(obj["spec"]["template"]["spec"]))
    return list(images)


def _images(spec: Mapping[str, Any]) -> Iterator[str]:
    for container in spec.get("containers") or ():
        yield str(container.get("image") or "")


async def try_pods(dry: ApiClient, platform: Platform, objects: Iterable[Object]) -> list[DryRun]:
    """Try to create the Pods of an installation; `dry` is a client with dryRun."""
    return [await _try_pod(dry, what, pod) for what, pod in installation_pods(platform, objects)]


async def _try_pod(dry: ApiClient, what: str, pod: Object) -> DryRun:
    namespace = pod["metadata"]["namespace"]
    try:
        await dry.create(kinds.PODS, pod)
    except NotFound:
        return DryRun(what, unanswered=f"namespace {namespace} does not exist yet")
    except Forbidden as error:
        if error.rule:
            missing = f"you may not create pods in namespace {namespace}, not even as a dry run"
            return DryRun(what, unanswered=missing)
        if "serviceaccount" in error.message and "not found" in error.message:
            missing = f'namespace {namespace} has no ServiceAccount "default" yet'
            return DryRun(what, unanswered=missing)
        return DryRun(what, error=error.message)
    except Invalid as error:
        if "does not support dry run" in error.message:
            return DryRun(what, unanswered=error.message)
        return DryRun(what, error=error.message)
    except KubeError as error:
        # A webhook that fails answers with 500 for the API server.
        if "webhook" in str(error):
            return DryRun(what, error=getattr(error, "message", str(error)))
        return DryRun(what, unanswered=str(error))
    return DryRun(what)


async def try_roles(dry: ApiClient, objects: Iterable[Object]) -> list[DryRun]:
    """Try to grant the roles, except those whose refusal is a matter of plain rights."""
    tried = [await _try_role(dry, obj) for obj in objects if obj.get("kind") in _ROLES]
    return [run for run in tried if run is not None]


async def _try_role(dry: ApiClient, obj: Object) -> DryRun | None:
    what = f"{obj['kind']} {obj['metadata']['name']}"
    try:
        await dry.apply(_ROLES[obj["kind"]].ref(obj), obj)
    except NotFound:
        return None  # its namespace does not exist yet
    except Forbidden as error:
        return DryRun(what, error=error.message) if not error.rule else None
    except ApiError as error:
        return DryRun(what, unanswered=str(error))
    return DryRun(what)
