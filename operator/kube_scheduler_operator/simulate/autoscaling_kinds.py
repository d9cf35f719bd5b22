"""What Karpenter, cluster-autoscaler and Cluster API say about nodes that do not exist yet.

Sources: pkg/apis/v1 of sigs.k8s.io/karpenter v1.15.0, whose kinds EKS Auto Mode and AKS Node Auto
Provisioning use as well; clusterstate/api/types.go and cloudprovider/clusterapi of
cluster-autoscaler 1.30 and later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..base.objects import entries, mapping
from ..kube.resource import CONFIG_MAPS, cluster_scoped, namespaced

NODE_POOLS: Final = cluster_scoped("karpenter.sh/v1", "NodePool")
NODE_CLAIMS: Final = cluster_scoped("karpenter.sh/v1", "NodeClaim")
MACHINE_DEPLOYMENTS: Final = namespaced("cluster.x-k8s.io/v1beta2", "MachineDeployment")
MACHINE_SETS: Final = namespaced("cluster.x-k8s.io/v1beta2", "MachineSet")
OPENSHIFT_MACHINE_SETS: Final = namespaced("machine.openshift.io/v1beta1", "MachineSet")
AUTOSCALER_STATUS: Final = CONFIG_MAPS
STATUS_KEY: Final = ("kube-system", "cluster-autoscaler-status")
"""The only ConfigMap that is read: in another namespace, anybody could write one of this name."""

GROUP_BOUNDS: Final = "cluster-api-autoscaler-node-group-"
CAPACITY: Final = "capacity.cluster-autoscaler.kubernetes.io/"
OPENSHIFT: Final = "machine.openshift.io/"
_OF_GROUPS: Final = (CAPACITY, f"{OPENSHIFT}vCPU", f"{OPENSHIFT}memoryMb", f"{OPENSHIFT}GPU")
OWNER_KIND: Final = "cluster.x-k8s.io/owner-kind"
OWNER_NAME: Final = "cluster.x-k8s.io/owner-name"
MACHINE: Final = f"{OPENSHIFT}machine"
"""Annotations of a Node: the MachineSet that made it, and OpenShift's Machine, namespace/name."""


def _kept(source: Any, *fields: str) -> dict[str, Any]:
    return {field: mapping(source)[field] for field in fields if field in mapping(source)}


def _status(obj: Mapping[str, Any], *fields: str) -> dict[str, Any]:
    status = mapping(obj.get("status"))
    of_condition = ("type", "status", "reason", "message", "lastTransitionTime")
    conditions = [_kept(one, *of_condition) for one in entries(status.get("conditions"))]
    return {**_kept(status, *fields), "conditions": conditions}


_OF_CLAIM: Final = ("requirements", "taints", "startupTaints", "nodeClassRef")


def node_pool(obj: Mapping[str, Any]) -> dict[str, Any]:
    spec = mapping(obj.get("spec"))
    template = mapping(spec.get("template"))
    kept = _kept(spec, "limits", "weight", "replicas")
    kept["template"] = {
        "metadata": _kept(template.get("metadata"), "labels"),
        "spec": _kept(template.get("spec"), *_OF_CLAIM),
    }
    return {"spec": kept, "status": _status(obj, "resources", "nodes")}


def node_claim(obj: Mapping[str, Any]) -> dict[str, Any]:
    status = _status(obj, "nodeName", "capacity", "allocatable")
    return {"spec": _kept(obj.get("spec"), *_OF_CLAIM), "status": status}


def machines(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what a MachineDeployment or MachineSet states about its nodes, and the annotations."""
    spec = mapping(obj.get("spec"))
    template = mapping(spec.get("template"))
    of_machine = mapping(template.get("spec"))
    kept = _kept(spec, "replicas")
    kept["template"] = {
        "metadata": _kept(template.get("metadata"), "labels"),
        # OpenShift's has the labels of nodes here.
        "spec": _kept(of_machine, "taints")
        | {"metadata": _kept(of_machine.get("metadata"), "labels")},
    }
    annotations = mapping(mapping(obj.get("metadata")).get("annotations"))
    of_groups = {
        key: value
        for key, value in annotations.items()
        if GROUP_BOUNDS in key or key.startswith(_OF_GROUPS)
    }
    return {"spec": kept, "status": _kept(obj.get("status"), "replicas"), "nodeGroup": of_groups}


def autoscaler_status(obj: Mapping[str, Any]) -> dict[str, Any]:
    return {"data": _kept(obj.get("data"), "status")}


def machine_owner(annotations: Mapping[str, Any]) -> str:
    """Return the MachineSet that made a Node; empty: none is known."""
    kind, name = (str(annotations.get(key) or "") for key in (OWNER_KIND, OWNER_NAME))
    return name if kind == MACHINE_SETS.kind else ""
