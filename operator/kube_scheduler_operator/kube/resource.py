"""API kinds and their URL paths, and the keys of objects and watches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind as the API serves it."""

    group: str  # empty for the core group
    version: str  # e.g. "v1"
    plural: str  # the name in URLs and in RBAC rules, e.g. "configmaps"
    kind: str  # the name in manifests, e.g. "ConfigMap"
    namespaced: bool  # whether its objects live in namespaces

    @property
    def api_version(self) -> str:
        """`apiVersion` in manifests: "v1" or "group/version"."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def name(self) -> str:
        """The name that kubectl and CustomResourceDefinitions use: "plural" or "plural.group"."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(
        self,
        namespace: str | None = None,
        name: str | None = None,
        subresource: str | None = None,
    ) -> str:
        """Return the URL path of the collection, of one object, or of a subresource of it.

        Raises:
            ValueError: a cluster-scoped kind with a namespace, a namespaced object without one, or
                a subresource without a name.
        """
        if namespace and not self.namespaced:
            raise ValueError(f"{self.kind} is cluster-scoped: remove the namespace {namespace!r}")
        if name and self.namespaced and not namespace:
            raise ValueError(f"{self.kind} {name!r} needs a namespace")
        if subresource and not name:
            raise ValueError(f"subresource {subresource!r} of {self.plural} needs a name")
        path = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if namespace:
            path += f"/namespaces/{quote(namespace, safe='')}"
        path += f"/{self.plural}"
        if name:
            path += f"/{quote(name, safe='')}"
        if subresource:
            path += f"/{subresource}"
        return path

    def ref(self, obj: Mapping[str, Any]) -> ObjectRef:
        """Return the key of `obj`, an object of this kind."""
        metadata = obj["metadata"]
        namespace = metadata.get("namespace") if self.namespaced else None
        return ObjectRef(self, namespace, metadata["name"])

    def owner(self, name: str, uid: str, *, controller: bool = True) -> dict[str, Any]:
        """Return the reference by which objects are deleted with their owner, of this kind."""
        reference = {"apiVersion": self.api_version, "kind": self.kind, "name": name, "uid": uid}
        return {**reference, "controller": True} if controller else reference

    def named(self, name: str, namespace: str | None = None) -> ObjectRef:
        return ObjectRef(self, namespace, name)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """The key of one object: kind, namespace (None if cluster-scoped) and name."""

    resource: Resource
    namespace: str | None
    name: str

    @property
    def path(self) -> str:
        return self.resource.path(self.namespace, self.name)

    def __str__(self) -> str:
        prefix = f"{self.namespace}/" if self.namespace else ""
        return f"{self.resource.kind} {prefix}{self.name}"


class Stream(NamedTuple):
    """The scope of one watch: a kind, in one namespace or (None) in all."""

    resource: Resource
    namespace: str | None = None

    def __str__(self) -> str:
        return f"{self.resource} in {self.namespace}" if self.namespace else str(self.resource)


@dataclass(frozen=True, slots=True)
class WatchSpec:
    """A watch to keep open."""

    resource: Resource
    namespace: str | None = None  # None for cluster-scoped kinds, or for all namespaces
    label_selector: str | None = None  # e.g. "app=installer"
    field_selector: str | None = None  # e.g. "metadata.name=cluster"
    optional: bool = False  # do not wait for the kind if the API server does not serve it
    # further label selectors, of which one has to select an object
    or_label_selectors: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.namespace and not self.resource.namespaced:
            raise ValueError(f"{self.resource} is cluster-scoped: watch it without a namespace")

    @property
    def stream(self) -> Stream:
        return Stream(self.resource, self.namespace)


def namespaced(api_version: str, kind: str) -> Resource:
    """Return a built-in kind whose plural is regular."""
    group, _, version = api_version.rpartition("/")
    return Resource(group, version, f"{kind.lower()}s", kind, namespaced=True)


def cluster_scoped(api_version: str, kind: str, plural: str = "") -> Resource:
    group, _, version = api_version.rpartition("/")
    return Resource(group, version, plural or f"{kind.lower()}s", kind, namespaced=False)


_RBAC: Final = "rbac.authorization.k8s.io/v1"
_ADMISSION: Final = "admissionregistration.k8s.io/v1"
_OPENSHIFT_CONFIG: Final = "config.openshift.io/v1"
_OWN: Final = "kube-scheduler-operator.dev/v1alpha1"

