"""Worlds with NodePools, NodeClaims and node groups, after public reports of Pods that waited.

The sources are questions to Karpenter, cluster-autoscaler and the providers: what is reached, what
excludes the Pod, and what is being made differs; everything else fits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from ..new_nodes import (
    DEDICATED,
    POOL,
    READY,
    SINCE,
    STARTING,
    TYPE,
    ZONE,
    Object,
    autoscaler,
    daemon_set,
    group,
    machine_deployment,
    node,
    node_claim,
    node_pool,
    pod,
    requirement,
    volume,
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A world in which Pod shop/waiting fits on no node, and what the answer has to contain."""

    name: str
    objects: list[Object]
    source: str = "NodePool general"  # the answer about it is compared
    outcome: str = "fits"
    parts: tuple[str, ...] = ()  # parts of its causes
    waiting: Object = field(default_factory=lambda: pod("waiting"))
    # of nodes that are being made: (part of the name, outcome, part of the state)
    coming: tuple[str, str, str] | None = None

    @property
    def all(self) -> list[Object]:
        full = [
            node("full", **{TYPE: "m5.large", POOL: "general"}),
            pod("runs", "2", nodeName="full"),
        ]
        return [*full, *self.objects, self.waiting]


def _limited(cpu: str, used: str) -> dict[str, Any]:
    return {
        "limits": {"cpu": cpu},
        "status": {"resources": {"cpu": used}, "conditions": [READY]},
    }


def _requests(**requests: str) -> Object:
    waiting = pod("waiting")
    waiting["spec"]["containers"][0]["resources"]["requests"] = requests
    return waiting


def _with_volume() -> Object:
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    return pod("waiting", volumes=[claim])


def _member(name: str = "member", zone: str = "a", **labels: str) -> list[Object]:
    """A full node of a node group."""
    return [node(name, zone, **labels), pod(f"on-{name}", "2", nodeName=name)]


_EKS: Final = {"eks.amazonaws.com/nodegroup": "workers"}
_EKS_NAME: Final = "eks-workers-1ec52a33-9bd1-4d0f-8a3c-5f9f2d1c7b11"
_EKS_GROUP: Final = f"node group {_EKS_NAME}"
_GKE: Final = (
    "https://www.googleapis.com/compute/v1/projects/p/zones/z/instanceGroups/gke-c-pool-1a2b"
)
_ARM: Final = "kubernetes.io/arch"
_SPREAD: Final = {
    "maxSkew": 1,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}


def _spread() -> Object:
    waiting = pod("waiting", topologySpreadConstraints=[_SPREAD])
    waiting["metadata"]["labels"] = {"app": "web"}
    return waiting


def _web(name: str, zone: str) -> list[Object]:
    on = pod(f"web-{name}", "2", nodeName=name)
    on["metadata"]["labels"] = {"app": "web"}
    return [node(name, zone, **{POOL: "general", TYPE: "m5.large"}), on]


def _claim_conditions(**statuses: str) -> list[Object]:
    return [
        {"type": key, "status": value, "reason": f"{key}Reason", "message": f"{key} message"}
        for key, value in statuses.items()
    ]


