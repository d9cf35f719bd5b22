"""Five workloads whose Pods a scheduler spreads or packs, and how many nodes they use.

For clusters with hollow nodes (`hollow.py`): docs/packing.md, and the test of the same figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cluster import hollow
from cluster.observe import until

if TYPE_CHECKING:
    from cluster.api import Api, Object

NAMESPACE: Final = "packing"
PROFILES: Final = ("LowNodeUtilization", "HighNodeUtilization", "NoScoring", "BinPacking")
"""The bases that are compared."""
NODES: Final = 12
_SECONDS: Final = 120.0
_LOOKS: Final = 10
_APPS: Final = "/apis/apps/v1"
_GROUPS: Final = {"Deployment": _APPS, "StatefulSet": _APPS, "Job": "/apis/batch/v1"}


@dataclass(frozen=True, slots=True)
class Part:
    """One object of a workload."""

    kind: str  # of _GROUPS
    replicas: int
    cpu: str = ""  # requests; empty: none
    memory: str = ""


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    text: str  # for a table
    parts: tuple[Part, ...]

    @property
    def pods(self) -> int:
        return sum(part.replicas for part in self.parts)

    def objects(self, scheduler_name: str) -> list[Object]:
        """Return the manifests; their Pods only fit on hollow nodes."""
        return [
            _manifest(f"{self.name}-{number}", part, scheduler_name)
            for number, part in enumerate(self.parts)
        ]


WORKLOADS: Final = (
    Workload("plain", "a Deployment without requests", (Part("Deployment", 24),)),
    Workload("small", "a Deployment, 100m and 128Mi", (Part("Deployment", 40, "100m", "128Mi"),)),
    Workload("large", "a Deployment, 2 CPUs and 4Gi", (Part("Deployment", 12, "2", "4Gi"),)),
    Workload("batch", "a Job, 250m and 512Mi", (Part("Job", 30, "250m", "512Mi"),)),
    Workload(
        "mixed",
        "three Deployments and a StatefulSet, 100m to 1 CPU",
        (
            Part("Deployment", 24, "100m", "256Mi"),
            Part("Deployment", 16, "250m", "512Mi"),
            Part("Deployment", 8, "1", "2Gi"),
            Part("StatefulSet", 6, "500m", "2Gi"),
        ),
    ),
)


def used_nodes(api: Api, workload: Workload, scheduler_name: str) -> int:
    """Create a workload, count the nodes of its Pods, and remove it.

    Raises:
        SandboxError: Not every Pod was bound, or some stay.
    """
    objects = workload.objects(scheduler_name)
    for obj in objects:
        api.request("POST", _path(obj["kind"]), obj)

    def nodes() -> list[str]:
        pods = api.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
        return [pod["spec"].get("nodeName", "") for pod in pods]

    def bound() -> bool:
        placed = nodes()
        return len(placed) == workload.pods and all(placed)

    until(bound, _SECONDS, lambda: f"{workload.name} of {scheduler_name}: nodes {nodes()}")
    used = len(set(nodes()))
    _remove(api, objects)
    return used


def _remove(api: Api, objects: list[Object]) -> None:
    for obj in objects:
        path = f"{_path(obj['kind'])}/{obj['metadata']['name']}"
        api.request("DELETE", f"{path}?propagationPolicy=Background")
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    # The nodes have no kubelet that ends Pods.
    immediately = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}

    looks: list[bool] = []

    def gone() -> bool:
        api.request("DELETE", pods, immediately)
        left = [api.request("GET", _path(obj["kind"]))["items"] for obj in objects]
        looks.append(not any(left) and not api.request("GET", pods)["items"])
        # Controllers that have not seen the deletion yet make Pods again.
        return looks[-_LOOKS:] == [True] * _LOOKS

    until(gone, _SECONDS, "Pods of a removed workload stay")


def _path(kind: str) -> str:
    return f"{_GROUPS[kind]}/namespaces/{NAMESPACE}/{kind.lower()}s"


def _manifest(name: str, part: Part, scheduler_name: str) -> Object:
    labels = {"app": name}
    container: Object = {"name": "main", "image": "registry.example.com/none"}
    if part.cpu:
        container["resources"] = {"requests": {"cpu": part.cpu, "memory": part.memory}}
    template: Object = {
        "metadata": {"labels": labels},
        "spec": {
            "schedulerName": scheduler_name,
            "nodeSelector": {hollow.LABEL: ""},
            "automountServiceAccountToken": False,
            "containers": [container],
        },
    }
    spec: Object = {
        "replicas": part.replicas, "selector": {"matchLabels": labels}, "template": template,
    }  # fmt: skip
    if part.kind == "StatefulSet":
        spec |= {"serviceName": name, "podManagementPolicy": "Parallel"}
    if part.kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
        count = {"parallelism": part.replicas, "completions": part.replicas}
        spec = {**count, "template": template}
    return {
        "apiVersion": _GROUPS[part.kind].removeprefix("/apis/"),
        "kind": part.kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }
