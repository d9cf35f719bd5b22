"""Clusters whose control plane is the provider's: their nodes as the provider shows them.

Labels, providerID and the scheduler are as there. The versions are those of the binaries, without
the suffix that EKS, GKE and k3s give to theirs.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from cluster import processes
from cluster.scheduling import Scheduler

if TYPE_CHECKING:
    from cluster.api import Api, Object
    from cluster.model import Node, Sandbox

SCHEDULER = "provider-scheduler"
"""The daemon that is the provider's kube-scheduler: a process of the host, without a pod."""

LABELS: dict[str, dict[str, str]] = {
    "eks": {
        "eks.amazonaws.com/nodegroup": "workers",
        "eks.amazonaws.com/capacityType": "ON_DEMAND",
    },
    "gke": {"cloud.google.com/gke-nodepool": "default-pool"},
    "aks": {
        "kubernetes.azure.com/cluster": "MC_sandbox_sandbox_westeurope",
        "kubernetes.azure.com/agentpool": "nodepool1",
        "kubernetes.azure.com/role": "agent",
    },
    "k3s": {"node.kubernetes.io/instance-type": "k3s"},
}
"""Provider -> the labels that it gives to every node."""

LIKE = tuple(LABELS)

_PROVIDER_IDS = {
    "eks": "aws:///eu-central-1a/i-{id}",
    "gke": "gce://sandbox/europe-west3-a/gke-sandbox-default-pool-{id}",
    "aks": "azure:///subscriptions/x/resourceGroups/mc_sandbox/providers/Microsoft.Compute/"
    "virtualMachineScaleSets/aks-nodepool1/virtualMachines/{id}",
    "k3s": "k3s://{name}",
}


def node_patch(node: Node, like: str) -> Object:
    """What the provider adds to a Node once its kubelet has registered it."""
    number = hashlib.sha256(node.name.encode()).hexdigest()[:17]
    return {
        "metadata": {"labels": LABELS[like]},
        "spec": {"providerID": _PROVIDER_IDS[like].format(name=node.name, id=number)},
    }


_AKS_GROUP = "aks.azure.com"


def create_objects(sandbox: Sandbox, api: Api) -> None:
    """What the provider has in the API: AKS a kind with the configuration of its scheduler.

    Its schema is not public; this one has the field that Microsoft's articles name.
    """
    if sandbox.like != "aks":
        return
    text: Object = {"type": "object", "properties": {"rawConfig": {"type": "string"}}}
    anything: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema: Object = {"type": "object", "properties": {"spec": text, "status": anything}}
    version: Object = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    plural = "schedulerconfigurations"
    names = {"plural": plural, "singular": plural[:-1], "kind": "SchedulerConfiguration"}
    api.create(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{_AKS_GROUP}"},
            "spec": {
                "group": _AKS_GROUP,
                "scope": "Cluster",
                "names": {**names, "listKind": "SchedulerConfigurationList"},
                "versions": [version],
            },
        },
    )


def start_scheduler(sandbox: Sandbox) -> None:
    """Start the provider's scheduler, unless it runs."""
    if not processes.alive(sandbox, SCHEDULER):
        Scheduler(sandbox, SCHEDULER).start()