def _not_ready(name: str) -> list[Object]:
    """A node of a group that is not ready, and whose Pods are those of a DaemonSet."""
    made = node(name, **_EKS)
    made["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    made["spec"]["taints"] = [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    return [made]


def _beside_web() -> Object:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return pod("waiting", affinity={"podAffinity": required})


def _labelled(made: Object) -> Object:
    made["metadata"]["labels"] = {"app": "web"}
    return made


def _alone(zone: str) -> list[Object]:
    """A full node in a zone that its Pod does not share with Pods of app=web."""
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    on = pod("alone", "2", nodeName="n-alone", affinity={"podAntiAffinity": required})
    return [node("n-alone", zone), on]


def _devices() -> list[Object]:
    api = "resource.k8s.io/v1"
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    claim = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    metadata = {"name": "gpu", "namespace": "shop", "uid": "gpu"}
    return [
        {"apiVersion": api, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
        {"apiVersion": api, "kind": "ResourceClaim", "metadata": metadata, "spec": claim},
    ]


CASES: Final = (
    Case("a pool with room makes a node like the one that is full", [node_pool()]),
    Case(
        "limit reached",
        [node_pool(**_limited("100", "100"))],
        outcome="blocked",
        parts=("spec.limits.cpu is 100, of which 100 is used (status.resources)",),
    ),
    Case(
        "limit leaves less than the Pod requests",
        [node_pool(**_limited("100", "99500m"))],
        outcome="blocked",
        parts=("spec.limits.cpu is 100, of which 99.5 is used", "the Pod requests 1"),
    ),
    Case(
        "limit excludes the known type, and a smaller one may fit",
        [node_pool(**_limited("100", "98500m"))],
        outcome="size unknown",
        parts=("the list of types is the cloud's", "node full (m5.large) has 2"),
    ),
    Case(
        "limit of nodes reached",
        [node_pool(limits={"nodes": "1"}, status={"nodes": 1, "conditions": [READY]})],
        outcome="blocked",
        parts=("spec.limits.nodes is 1, of which 1 is used",),
    ),
    Case(
        "no GPU by limit",
        [node_pool(limits={"nvidia.com/gpu": "0"})],
        outcome="blocked",
        parts=("spec.limits.nvidia.com/gpu is 0", "the Pod requests 1"),
        waiting=_requests(**{"cpu": "1", "nvidia.com/gpu": "1"}),
    ),
    Case(
        "requirement excludes the zone",
        [node_pool()],
        outcome="cannot",
        parts=(f"{ZONE}=c", f"it requires {ZONE} In a, b"),
        waiting=pod("waiting", nodeSelector={ZONE: "c"}),
    ),
    Case(
        "requirement excludes the architecture",
        [node_pool(template_requirements=[requirement(_ARM, "In", "amd64")])],
        outcome="cannot",
        parts=(f"{_ARM}=arm64", f"it requires {_ARM} In amd64"),
        waiting=pod("waiting", nodeSelector={_ARM: "arm64"}),
    ),
    Case(
        "a label that the pool does not set",
        [node_pool()],
        outcome="cannot",
        parts=("team=ml",),
        waiting=pod("waiting", nodeSelector={"team": "ml"}),
    ),
    Case(
        "a label of the template",
        [node_pool(template_labels={"team": "ml"})],
        waiting=pod("waiting", nodeSelector={"team": "ml"}),
    ),
    Case(
        "taint not tolerated",
        [node_pool(template_taints=[DEDICATED])],
        outcome="cannot",
        parts=("its nodes have the taint dedicated=ml:NoSchedule",),
    ),
    Case(
        "taint tolerated",
        [node_pool(template_taints=[DEDICATED])],
        waiting=pod("waiting", tolerations=[{"key": "dedicated", "operator": "Exists"}]),
    ),
    Case("startup taint", [node_pool(template_startupTaints=[STARTING])]),
    Case(
        "zone of a volume that the pool does not have",
        [node_pool(), *volume("c")],
        outcome="cannot",
        parts=(ZONE, "pv"),
        waiting=_with_volume(),
    ),
    Case(
        "zone of a volume that the pool has",
        [node_pool(), *volume("b")],
        waiting=_with_volume(),
    ),
    Case(
        "share of DaemonSets",
        [node_pool(template_requirements=[requirement(TYPE, "In", "m5.large")]),
         daemon_set("logs", "250m")],
        outcome="cannot",
        parts=("node full (m5.large) has 2 of cpu, of which DaemonSets take 250m, and the Pod "
              "requests 1.8",),
        waiting=pod("waiting", "1800m"),
    ),
    Case(
        "a DaemonSet that does not run there takes nothing",
        [node_pool(template_requirements=[requirement(TYPE, "In", "m5.large")]),
         daemon_set("logs", "250m", nodeSelector={"disk": "ssd"})],
        waiting=pod("waiting", "1800m"),
    ),
    Case(
        "request larger than the requirements permit",
        [node_pool(template_requirements=[
            requirement("karpenter.k8s.aws/instance-cpu", "Lt", "9")])],
        outcome="cannot",
        parts=("at most 8 of cpu (karpenter.k8s.aws/instance-cpu Lt 9), and the Pod requests 16",),
        waiting=pod("waiting", "16"),
    ),
    Case(
        "size not known",
        [node_pool()],
        outcome="size unknown",
        parts=("whether an instance type that it permits has 16 of cpu is not known",
              "node full (m5.large) has 2 of cpu, and the Pod requests 16"),
        waiting=pod("waiting", "16"),
    ),
    Case(
        "NodeClass not ready",
        [node_pool(status={"conditions": [
            {"type": "Ready", "status": "False", "reason": "NodeClassReady", "message": "not found"}
        ]})],
        outcome="blocked",
        parts=("it is not Ready (NodeClassReady: not found)",),
    ),
    Case(
        "static pool",
        [node_pool(replicas=3)],
        outcome="blocked",
        parts=("it keeps spec.replicas 3 nodes",),
    ),
    Case(
        "spread over zones: only one zone is left",
        [node_pool(template_requirements=[requirement(ZONE, "In", "a", "b")]),
         *_web("a1", "a"), *_web("a2", "a"), *_web("b1", "b")],
        waiting=_spread(),
        parts=("in zone b; in a it does not fit",),
    ),
    Case(
        "NodeClaim not registered",
        [node_pool(**_limited("2", "2")), node_claim(
            "general-x1", allocatable={"cpu": "2", "memory": "8Gi", "pods": "20"},
            conditions=_claim_conditions(Launched="True", Registered="Unknown"))],
        outcome="blocked",
        coming=("NodeClaim general-x1 of NodePool general", "fits",
                "not Registered (RegisteredReason: Registered message)"),
    ),
    Case(
        "NodeClaim without capacity in the cloud",
        [node_pool(), node_claim(
            "general-x2", conditions=_claim_conditions(Launched="Unknown"))],
        coming=("NodeClaim general-x2", "size unknown", "not Launched (LaunchedReason"),
    ),
    Case(
        "node that has joined and is not ready yet",
        [*_not_ready("new"), autoscaler(group(_EKS_NAME, 5, 5))],
        source=_EKS_GROUP,
        outcome="blocked",
        parts=("it has 5 of at most 5 nodes",),
        coming=("node new", "fits", "not Ready"),
    ),
    Case(
        "Pod affinity to a Pod in the other zone",
        [node_pool(), *_web("b1", "b")],
        waiting=_beside_web(),
        parts=("in zone b; in a it does not fit",),
    ),
    Case(
        "anti-affinity of a running Pod keeps its zone free",
        [node_pool(), *_alone("a")],
        waiting=_labelled(pod("waiting")),
        parts=("in zone b; in a it does not fit",),
    ),
    Case(
        "devices of a node that does not exist are not known",
        [node_pool(template_requirements=[requirement(_ARM, "In", "arm64")]), *_devices()],
        outcome="unknown",
        parts=("which devices it would have is not known",),
        waiting=pod("waiting", resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}]),
    ),
    Case(
        "node group at its maximum",
        [*_member(**_EKS), autoscaler(group(_EKS_NAME, 5, 5))],
        source=_EKS_GROUP,
        outcome="blocked",
        parts=("it has 5 of at most 5 nodes (maxSize)",),
    ),
    Case(
        "node group that can grow",
        [*_member(**_EKS), autoscaler(group(_EKS_NAME))],
        source=_EKS_GROUP,
        parts=("cluster-autoscaler wrote its status at 2026-03-01 08:05:00",),
    ),
    Case(
        "node group in backoff",
        [*_member(**_EKS), autoscaler(group(
            _EKS_NAME, status="Backoff", lastTransitionTime=SINCE,
            backoffInfo={"errorCode": "QUOTA_EXCEEDED", "errorMessage": "vCPU limit of 32"}))],
        source=_EKS_GROUP,
        outcome="blocked",
        parts=(f"backs off since {SINCE}", "QUOTA_EXCEEDED: vCPU limit of 32"),
    ),
    Case(
        "scale from zero without a template",
        [autoscaler(group("gpu-asg", 0))],
        source="node group gpu-asg",
        outcome="unknown",
        parts=("it has no node, and what a node of it would be like is not in the cluster",),
    ),
    Case(
        "node group of GKE by the names of its nodes",
        [*_member("gke-c-pool-1a2b-x7k2", **{"cloud.google.com/gke-nodepool": "pool"}),
         autoscaler(group(f"{_GKE}-grp"))],
        source=f"node group {_GKE}-grp",
    ),
    Case(
        "node group of AKS, with too little for the Pod",
        [*_member("aks-pool-12345678-vmss000000", **{"kubernetes.azure.com/agentpool": "pool"}),
         autoscaler(group("aks-pool-12345678-vmss"))],
        source="node group aks-pool-12345678-vmss",
        outcome="cannot",
        parts=("node aks-pool-12345678-vmss000000 has 2 of cpu, and the Pod requests 3",),
        waiting=pod("waiting", "3"),
    ),
    Case(
        "nodes that were asked for",
        [*_member(**_EKS), autoscaler(group(
            _EKS_NAME, 3, registered=1, status="InProgress", lastTransitionTime=SINCE))],
        source=_EKS_GROUP,
        coming=(f"2 nodes of {_EKS_GROUP}", "fits", "asked for (cloudProviderTarget)"),
    ),
    Case(
        "unhealthy cluster",
        [*_member(**_EKS), autoscaler(
            group(_EKS_NAME), clusterWide={"health": {"status": "Unhealthy"}})],
        source=_EKS_GROUP,
        outcome="blocked",
        parts=("reports the cluster as Unhealthy",),
    ),
    Case(
        "node group without a status",
        _member(**_EKS),
        source="node group workers (eks.amazonaws.com/nodegroup)",
        parts=("whether it can grow is not known: ConfigMap kube-system/cluster-autoscaler-",),
    ),
    Case(
        "status in the form before 1.30",
        [*_member(**_EKS), autoscaler(text="Cluster-autoscaler status at 2024:\nCluster-wide:\n")],
        source="node group workers (eks.amazonaws.com/nodegroup)",
        parts=("writes from version 1.30 on",),
    ),
    Case(
        "Cluster API scales from zero by its annotations",
        [machine_deployment("md", cpu="4", memory="8Gi", labels="team=ml")],
        source="MachineDeployment clusters/md",
        parts=("whether it can grow is not known",),
        waiting=pod("waiting", "3", nodeSelector={"team": "ml"}),
    ),
    Case(
        "Cluster API with a taint in its annotations",
        [machine_deployment("md", cpu="4", memory="8Gi", taints="dedicated=ml:NoSchedule"),
         autoscaler(group("MachineDeployment/clusters/md", 0, 3))],
        source="node group MachineDeployment/clusters/md",
        outcome="cannot",
        parts=("its nodes have the taint dedicated=ml:NoSchedule",),
    ),
    Case(
        "Cluster API at its maximum, without cluster-autoscaler's status",
        [machine_deployment("md", replicas=3, cpu="4", memory="8Gi")],
        source="MachineDeployment clusters/md",
        outcome="blocked",
        parts=("it has 3 of at most 3 nodes",),
    ),
)  # fmt: skip
