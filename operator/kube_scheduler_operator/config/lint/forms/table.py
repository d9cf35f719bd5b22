"""The table of forms."""

from __future__ import annotations

from typing import Final

from ....base.source.reader import Document
from .aks import AKS
from .config_map import CONFIG_MAPS
from .embedded import EMBEDDED
from .form import Contents, Form
from .gardener import GARDENER
from .helm_values import KOORDINATOR, SCHEDULER_PLUGINS, VOLCANO
from .k0s import K0S
from .kind import K3D, KIND
from .kops import KOPS
from .kubeadm import CLUSTER_API, KUBEADM, KUBEADM_PATCHES
from .kubespray import KUBESPRAY
from .kustomize import KUSTOMIZATIONS
from .kwok import KWOK
from .openshift import SECONDARY_SCHEDULERS
from .rancher import RANCHER_CLUSTER, RANCHER_CONFIG, RKE1
from .talos import TALOS
from .workload import WORKLOADS

FORMS: Final[tuple[Form, ...]] = (
    CONFIG_MAPS,
    KUSTOMIZATIONS,
    WORKLOADS,
    AKS,
    KUBEADM,
    KUBEADM_PATCHES,
    CLUSTER_API,
    KIND,
    K3D,
    RANCHER_CONFIG,
    RANCHER_CLUSTER,
    RKE1,
    TALOS,
    KOPS,
    KUBESPRAY,
    K0S,
    GARDENER,
    KWOK,
    SECONDARY_SCHEDULERS,
    SCHEDULER_PLUGINS,
    VOLCANO,
    KOORDINATOR,
    EMBEDDED,
)
"""In the order in which they are tried; the last one accepts any document."""


def read_form(document: Document) -> Contents | None:
    """Return what a document contains for kube-scheduler; None: its form is not in the table."""
    for form in FORMS:
        contents = form.read(document)
        if contents is not None:
            return contents
    return None
