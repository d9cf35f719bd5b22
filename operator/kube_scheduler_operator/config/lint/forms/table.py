"""The table of forms; docs/validating.md lists them in the same order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ....base.source.reader import Document
from . import (
    embedded,
    helm_values,
    kubeadm,
    kustomize,
    products,
    profile_values,
    rancher,
    workload,
)
from .document_fields import group_kind, value_of
from .form import Contents


@dataclass(frozen=True, slots=True)
class Form:
    reader: Callable[[Document], Contents | None]  # returns None for a document of another form
    api_group: str = ""  # of its documents; empty: the reader recognizes them
    kind: str = ""
    # whether its documents may have files and objects in other fields, as those of products have
    holds_others: bool = True

    def read(self, document: Document) -> Contents | None:
        """Return what a document contains for kube-scheduler; None: it has another form."""
        if self.api_group and group_kind(value_of(document)) != (self.api_group, self.kind):
            return None
        return self.reader(document)


FORMS: Final = (
    Form(embedded.read_config_map, holds_others=False),
    Form(kustomize.read, holds_others=False),
    Form(workload.read, holds_others=False),
    Form(products.read_aks, "aks.azure.com", "SchedulerConfiguration"),
    Form(kubeadm.read),
    Form(kubeadm.read_patch),
    Form(kubeadm.read_cluster_api),
    Form(kubeadm.read_kind, "kind.x-k8s.io", "Cluster"),
    Form(rancher.read_k3d, "k3d.io", "Simple"),
    Form(rancher.read_config),
    Form(rancher.read_cluster, "provisioning.cattle.io", "Cluster"),
    Form(rancher.read_rke1),
    Form(products.read_talos),
    Form(products.read_kops, "kops.k8s.io", "Cluster"),
    Form(products.read_kubespray),
    Form(products.read_k0s, "k0s.k0sproject.io", "ClusterConfig"),
    Form(products.read_gardener, "core.gardener.cloud", "Shoot"),
    Form(products.read_kwok, "config.kwok.x-k8s.io", "KwokctlConfiguration"),
    Form(products.read_openshift, "operator.openshift.io", "SecondaryScheduler"),
    Form(helm_values.read_scheduler_plugins),
    Form(helm_values.read_volcano),
    Form(helm_values.read_koordinator),
    Form(helm_values.read_values_texts),
    Form(profile_values.read),
    Form(embedded.read, holds_others=False),
)
"""In the order in which they are tried; the last one accepts any document."""


def read_form(document: Document) -> Contents | None:
    """Return what a document contains for kube-scheduler; None: its form is not in the table."""
    for form in FORMS:
        contents = form.read(document)
        if contents is not None:
            return embedded.with_embedded(document, contents) if form.holds_others else contents
    return None
