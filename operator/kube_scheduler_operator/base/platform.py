"""The differences between kinds of clusters, as one immutable value.

Other code reads the Platform and never checks for a kind of cluster. To support another kind, add a
value here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from . import names
from .objects import Object

AUTHENTICATION_NAMESPACE: Final = "kube-system"
"""The namespace of the API server's ConfigMap extension-apiserver-authentication and its Role."""


@dataclass(frozen=True, slots=True)
class LeaseTimings:
    """The timings of the schedulers' leader election, as in KubeSchedulerConfiguration."""

    lease_duration: str = "15s"
    renew_deadline: str = "10s"
    retry_period: str = "2s"

    @property
    def retry(self) -> timedelta:
        """The longest time between two renewals by the leader."""
        return timedelta(seconds=float(self.retry_period.removesuffix("s")))


@dataclass(frozen=True, slots=True)
class SchedulerCredentials:
    """The scheduler's certificates, on platforms where the cluster issues and renews them."""

    namespace: str  # from which the client certificate and the CA bundles are copied
    client_certificate: str  # a Secret (kubernetes.io/tls)
    ca_bundles: tuple[str, ...]  # ConfigMaps whose `ca-bundle.crt` form the schedulers' CA bundle
    serving_certificate: str  # a Secret in the target namespace; optional
    # on a node; all revisions share it, because a renewal does not require a new revision
    directory: str
    mounted: str  # the same directory in the scheduler's container


@dataclass(frozen=True, slots=True)
class OperatorNames:
    """The names of the operator's own objects, all in the operator's namespace."""

    deployment: str = names.PROGRAM
    account: str = names.PROGRAM  # a ServiceAccount
    lease: str = names.LEASE
    config: str = ""  # the ConfigMap with which the cluster configures the operator, if any