CONFIG_MAPS: Final = namespaced("v1", "ConfigMap")
PODS: Final = namespaced("v1", "Pod")
NODES: Final = cluster_scoped("v1", "Node")
EVENTS: Final = namespaced("v1", "Event")
EVENTS_V1: Final = namespaced("events.k8s.io/v1", "Event")  # the same objects, with reporter
NAMESPACES: Final = cluster_scoped("v1", "Namespace")
SERVICES: Final = namespaced("v1", "Service")
SERVICE_ACCOUNTS: Final = namespaced("v1", "ServiceAccount")
SECRETS: Final = namespaced("v1", "Secret")
DEPLOYMENTS: Final = namespaced("apps/v1", "Deployment")
DAEMON_SETS: Final = namespaced("apps/v1", "DaemonSet")
JOBS: Final = namespaced("batch/v1", "Job")
LEASES: Final = namespaced("coordination.k8s.io/v1", "Lease")
NETWORK_POLICIES: Final = Resource(
    "networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", namespaced=True
)
DISRUPTION_BUDGETS: Final = namespaced("policy/v1", "PodDisruptionBudget")
ROLES: Final = namespaced(_RBAC, "Role")
ROLE_BINDINGS: Final = namespaced(_RBAC, "RoleBinding")
CLUSTER_ROLES: Final = cluster_scoped(_RBAC, "ClusterRole")
CLUSTER_ROLE_BINDINGS: Final = cluster_scoped(_RBAC, "ClusterRoleBinding")
CUSTOM_RESOURCE_DEFINITIONS: Final = cluster_scoped(
    "apiextensions.k8s.io/v1", "CustomResourceDefinition"
)
MUTATING_POLICIES: Final = cluster_scoped(
    _ADMISSION, "MutatingAdmissionPolicy", "mutatingadmissionpolicies"
)
MUTATING_POLICY_BINDINGS: Final = cluster_scoped(_ADMISSION, "MutatingAdmissionPolicyBinding")
MUTATING_WEBHOOKS: Final = cluster_scoped(_ADMISSION, "MutatingWebhookConfiguration")
VALIDATING_WEBHOOKS: Final = cluster_scoped(_ADMISSION, "ValidatingWebhookConfiguration")
TOKEN_REVIEWS: Final = cluster_scoped("authentication.k8s.io/v1", "TokenReview")
SUBJECT_ACCESS_REVIEWS: Final = cluster_scoped("authorization.k8s.io/v1", "SubjectAccessReview")
SELF_SUBJECT_ACCESS_REVIEWS: Final = cluster_scoped(
    "authorization.k8s.io/v1", "SelfSubjectAccessReview"
)
SCHEDULERS: Final = cluster_scoped(_OPENSHIFT_CONFIG, "Scheduler")
API_SERVERS: Final = cluster_scoped(_OPENSHIFT_CONFIG, "APIServer")
FEATURE_GATES: Final = cluster_scoped(_OPENSHIFT_CONFIG, "FeatureGate")
INFRASTRUCTURES: Final = cluster_scoped(_OPENSHIFT_CONFIG, "Infrastructure")
CLUSTER_OPERATORS: Final = cluster_scoped(_OPENSHIFT_CONFIG, "ClusterOperator")
SCHEDULER_PROFILES: Final = cluster_scoped(_OWN, "SchedulerProfile")
SCHEDULER_EXTENDERS: Final = cluster_scoped(_OWN, "SchedulerExtender")
LOAD_POLICIES: Final = cluster_scoped(_OWN, "LoadPolicy", plural="loadpolicies")
OPERATOR_SETTINGS: Final = cluster_scoped(_OWN, "OperatorSettings", plural="operatorsettings")
KUBE_SCHEDULERS: Final = cluster_scoped("operator.openshift.io/v1", "KubeScheduler")
SECONDARY_SCHEDULERS: Final = cluster_scoped(_OWN, "SecondaryScheduler")
AKS_SCHEDULER_CONFIGURATIONS: Final = cluster_scoped(
    "aks.azure.com/v1alpha1", "SchedulerConfiguration"
)
"""Configures the scheduler of Azure's managed clusters."""

CONFIGURED: Final[Mapping[str, Resource]] = {
    resource.kind: resource
    for resource in (
        SCHEDULERS,
        KUBE_SCHEDULERS,
        SCHEDULER_PROFILES,
        SCHEDULER_EXTENDERS,
        SECONDARY_SCHEDULERS,
        LOAD_POLICIES,
        OPERATOR_SETTINGS,
    )
}
"""The kinds in which users configure schedulers and their load, by name."""

OBSERVED: Final[Mapping[str, Resource]] = {
    resource.kind: resource for resource in (API_SERVERS, FEATURE_GATES, INFRASTRUCTURES)
}
"""The kinds of OpenShift that configure other components as well, by name."""
