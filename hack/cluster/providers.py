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
    from cluster.api import Object
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


def start_scheduler(sandbox: Sandbox) -> None:
    """Start the provider's scheduler, unless it runs."""
    if not processes.alive(sandbox, SCHEDULER):
        Scheduler(sandbox, SCHEDULER).start()