@dataclass(frozen=True, slots=True)
class Platform:
    """A kind of cluster: where things are and what they are called there."""

    name: str  # the value of `--platform`
    operator_namespace: str  # of the operator, its Lease and its events
    target_namespace: str  # of configuration, revisions and installer pods
    operand_namespace: str  # of the scheduler's static pods
    operand_lease_namespace: str  # of kube-scheduler's Lease
    operand_lease_name: str
    operand_lease: LeaseTimings
    static_pod_name: str  # `metadata.name` of the static pod; the mirror pod adds `-NODE`
    static_pod_labels: tuple[tuple[str, str], ...]  # by which the platform selects the scheduler
    manifest_dir: str  # the kubelet's static-pod directory
    manifest_file: str  # the scheduler's file in it
    resource_dir: str  # of the revisions; NOT inside manifest_dir: the kubelet would run them
    operand_command: tuple[str, ...]
    scheduler_kubeconfig: str  # on the node, or in the revision if `credentials` is set
    default_arguments: tuple[tuple[str, str], ...]  # flags before overrides: (name, value)
    node_selectors: tuple[str, ...]  # labels of control-plane nodes; one, with any value, is enough
    # whether the control plane's scheduler is a static pod that the operator owns. If not, the
    # provider runs that scheduler, and the fields about nodes and static pods are empty.
    owns_static_pods: bool = True
    operator: OperatorNames = OperatorNames()
    # the names in earlier releases, whose operator is replaced
    former_operator: OperatorNames | None = None
    # NetworkPolicies of bindata/static that the operator keeps in the target namespace, if the
    # manifests do not contain them
    network_policies: tuple[str, ...] = ()
    # whether clients of the operator's port, such as the cluster's own Prometheus, may identify
    # themselves by a certificate of the cluster's CA
    client_certificates: bool = False
    pod_log_dir: str = "/var/log/pods"  # the kubelet's directory of container logs
    kubelet_pod_dir: str = "/var/lib/kubelet/pods"  # the kubelet's directory of pods
    probe_host: str = "127.0.0.1"  # the host of health probes unless `bind-address` is set
    # whether hand edits of a revision's files, or of a node's manifest except its revision, stay
    # until the next revision. All platforms report them.
    keeps_hand_edits: bool = False
    upgrade_dir: str = ""  # where an upgrade of the control plane keeps its work, if guards see it
    # whether APIServer, FeatureGate and Infrastructure of config.openshift.io exist, and another
    # operator handles those fields of the Scheduler that do not configure kube-scheduler
    cluster_config: bool = False
    # whether the cluster has its own definitions of Scheduler, KubeScheduler and ClusterOperator.
    # That of KubeScheduler refuses managementState Unmanaged and Removed, so that users request
    # them by an annotation (base/management.py), and may lack nodeUID.
    brings_definitions: bool = False
    config_namespace: str = ""  # of users' ConfigMaps to which Scheduler refers, if any
    kubelet_mark: str = ""  # a substring of the kubelet version that identifies this platform
    # files to which a kubeconfig on the node refers; each is mounted by itself, because their
    # directory may contain others that the scheduler must not read
    kubeconfig_files: tuple[str, ...] = ()
    dropped_arguments: tuple[str, ...] = ()  # adopted flags that name files that are not mounted
    static_pod_annotations: tuple[tuple[str, str], ...] = ()  # that the platform requires
    credentials: SchedulerCredentials | None = None  # None if the node's kubeconfig has them
    stock_host_paths: tuple[str, ...] = ()  # from which the platform's own manifest mounts files
    stock_environment: tuple[str, ...] = ()  # variables of the platform's own manifest

    @property
    def definitions(self) -> str:
        """The folder of the CustomResourceDefinitions that users may apply here."""
        return "deploy/openshift/crds" if self.brings_definitions else "crds"

    @property
    def adopts_pods(self) -> bool:
        """Whether static Pods that predate the operator have settings of users."""
        return self.owns_static_pods and self.credentials is None

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the ConfigMaps of a revision."""
        own = (names.CONFIG, names.POD)
        return (*own, names.CA_BUNDLE, names.KUBECONFIG) if self.credentials else own

    @property
    def unassigned_namespaces(self) -> frozenset[str]:
        """The namespaces whose Pods are never assigned to a SecondaryScheduler."""
        own = {self.operator_namespace, self.target_namespace, self.operand_namespace}
        return frozenset({AUTHENTICATION_NAMESPACE, *own})

    @property
    def source_namespaces(self) -> tuple[str, ...]:
        """The namespaces of other actors' objects that the operator copies."""
        managed = self.credentials.namespace if self.credentials else ""
        return tuple(filter(None, (self.config_namespace, managed)))

    def is_control_plane(self, node: Object) -> bool:
        """Whether a node has the role of a control-plane node; the label has any value."""
        labels = node["metadata"].get("labels") or {}
        return any(selector in labels for selector in self.node_selectors)

    def mirror_pod_name(self, node: str) -> str:
        return f"{self.static_pod_name}-{node}"

    def secondary_namespaces(self, configured: Sequence[str] | None) -> tuple[str, ...]:
        """Return the namespaces as configured, or by default the target namespace."""
        return tuple(configured) if configured is not None else (self.target_namespace,)

    @property
    def manifest_path(self) -> str:
        return f"{self.manifest_dir}/{self.manifest_file}"


KUBEADM = Platform(
    name="kubeadm",
    operator_namespace="kube-scheduler-operator",
    target_namespace="kube-scheduler-operator",
    operand_namespace="kube-system",
    operand_lease_namespace="kube-system",
    operand_lease_name="kube-scheduler",
    operand_lease=LeaseTimings(),
    static_pod_name="kube-scheduler",
    static_pod_labels=(("component", "kube-scheduler"), ("tier", "control-plane")),
    manifest_dir="/etc/kubernetes/manifests",
    manifest_file="kube-scheduler.yaml",
    resource_dir="/etc/kubernetes/static-pod-resources",
    operand_command=("kube-scheduler",),
    scheduler_kubeconfig="/etc/kubernetes/scheduler.conf",
    upgrade_dir="/etc/kubernetes/tmp",
    default_arguments=(("bind-address", "127.0.0.1"),),
    node_selectors=("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"),
)

