"""Which kinds there are, where the API serves them, and how one object is named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind as the API serves it.

    Attributes:
        group: API group; empty for the core group.
        version: API version, e.g. "v1".
        plural: the name in URLs and in RBAC rules, e.g. "configmaps".
        kind: the name in manifests, e.g. "ConfigMap".
        namespaced: whether its objects live in namespaces.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

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
        """The URL path of the collection, of one object, or of a subresource of it.

        Raises:
            ValueError: a cluster-scoped kind with a namespace, a namespaced object without one, or
                a subresource without a name.
        """
        if namespace and not self.namespaced:
            raise ValueError(f"{self.kind} is cluster-scoped: no namespace ({namespace!r}) please")
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
        """The key of `obj`, an object of this kind."""
        metadata = obj["metadata"]
        namespace = metadata.get("namespace") if self.namespaced else None
        return ObjectRef(self, namespace, metadata["name"])

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
        """The URL path of the object."""
        return self.resource.path(self.namespace, self.name)

    def __str__(self) -> str:
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.resource.kind} {place}{self.name}"


class Stream(NamedTuple):
    """What one watch covers: a kind, in one namespace or (None) everywhere."""

    resource: Resource
    namespace: str | None = None

    def __str__(self) -> str:
        return f"{self.resource} in {self.namespace}" if self.namespace else str(self.resource)


CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap", namespaced=True)
PODS: Final = Resource("", "v1", "pods", "Pod", namespaced=True)
NODES: Final = Resource("", "v1", "nodes", "Node", namespaced=False)
EVENTS: Final = Resource("", "v1", "events", "Event", namespaced=True)
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
SERVICES: Final = Resource("", "v1", "services", "Service", namespaced=True)
SERVICE_ACCOUNTS: Final = Resource("", "v1", "serviceaccounts", "ServiceAccount", namespaced=True)
SECRETS: Final = Resource("", "v1", "secrets", "Secret", namespaced=True)
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment", namespaced=True)
DAEMON_SETS: Final = Resource("apps", "v1", "daemonsets", "DaemonSet", namespaced=True)
JOBS: Final = Resource("batch", "v1", "jobs", "Job", namespaced=True)
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease", namespaced=True)
DISRUPTION_BUDGETS: Final = Resource(
    "policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", namespaced=True
)
ROLES: Final = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role", namespaced=True)
ROLE_BINDINGS: Final = Resource(
    "rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", namespaced=True
)
CLUSTER_ROLES: Final = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False
)
CLUSTER_ROLE_BINDINGS: Final = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
CUSTOM_RESOURCE_DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)
TOKEN_REVIEWS: Final = Resource(
    "authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False
)
SUBJECT_ACCESS_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
SELF_SUBJECT_ACCESS_REVIEWS: Final = Resource(
    "authorization.k8s.io",
    "v1",
    "selfsubjectaccessreviews",
    "SelfSubjectAccessReview",
    namespaced=False,
)
SCHEDULERS: Final = Resource(
    "config.openshift.io", "v1", "schedulers", "Scheduler", namespaced=False
)
API_SERVERS: Final = Resource(
    "config.openshift.io", "v1", "apiservers", "APIServer", namespaced=False
)
FEATURE_GATES: Final = Resource(
    "config.openshift.io", "v1", "featuregates", "FeatureGate", namespaced=False
)
INFRASTRUCTURES: Final = Resource(
    "config.openshift.io", "v1", "infrastructures", "Infrastructure", namespaced=False
)
CLUSTER_OPERATORS: Final = Resource(
    "config.openshift.io", "v1", "clusteroperators", "ClusterOperator", namespaced=False
)
SCHEDULER_PROFILES: Final = Resource(
    "kube-scheduler-operator.dev",
    "v1alpha1",
    "schedulerprofiles",
    "SchedulerProfile",
    namespaced=False,
)
SCHEDULER_EXTENDERS: Final = Resource(
    "kube-scheduler-operator.dev",
    "v1alpha1",
    "schedulerextenders",
    "SchedulerExtender",
    namespaced=False,
)
LOAD_POLICIES: Final = Resource(
    "kube-scheduler-operator.dev", "v1alpha1", "loadpolicies", "LoadPolicy", namespaced=False
)
KUBE_SCHEDULERS: Final = Resource(
    "operator.openshift.io", "v1", "kubeschedulers", "KubeScheduler", namespaced=False
)
SECONDARY_SCHEDULERS: Final = Resource(
    "kube-scheduler-operator.dev",
    "v1alpha1",
    "secondaryschedulers",
    "SecondaryScheduler",
    namespaced=False,
)
