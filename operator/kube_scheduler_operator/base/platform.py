"""What differs between clusters, as one immutable value.

Everything else in the package asks the Platform; there is no `if openshift` anywhere. A new kind of
cluster is a new value here, not a new branch somewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from . import names

AUTHENTICATION_NAMESPACE: Final = "kube-system"
"""Where the API server keeps what others need to authenticate its clients, and the Role for it."""


class UnsupportedCluster(Exception):  # noqa: N818 - it is the cluster's fault, not an error of ours
    """A kind of cluster whose scheduler cannot be owned; the text says why."""


@dataclass(frozen=True, slots=True)
class LeaseTimings:
    """How kube-scheduler instances elect their leader; durations as its configuration has them."""

    lease_duration: str = "15s"
    renew_deadline: str = "10s"
    retry_period: str = "2s"

    @property
    def retry(self) -> timedelta:
        """How long a leader at most waits until it renews again."""
        return timedelta(seconds=float(self.retry_period.removesuffix("s")))


@dataclass(frozen=True, slots=True)
class Credentials:
    """Where the scheduler's identity is, on platforms where the cluster keeps and renews it.

    Attributes:
        namespace: where the cluster keeps what follows; the operator copies it from there.
        client_certificate: Secret (kubernetes.io/tls) with which schedulers identify themselves.
        ca_bundles: ConfigMaps whose `ca-bundle.crt` together are what schedulers trust.
        serving_certificate: Secret in the target namespace with which schedulers serve; optional.
        directory: on a node, where the certificates are; shared by all revisions, because a renewed
            one is no reason for a new revision.
        mounted: where schedulers see that directory.
    """

    namespace: str
    client_certificate: str
    ca_bundles: tuple[str, ...]
    serving_certificate: str
    directory: str
    mounted: str


@dataclass(frozen=True, slots=True)
class Platform:
    """A kind of cluster: where things are and what they are called there.

    Attributes:
        name: how the user chooses it (`--platform`).
        operator_namespace: the operator, its Lease and its events.
        target_namespace: configuration, revisions and installer pods.
        operand_namespace: the static pods of the scheduler.
        operand_lease_namespace: where kube-scheduler's own leader election Lease is.
        operand_lease_name: its name.
        operand_lease: its timings.
        static_pod_name: `metadata.name` of the static pod; the mirror pod adds `-NODE`.
        static_pod_labels: what users of this platform select the scheduler by.
        static_pod_annotations: what this platform reads on its own pods.
        manifest_dir: the kubelet's static-pod directory.
        manifest_file: the scheduler's file in it.
        resource_dir: revisions on a node; NOT inside manifest_dir: the kubelet would run them.
        operand_command: how the operand's image is started.
        scheduler_kubeconfig: the scheduler's own identity: a file on the node, or of the revision
            if there are `credentials`.
        kubeconfig_files: what a kubeconfig on the node refers to; the scheduler sees these files
            and not their directory, in which there may be more than it should have.
        credentials: what the cluster keeps for the scheduler; None if the node's kubeconfig is all.
        default_arguments: flags that the platform's users expect, (name, value), before overrides.
        dropped_arguments: flags of the scheduler that is adopted which are not kept, because they
            name files that our pods do not see.
        node_selectors: labels, any of which makes a node a control-plane node (by existence).
        pod_log_dir: where the kubelet keeps container logs.
        kubelet_pod_dir: where it keeps a directory for every pod.
        probe_host: where the scheduler answers health probes unless `bind-address` says otherwise.
        cluster_config: APIServer, FeatureGate and Infrastructure of config.openshift.io exist, and
            somebody else honours those fields of the Scheduler that are not about kube-scheduler.
        kubelet_mark: what the versions of its kubelets have in them, and nobody else's.
    """

    name: str
    operator_namespace: str
    target_namespace: str
    operand_namespace: str
    operand_lease_namespace: str
    operand_lease_name: str
    operand_lease: LeaseTimings
    static_pod_name: str
    static_pod_labels: tuple[tuple[str, str], ...]
    manifest_dir: str
    manifest_file: str
    resource_dir: str
    operand_command: tuple[str, ...]
    scheduler_kubeconfig: str
    default_arguments: tuple[tuple[str, str], ...]
    node_selectors: tuple[str, ...]
    pod_log_dir: str = "/var/log/pods"
    kubelet_pod_dir: str = "/var/lib/kubelet/pods"
    probe_host: str = "127.0.0.1"
    cluster_config: bool = False
    kubelet_mark: str = ""
    kubeconfig_files: tuple[str, ...] = ()
    dropped_arguments: tuple[str, ...] = ()
    static_pod_annotations: tuple[tuple[str, str], ...] = ()
    credentials: Credentials | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        """The ConfigMaps that make up a revision."""
        own = (names.CONFIG, names.POD)
        return (*own, names.CA_BUNDLE, names.KUBECONFIG) if self.credentials else own

    def mirror_pod_name(self, node: str) -> str:
        """The name under which the API shows the static pod of `node`."""
        return f"{self.static_pod_name}-{node}"

    def secondary_namespaces(self, told: Sequence[str] | None) -> tuple[str, ...]:
        """Where further schedulers may run: where we were told, else the target namespace."""
        return tuple(told) if told is not None else (self.target_namespace,)

    @property
    def manifest_path(self) -> str:
        """The file whose presence makes the kubelet run the scheduler."""
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
    default_arguments=(("bind-address", "127.0.0.1"),),
    node_selectors=("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"),
)

OPENSHIFT = Platform(
    name="openshift",
    operator_namespace="openshift-kube-scheduler-operator",
    target_namespace="openshift-kube-scheduler",
    operand_namespace="openshift-kube-scheduler",
    operand_lease_namespace="openshift-kube-scheduler",
    operand_lease_name="kube-scheduler",
    # Long enough to sit out a control plane of one node that is updated.
    operand_lease=LeaseTimings("137s", "107s", "26s"),
    static_pod_name="openshift-kube-scheduler",
    static_pod_labels=(("app", "openshift-kube-scheduler"), ("scheduler", "true")),
    # CPUs that are set aside for management confine it.
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
    credentials=Credentials(
        namespace="openshift-config-managed",
        client_certificate="kube-scheduler-client-cert-key",
        ca_bundles=("kube-apiserver-server-ca", "default-ingress-cert"),
        serving_certificate="serving-cert",
        directory="/etc/kubernetes/static-pod-resources/kube-scheduler-certs",
        mounted="/etc/kubernetes/static-pod-certs",
    ),
    cluster_config=True,
)

_RKE2 = "/var/lib/rancher/rke2"

# RKE2 runs the scheduler as kubeadm does, from other places. When its service starts it writes its
# own manifest again; that is drift like any other.
RKE2 = replace(
    KUBEADM,
    name="rke2",
    kubelet_mark="+rke2",
    manifest_dir=f"{_RKE2}/agent/pod-manifests",
    resource_dir=f"{_RKE2}/agent/static-pod-resources",
    scheduler_kubeconfig=f"{_RKE2}/server/cred/scheduler.kubeconfig",
    # The keys of all the cluster's authorities are beside them.
    kubeconfig_files=(
        f"{_RKE2}/server/tls/server-ca.crt",
        f"{_RKE2}/server/tls/client-scheduler.crt",
        f"{_RKE2}/server/tls/client-scheduler.key",
    ),
    # A certificate to serve with is new in RKE2; without one a scheduler makes its own.
    dropped_arguments=("tls-cert-file", "tls-private-key-file"),
)

PLATFORMS: dict[str, Platform] = {
    platform.name: platform for platform in (KUBEADM, OPENSHIFT, RKE2)
}

_UNSUPPORTED: Final = {
    "+k3s": "this is k3s, which runs its scheduler inside of its own process: there is no static "
    "pod to own; its scheduler is configured by --kube-scheduler-arg of k3s",
}
"""Marks of kubelets, and why the scheduler of such a cluster cannot be had."""


def recognize(*, infrastructure: bool, kubelets: Sequence[str]) -> tuple[Platform, str]:
    """The kind of a cluster, and how one can tell.

    Args:
        infrastructure: it has the Infrastructure object of config.openshift.io.
        kubelets: versions of its control-plane nodes' kubelets, as far as they are known.

    Raises:
        UnsupportedCluster: there is no static pod to own.
    """
    if infrastructure:
        platform = next(known for known in PLATFORMS.values() if known.cluster_config)
        return platform, f'Infrastructure "{names.CLUSTER}" of config.openshift.io exists'
    for version in kubelets:
        for mark, why in _UNSUPPORTED.items():
            if mark in version:
                raise UnsupportedCluster(f"{why} (kubelet {version})")
        for platform in PLATFORMS.values():
            if platform.kubelet_mark and platform.kubelet_mark in version:
                return platform, f"a control-plane node has kubelet {version}"
    what = f"kubelet {kubelets[0]}" if kubelets else "no control-plane node that can be seen"
    return KUBEADM, f"nothing says otherwise: no Infrastructure of OpenShift, {what}"