OPENSHIFT = Platform(
    name="openshift",
    operator_namespace="openshift-kube-scheduler-operator",
    operator=OperatorNames(
        # The account is not OpenShift's, which the release payload makes cluster-admin.
        deployment="openshift-kube-scheduler-operator",
        # OpenShift's own operator has the same Lease, so the two never lead at the same time.
        lease="openshift-cluster-kube-scheduler-operator-lock",
        config="openshift-kube-scheduler-operator-config",
    ),
    former_operator=OperatorNames(),
    network_policies=("default-deny-all", "installer-pruner"),
    client_certificates=True,
    target_namespace="openshift-kube-scheduler",
    operand_namespace="openshift-kube-scheduler",
    operand_lease_namespace="openshift-kube-scheduler",
    operand_lease_name="kube-scheduler",
    # Long enough to outlast the update of a single-node control plane.
    operand_lease=LeaseTimings("137s", "107s", "26s"),
    static_pod_name="openshift-kube-scheduler",
    static_pod_labels=(("app", "openshift-kube-scheduler"), ("scheduler", "true")),
    # Workload partitioning confines it to the CPUs that are reserved for management.
    static_pod_annotations=(
        ("target.workload.openshift.io/management", '{"effect": "PreferredDuringScheduling"}'),
    ),
    manifest_dir="/etc/kubernetes/manifests",
    manifest_file="kube-scheduler-pod.yaml",
    resource_dir="/etc/kubernetes/static-pod-resources",
    operand_command=("hyperkube", "kube-scheduler"),
    scheduler_kubeconfig=(
        "/etc/kubernetes/static-pod-resources/configmaps/scheduler-kubeconfig/kubeconfig"
    ),
    default_arguments=(("cert-dir", "/var/run/kubernetes"),),
    node_selectors=("node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"),
    probe_host="",
    credentials=SchedulerCredentials(
        namespace="openshift-config-managed",
        client_certificate="kube-scheduler-client-cert-key",
        ca_bundles=("kube-apiserver-server-ca", "default-ingress-cert"),
        serving_certificate="serving-cert",
        directory="/etc/kubernetes/static-pod-resources/kube-scheduler-certs",
        mounted="/etc/kubernetes/static-pod-certs",
    ),
    # The documented way to enable profiling is to edit these files.
    keeps_hand_edits=True,
    cluster_config=True,
    brings_definitions=True,
    config_namespace="openshift-config",
)

_RKE2 = "/var/lib/rancher/rke2"

# RKE2 runs the scheduler as kubeadm does, from other directories. Its service rewrites the manifest
# at every start, which is handled as drift.
RKE2 = replace(
    KUBEADM,
    name="rke2",
    kubelet_mark="+rke2",
    upgrade_dir="",
    manifest_dir=f"{_RKE2}/agent/pod-manifests",
    resource_dir=f"{_RKE2}/agent/static-pod-resources",
    scheduler_kubeconfig=f"{_RKE2}/server/cred/scheduler.kubeconfig",
    # Their directory also contains the keys of all certificate authorities of the cluster.
    kubeconfig_files=(
        f"{_RKE2}/server/tls/server-ca.crt",
        f"{_RKE2}/server/tls/client-scheduler.crt",
        f"{_RKE2}/server/tls/client-scheduler.key",
    ),
    # Only recent versions of RKE2 set a serving certificate; without it the scheduler creates one.
    dropped_arguments=("tls-cert-file", "tls-private-key-file"),
    stock_host_paths=(_RKE2,),
    stock_environment=("FILE_HASH",),
)

# The provider runs the control plane's scheduler, where no one else can change it. The Lease is the
# name that no other scheduler may take.
MANAGED = replace(
    KUBEADM,
    name="managed",
    owns_static_pods=False,
    upgrade_dir="",
    static_pod_name="",
    static_pod_labels=(),
    manifest_dir="",
    manifest_file="",
    resource_dir="",
    default_arguments=(),
    node_selectors=(),
)

PLATFORMS: dict[str, Platform] = {
    platform.name: platform for platform in (KUBEADM, OPENSHIFT, RKE2, MANAGED)
}
