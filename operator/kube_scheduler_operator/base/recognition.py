"""Recognition of the kind of cluster from its API; pure. `config/lint/forms/` recognizes files.

Four distributions run kube-scheduler on visible nodes, but only they can write its manifest; three
providers show no control-plane node. A mark is a property that the distribution or provider itself
sets on every node or in every version. The providerID of a cloud (`aws://`, `gce://`, `azure://`)
is not a mark: clusters of kubeadm have it as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from . import names
from .objects import mapping
from .platform import KUBEADM, MANAGED, PLATFORMS, Platform

UNKNOWN_PROVIDER: Final = "the provider of this cluster"

_EVIDENCE: Final = 300
"""Characters of the longest evidence: others may write nodes and the record."""


@dataclass(frozen=True, slots=True)
class NodeMarks:
    """The properties of a node that may be marks."""

    name: str
    control_plane: bool = False  # whether it has the role label of control-plane nodes
    kubelet: str = ""  # the kubelet's version
    os_image: str = ""  # the name of its operating system
    labels: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, node: Mapping[str, Any]) -> NodeMarks:
        metadata = node.get("metadata") or {}
        info = (node.get("status") or {}).get("nodeInfo") or {}
        labels = metadata.get("labels") or {}
        return cls(
            name=str(metadata.get("name") or ""),
            control_plane=any(role in labels for role in KUBEADM.node_selectors),
            kubelet=str(info.get("kubeletVersion") or ""),
            os_image=str(info.get("osImage") or ""),
            labels=labels,
        )


@dataclass(frozen=True, slots=True)
class Provider:
    """A distribution or provider that runs kube-scheduler where no one else can change it."""

    name: str  # in messages
    # whether it shows no control-plane node. With one, the same mark belongs to a product for one's
    # own machines that uses kubeadm: EKS Anywhere, GKE on bare metal, Cluster API.
    hidden: bool = False
    version: str = ""  # a substring of the versions of its kubelets and API servers
    label: str = ""  # of its nodes: a key, KEY=VALUE, or a prefix of keys that ends with a slash
    os_image: str = ""  # a prefix of the name of its operating system

    def mark_in(self, node: NodeMarks) -> str:
        """Describe its mark on a node; empty without one."""
        if self.version and self.version in node.kubelet:
            return f'node "{node.name}" has kubelet {node.kubelet}'[:_EVIDENCE]
        if self.os_image and node.os_image.startswith(self.os_image):
            return f'node "{node.name}" runs {node.os_image}'[:_EVIDENCE]
        for key, value in node.labels.items() if self.label else ():
            if self.label in (key, f"{key}={value}") or (
                self.label.endswith("/") and key.startswith(self.label)
            ):
                return f'node "{node.name}" has the label {key}={value}'
        return ""


PROVIDERS: Final = (
    # k3s-io/k3s, scripts/version.sh: every version ends with +k3sN.
    # Its cloud controller, which can be switched off, sets the instance type k3s.
    Provider("k3s", version="+k3s", label="node.kubernetes.io/instance-type=k3s"),
    # k0sproject/k0s: versions end with +k0s.N; pkg/constant: K0SNodeRoleLabel.
    Provider("k0s", version="+k0s", label="node.k0sproject.io/role"),
    # siderolabs/talos: the name in os-release is "Talos (v1.12.6)"; versions are Kubernetes' own.
    Provider("Talos", os_image="Talos ("),
    # canonical/microk8s, scripts/wrappers/join.py: --node-labels microk8s.io/cluster=true.
    Provider("MicroK8s", label="microk8s.io/cluster"),
    # `kubectl version` and `kubectl get nodes` of EKS: v1.35.4-eks-113cf36.
    Provider("EKS", hidden=True, version="-eks-", label="eks.amazonaws.com/"),
    # `kubectl version` and `kubectl get nodes` of GKE: v1.33.5-gke.1080000.
    Provider("GKE", hidden=True, version="-gke.", label="cloud.google.com/gke-nodepool"),
    # learn.microsoft.com/azure/aks/use-labels: system labels; versions are Kubernetes' own.
    Provider("AKS", hidden=True, label="kubernetes.azure.com/cluster"),
)


@dataclass(frozen=True, slots=True)
class Recognition:
    platform: Platform
    provider: str = ""  # that runs the control plane's scheduler; empty: unknown, or the operator
    reason: str = ""  # the evidence
    certain: bool = True  # False if only the absence of evidence for others shows this

    @property
    def summary(self) -> str:
        return f"the control plane's scheduler is managed by {self.provider or UNKNOWN_PROVIDER}"


def recognize(
    *, infrastructure: bool, nodes: Sequence[NodeMarks], server_version: str = ""
) -> Recognition:
    """Recognize the platform of a cluster.

    Args:
        infrastructure: whether the Infrastructure object of config.openshift.io exists.
        nodes: control-plane nodes; if none exist, other nodes.
        server_version: `gitVersion` of the API server.
    """
    if infrastructure:
        platform = next(known for known in PLATFORMS.values() if known.cluster_config)
        reason = f'Infrastructure "{names.CLUSTER}" of config.openshift.io exists'
        return Recognition(platform, reason=reason)
    control_plane = [node for node in nodes if node.control_plane]
    if control_plane:
        return _with_control_plane(control_plane)
    # The version comes first: a node may belong to another distribution, or imitate one.
    if recognition := _marked_version(server_version) or _marked(nodes, PROVIDERS):
        return recognition
    if nodes:
        return Recognition(MANAGED, reason="no node has a control-plane role label")
    reason = "OpenShift's Infrastructure does not exist and no control-plane node is visible"
    return Recognition(KUBEADM, reason=reason, certain=False)


def _with_control_plane(nodes: Sequence[NodeMarks]) -> Recognition:
    for node in nodes:
        for platform in PLATFORMS.values():
            if platform.kubelet_mark and platform.kubelet_mark in node.kubelet:
                reason = f"a control-plane node has kubelet {node.kubelet}"
                return Recognition(platform, reason=reason)
    visible = tuple(provider for provider in PROVIDERS if not provider.hidden)
    if recognition := _marked(nodes, visible):
        return recognition
    reason = f"OpenShift's Infrastructure does not exist and the kubelet is {nodes[0].kubelet}"
    return Recognition(KUBEADM, reason=reason)


def _marked(nodes: Iterable[NodeMarks], providers: Sequence[Provider]) -> Recognition | None:
    for node in nodes:
        for provider in providers:
            if mark := provider.mark_in(node):
                return Recognition(MANAGED, provider.name, mark)
    return None


def _marked_version(version: str) -> Recognition | None:
    for provider in PROVIDERS:
        if provider.version and provider.version in version:
            return Recognition(MANAGED, provider.name, f"the API server is {version}")
    return None


@dataclass(frozen=True, slots=True)
class Remembered:
    """The record of an earlier process in the API."""

    platform: str = ""
    provider: str = ""  # as in Recognition
    reason: str = ""  # the evidence at that time
    version: str = ""  # of Kubernetes, which schedulers followed last; empty if none did

    @classmethod
    def of(cls, config_map: Mapping[str, Any] | None) -> Remembered:
        """Read the ConfigMap; an unknown platform counts as no record."""
        data = mapping((config_map or {}).get("data"))
        texts = {key: value for key, value in data.items() if isinstance(value, str)}
        if texts.get("platform") not in PLATFORMS:
            return cls()
        provider = texts.get("provider", "")
        return cls(
            texts["platform"],
            provider if provider in {known.name for known in PROVIDERS} else "",
            texts.get("reason", "")[:_EVIDENCE],
            texts.get("kubernetesVersion", "")[:_EVIDENCE],
        )

    def data(self) -> dict[str, str]:
        texts = {
            "platform": self.platform,
            "provider": self.provider,
            "reason": self.reason,
            "kubernetesVersion": self.version,
        }
        return {key: text for key, text in texts.items() if text}


NOTHING_REMEMBERED: Final = Remembered()


@dataclass(frozen=True, slots=True)
class PlatformDecision:
    """The platform in use."""

    used: Recognition
    remember: bool = False  # whether to record it in the API
    disagreement: str = ""  # why detection now finds another platform; empty if it does not
    unanswered: tuple[str, ...] = ()  # errors of requests, without which detection was certain
    open: bool = False  # whether nodes that appear later may still decide it, or the provider

    @property
    def platform(self) -> Platform:
        return self.used.platform


def decide(
    chosen: Platform | None, detected: Recognition, remembered: Remembered
) -> PlatformDecision:
    """Choose the platform: `--platform`, else the recorded one, else the detected one.

    So a cluster whose nodes or versions change keeps its platform until a person changes it.
    """
    known = PLATFORMS.get(remembered.platform)
    if chosen is not None:
        provider, reason = detected.provider, detected.reason
        if known == chosen and remembered.provider:
            provider, reason = remembered.provider, remembered.reason
        if chosen.owns_static_pods:
            provider = ""
        used = Recognition(chosen, provider, reason if provider else "--platform names it")
        wrong = detected.certain and detected.platform != chosen
        text = (
            f"--platform is {chosen.name}, and the cluster looks like {detected.platform.name} "
            f"({detected.reason}); {chosen.name} is used"
        )
        unnamed = not provider and not detected.certain and not chosen.owns_static_pods
        return PlatformDecision(
            used, not chosen.owns_static_pods, text if wrong else "", open=unnamed
        )
    if known is None:
        return PlatformDecision(detected, detected.certain, open=not detected.certain)
    used = Recognition(known, remembered.provider, remembered.reason)
    same = (detected.platform, detected.provider) == (known, remembered.provider)
    if same or not detected.certain:
        unnamed = not remembered.provider and not detected.certain and not known.owns_static_pods
        return PlatformDecision(used, remember=True, open=unnamed)
    if known == detected.platform and not remembered.provider:
        # It was recorded before a node identified the provider.
        return PlatformDecision(detected, remember=True)
    text = (
        f"{_named(used)} is in use, as recorded earlier ({remembered.reason}), and the cluster now "
        f"looks like {_named(detected)} ({detected.reason}); to change it, start the operator with "
        f"--platform={detected.platform.name}, or delete ConfigMap/{names.PLATFORM_RECORD} -n "
        f"{known.target_namespace} and restart it"
    )
    return PlatformDecision(used, remember=True, disagreement=text)


def _named(recognition: Recognition) -> str:
    provider = f" of {recognition.provider}" if recognition.provider else ""
    return f"platform {recognition.platform.name}{provider}"
