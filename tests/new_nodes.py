"""NodePools, NodeClaims, node groups and the status of cluster-autoscaler."""

from __future__ import annotations

import json
from typing import Any, Final

Object = dict[str, Any]

HOST: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
TYPE: Final = "node.kubernetes.io/instance-type"
POOL: Final = "karpenter.sh/nodepool"
SINCE: Final = "2026-03-01T08:00:00Z"
READY: Final = {"type": "Ready", "status": "True"}


def node(name: str, zone: str = "a", cpu: str = "2", **labels: str) -> Object:
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "20"}
    own = {HOST: name, ZONE: zone, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    metadata = {"name": name, "labels": {**own, **labels}, "creationTimestamp": SINCE}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [READY]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}, "status": status}


def pod(name: str, cpu: str = "1", **spec: Any) -> Object:
    container: Object = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "namespace": "shop", "creationTimestamp": SINCE, "uid": name}
    whole = {"containers": [container], "schedulerName": "default-scheduler", "priority": 0, **spec}
    status = {"phase": "Running" if spec.get("nodeName") else "Pending"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": whole,
        "status": status,
    }


def requirement(key: str, operator: str, *values: str) -> Object:
    return {"key": key, "operator": operator, "values": list(values)}


def node_pool(name: str = "general", **fields: Any) -> Object:
    """A NodePool of the zones a and b; fields of the template begin with `template_`."""
    of_template = {
        key.removeprefix("template_"): fields.pop(key)
        for key in list(fields)
        if key.startswith("template_")
    }
    labels = of_template.pop("labels", {})
    template = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "requirements": [requirement(ZONE, "In", "a", "b")],
        **of_template,
    }
    status = fields.pop("status", {"conditions": [READY]})
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name, "creationTimestamp": SINCE},
        "spec": {"template": {"metadata": {"labels": labels}, "spec": template}, **fields},
        "status": status,
    }


def node_claim(name: str, pool: str = "general", **status: Any) -> Object:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name, "creationTimestamp": SINCE, "labels": {POOL: pool, ZONE: "a"}},
        "spec": {"requirements": [requirement(ZONE, "In", "a")], "startupTaints": [STARTING]},
        "status": status,
    }


STARTING: Final = {"key": "cni.example.com/not-ready", "effect": "NoSchedule"}
DEDICATED: Final = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}


def autoscaler(*groups: Object, text: str | None = None, **status: Any) -> Object:
    """The ConfigMap of cluster-autoscaler; its YAML is written as JSON, which is YAML."""
    whole = {
        "time": "2026-03-01 08:05:00.123456789 +0000 UTC",
        "autoscalerStatus": "Running",
        "clusterWide": {"health": {"status": "Healthy"}},
        "nodeGroups": list(groups),
        **status,
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"},
        "data": {"status": text if text is not None else json.dumps(whole, indent=1)},
    }


def group(
    name: str, target: int = 1, most: int = 5, registered: int | None = None, **scale_up: Any
) -> Object:
    there = target if registered is None else registered
    return {
        "name": name,
        "health": {
            "status": "Healthy",
            "nodeCounts": {"registered": {"total": there, "ready": there, "notStarted": 0}},
            "cloudProviderTarget": target,
            "minSize": 0,
            "maxSize": most,
        },
        "scaleUp": {"status": "NoActivity", **scale_up},
    }


def machine_deployment(name: str, replicas: int = 0, **annotations: str) -> Object:
    bounds = "cluster.x-k8s.io/cluster-api-autoscaler-node-group"
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta1",
        "kind": "MachineDeployment",
        "metadata": {
            "name": name,
            "namespace": "clusters",
            "annotations": {
                f"{bounds}-min-size": "0",
                f"{bounds}-max-size": "3",
                **{
                    f"capacity.cluster-autoscaler.kubernetes.io/{key.replace('_', '-')}": value
                    for key, value in annotations.items()
                },
            },
        },
        "spec": {"replicas": replicas, "template": {"spec": {}}},
    }


def volume(zone: str) -> list[Object]:
    term = {"matchExpressions": [requirement(ZONE, "In", zone)]}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "pv", "annotations": {}},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"},
                "claimRef": {"namespace": "shop", "name": "data", "uid": "claim"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            },
            "status": {"phase": "Bound"},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": "data",
                "namespace": "shop",
                "uid": "claim",
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            },
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "volumeName": "pv",
                "storageClassName": "",
            },
            "status": {"phase": "Bound"},
        },
    ]


def daemon_set(name: str, cpu: str, **spec: Any) -> Object:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], **spec}}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
