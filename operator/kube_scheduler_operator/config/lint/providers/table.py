"""The table of providers, and `--for NAME[:VERSION]`, which chooses one."""

from __future__ import annotations

from typing import Final

from ....base.findings import did_you_mean, listing
from ...language.versions import Version
from .aks import AKS
from .cluster_autoscaler import CLUSTER_AUTOSCALER
from .eks import EKS
from .gardener import GARDENER
from .k3s import K3S
from .karpenter import KARPENTER
from .kubeadm import KUBEADM, KUBEADM_PATCHES
from .provider_format import ProviderFormat
from .rke2 import RKE2
from .talos import TALOS

PROVIDERS: Final[dict[str, ProviderFormat]] = {
    provider.name: provider
    for provider in (
        AKS,
        EKS,
        GARDENER,
        K3S,
        RKE2,
        KUBEADM,
        KUBEADM_PATCHES,
        TALOS,
        CLUSTER_AUTOSCALER,
        KARPENTER,
    )
}


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
