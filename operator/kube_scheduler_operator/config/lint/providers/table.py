"""The table of providers, and `--for NAME[:VERSION]`, which chooses one."""

from __future__ import annotations

from typing import Final

from ....base.findings import did_you_mean, listing
from ...language.versions import Version
from . import autoscalers, managed, self_managed
from .provider import ProviderFormat

_FORMATS: Final = (
    ProviderFormat(
        "aks",
        "MicrosoftDocs/azure-aks-docs at fb060ab, articles/aks/configure-aks-scheduler.md",
        managed.write_aks,
    ),
    ProviderFormat(
        "eks",
        "the EKS API 2017-11-01 as in botocore 1.44.8, shape KubeSchedulerConfigRequest",
        managed.write_eks,
    ),
    ProviderFormat(
        "gardener",
        "gardener/gardener at b312835, pkg/apis/core/v1beta1/types_shoot.go",
        managed.write_gardener,
    ),
    ProviderFormat(
        "k3s",
        "k3s-io/docs at 0243496, docs/cli/server.md, and at 147c369, "
        "docs/installation/configuration.md",
        self_managed.write_k3s,
    ),
    ProviderFormat(
        "rke2",
        "rancher/rke2-docs at 9477b7b, docs/reference/server_config.md, "
        "docs/install/configuration.md",
        self_managed.write_rke2,
    ),
    ProviderFormat(
        "kubeadm",
        "k8s.io/kubernetes 1.36.3, cmd/kubeadm/app/apis/kubeadm/v1beta4/types.go",
        self_managed.write_kubeadm,
    ),
    ProviderFormat(
        "kubeadm-patches",
        "k8s.io/kubernetes 1.36.3, cmd/kubeadm/app/util/patches/patches.go",
        self_managed.write_kubeadm_patches,
    ),
    ProviderFormat(
        "talos",
        "siderolabs/talos at ad88231, pkg/machinery/config/schemas/config.schema.json",
        self_managed.write_talos,
    ),
    ProviderFormat(
        "cluster-autoscaler",
        "kubernetes-sigs/cluster-autoscaler at 33c3f97, pkg/simulator/framework/handle.go",
        autoscalers.write_cluster_autoscaler,
    ),
    ProviderFormat(
        "karpenter",
        "kubernetes-sigs/karpenter at 65fc694, pkg/operator/options/options.go",
        autoscalers.write_karpenter,
    ),
)

PROVIDERS: Final = {provider.name: provider for provider in _FORMATS}


def find_provider(word: str) -> tuple[ProviderFormat, Version | None]:
    """Return the provider and the release that `NAME[:VERSION]` names; None without a release.

    Raises:
        ValueError: the name is unknown, or the release is not a version.
    """
    name, colon, release = word.partition(":")
    provider = PROVIDERS.get(name)
    if provider is None:
        hint = did_you_mean(name, PROVIDERS)
        raise ValueError(f'"{name}" is not {listing(PROVIDERS)}{hint}')
    return provider, Version.parse(release) if colon else None
