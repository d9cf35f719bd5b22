"""A cluster in which a pod waits."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

Object = dict[str, Any]

NAMESPACE: Final = "pending-kinds"
OTHER_NAMESPACE: Final = "pending-kinds-other"
ADDED: Final = "added-affinity"
"""A profile with an affinity of its own."""
SPREADING: Final = "spreading"
"""A profile with constraints of its own."""
HOST: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PRIORITIES: Final = {"pending-high": 1000, "pending-never": 900}
DRIVER: Final = "pending.example.com"
READY: Final = {"type": "Ready", "status": "True", "reason": "x", "message": "x"}
_STORAGE: Final = "/apis/storage.k8s.io/v1"
_DRA: Final = "/apis/resource.k8s.io/v1"

CONFIGURATION: Final = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": {"leaderElect": False},
    "profiles": [
        {"schedulerName": "default-scheduler"},
        {
            "schedulerName": ADDED,
            "pluginConfig": [
                {
                    "name": "NodeAffinity",
                    "args": {
                        "addedAffinity": {
                            REQUIRED: {
                                "nodeSelectorTerms": [
                                    {
                                        "matchExpressions": [
                                            {"key": "pool", "operator": "In", "values": ["batch"]}
                                        ]
                                    }
                                ]
                            }
                        }
                    },
                }
            ],
        },
        {
            "schedulerName": SPREADING,
            "pluginConfig": [
                {
                    "name": "PodTopologySpread",
                    "args": {
                        "defaultingType": "List",
                        "defaultConstraints": [
                            {
                                "maxSkew": 1,
                                "topologyKey": ZONE,
                                "whenUnsatisfiable": "DoNotSchedule",
                            }
                        ],
                    },
                }
            ],
        },
    ],
}


@dataclass
class Situation:
    """Three nodes and a pod that fits on each of them; a kind of Pending changes something."""

    prefix: str  # of all cluster-scoped names; no other situation has it
    nodes: list[Object] = field(default_factory=list)  # with status
    # (path of the collection, object, its status), to create in this order
    objects: list[tuple[str, Object, Object]] = field(default_factory=list)
    running: list[Object] = field(default_factory=list)  # pods with a node
    waiting: Object = field(default_factory=dict)  # the pod that waits
    # paths of objects with a finalizer, which are deleted before the pod waits
    terminating: list[str] = field(default_factory=list)
    # (path, merge patch) of a repair
    patches: list[tuple[str, Object]] = field(default_factory=list)
    deletions: list[str] = field(default_factory=list)  # paths of a repair

    def __post_init__(self) -> None:
        for name, zone in (("a", "x"), ("b", "x"), ("c", "y")):
            self.node(name, zone)
        self.waiting = self.pod("waiting")

    def name(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def node(self, name: str, zone: str) -> None:
        amounts = {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "20Gi", "pods": "10"}
        labels = {HOST: self.name(name), ZONE: zone, "disk": "ssd", "generation": "3"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [READY]}
        metadata = {"name": self.name(name), "labels": labels}
        self.nodes.append({"metadata": metadata, "spec": {}, "status": status})

    def every_node(self, **amounts: str) -> None:
        """Change what every node has."""
        for node in self.nodes:
            for key in ("capacity", "allocatable"):
                node["status"][key] = {**node["status"][key], **amounts}

    def pod(self, name: str, cpu: str = "100m", app: str = "web", **spec: Any) -> Object:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        return {
            "metadata": {
                "name": self.name(name),
                "namespace": NAMESPACE,
                "labels": {"app": app},
            },
            "spec": {
                "terminationGracePeriodSeconds": 0,
                "automountServiceAccountToken": False,
                "containers": [container],
                **spec,
            },
        }

    def runs(self, node: int, cpu: str = "100m", app: str = "web", **spec: Any) -> Object:
        """A pod on a node."""
        made = self.pod(f"on-{node}-{len(self.running)}", cpu, app, **spec)
        made["spec"]["nodeName"] = self.nodes[node]["metadata"]["name"]
        self.running.append(made)
        return made

    def runs_everywhere(self, cpu: str = "100m", app: str = "web", **spec: Any) -> None:
        for number in range(len(self.nodes)):
            self.runs(number, cpu, app, **copy.deepcopy(spec))

    @property
    def spec(self) -> Object:
        found: Object = self.waiting["spec"]
        return found

    def requests(self, **amounts: str | None) -> None:
        """Change what the waiting pod requests; None removes a resource."""
        resources = self.spec["containers"][0]["resources"]
        for resource, amount in amounts.items():
            name = resource.replace("gpu", "example.com/gpu").replace("huge", "hugepages-2Mi")
            for key in ("requests", "limits"):
                if key == "limits" and "/" not in name and "-2Mi" not in name:
                    continue
                if amount is None:
                    resources[key].pop(name, None)
                else:
                    resources.setdefault(key, {})[name] = amount

    def taints(self, *taints: Object) -> None:
        for node in self.nodes:
            node["spec"]["taints"] = [*node["spec"].get("taints", ()), *taints]

    def affinity(self, kind: str, *terms: Object) -> None:
        if kind == "nodeAffinity":
            content: Object = {REQUIRED: {"nodeSelectorTerms": list(terms)}}
        else:
            content = {REQUIRED: list(terms)}
        self.spec["affinity"] = {kind: content}

    def spread(self, key: str, **fields: Any) -> None:
        rule = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
        selector = {"labelSelector": {"matchLabels": {"app": "web"}}}
        self.spec["topologySpreadConstraints"] = [{**rule, **selector, **fields}]

    # --- storage and devices ----------------------------------------------------------------------

    def add(self, path: str, name: str, status: Object | None = None, **content: Any) -> Object:
        obj = {"metadata": {"name": self.name(name)}, **content}
        self.objects.append((path, obj, status or {}))
        return obj

    def uses_claim(self, *names: str) -> None:
        self.spec["volumes"] = [
            {"name": name, "persistentVolumeClaim": {"claimName": self.name(name)}}
            for name in names or ("data",)
        ]

    def claim(
        self, storage_class: str = "disk", mode: str = "ReadWriteOnce", name: str = "data",
        **spec: Any,
    ) -> Object:  # fmt: skip
        path = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
        content = {
            "accessModes": [mode],
            "storageClassName": self.name(storage_class),
            "resources": {"requests": {"storage": "1Gi"}},
            **spec,
        }
        return self.add(path, name, spec=content)

    def storage_class(self, provisioner: str, mode: str, **fields: Any) -> Object:
        content: Object = {"provisioner": provisioner, "volumeBindingMode": mode, **fields}
        return self.add(f"{_STORAGE}/storageclasses", "disk", **content)

    def volume(
        self, key: str, *values: str, mode: str = "ReadWriteOnce", name: str = "volume", **spec: Any
    ) -> Object:
        """A volume that can be used where a label of the node has one of these values."""
        reach = {"key": key, "operator": "In", "values": list(values)}
        content = {
            "accessModes": [mode],
            "storageClassName": self.name("disk"),
            "capacity": {"storage": "1Gi"},
            "local": {"path": "/nowhere"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [reach]}]}},
            **spec,
        }
        return self.add("/api/v1/persistentvolumes", name, spec=content)

    def reserved_volume(
        self, key: str, *values: str, mode: str = "ReadWriteOnce", claim: str = "data", **spec: Any
    ) -> Object:
        """A volume for a claim."""
        reference = {"namespace": NAMESPACE, "name": self.name(claim)}
        name = "volume" if claim == "data" else f"volume-{claim}"
        return self.volume(key, *values, mode=mode, name=name, claimRef=reference, **spec)

    def bound_claim(
        self, key: str, *values: str, mode: str = "ReadWriteOnce", claim: str = "data", **spec: Any
    ) -> Object:
        """A claim that is bound to such a volume, which is returned."""
        volume = self.reserved_volume(key, *values, mode=mode, claim=claim, **spec)
        self.claim(mode=mode, name=claim, volumeName=volume["metadata"]["name"])
        self.uses_claim(claim)
        return volume

    def devices(self, count: int, *nodes: int, claims: int = 1, create: bool = True) -> None:
        """Claims for `count` devices each; every one of `nodes` has one device."""
        self.device_class()
        spec = self._wants(count)
        path = f"{_DRA}/namespaces/{NAMESPACE}/resourceclaims"
        used = []
        for number in range(claims):
            name = f"gpu-{number}"
            if create:
                self.add(path, name, spec=spec)
            used.append({"name": name, "resourceClaimName": self.name(name)})
        for number in nodes:
            self.slice(number, {"name": "d"})
        self.spec["resourceClaims"] = used

    def device_class(self) -> Object:
        selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
        return self.add(f"{_DRA}/deviceclasses", "gpu", spec={"selectors": [selector]})

    def _wants(self, count: int) -> Object:
        exactly = {
            "deviceClassName": self.name("gpu"),
            "allocationMode": "ExactCount",
            "count": count,
        }
        return {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}

    def claim_template(self) -> None:
        """A template for a claim of one device, and a device."""
        self.device_class()
        self.slice(0, {"name": "d"})
        path = f"{_DRA}/namespaces/{NAMESPACE}/resourceclaimtemplates"
        self.add(path, "template", spec={"spec": self._wants(1)})

    def uses_another_claim(self, change: Callable[[Object], None]) -> None:
        """The pod uses a claim like its own with a change of `spec.devices`."""
        spec = copy.deepcopy(self.object("resourceclaims")["spec"])
        change(spec["devices"])
        self.add(f"{_DRA}/namespaces/{NAMESPACE}/resourceclaims", "changed", spec=spec)
        self.spec["resourceClaims"][0]["resourceClaimName"] = self.name("changed")

    def delete_claim(self, number: int) -> None:
        name = self.name(f"gpu-{number}")
        self.deletions.append(f"{_DRA}/namespaces/{NAMESPACE}/resourceclaims/{name}")
        # kube-scheduler does not try a waiting pod again when a claim ends.
        self.waiting["metadata"]["labels"]["new"] = "yes"

    def slice(self, number: int, *devices: Object, name: str = "slice", count: int = 1) -> Object:
        """The devices of a node, or one of `count` parts of them."""
        node = self.nodes[number]["metadata"]["name"]
        content = {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": count},
            "devices": list(devices),
        }
        return self.add(f"{_DRA}/resourceslices", f"{name}-{number}", spec=content)

    def object(self, plural: str, at: int = 0) -> Object:
        """One of the objects of a kind that were added."""
        return [obj for path, obj, _ in self.objects if path.endswith(f"/{plural}")][at]

    # --- repairs ----------------------------------------------------------------------------------

    @staticmethod
    def path_of(obj: Object, plural: str = "pods") -> str:
        metadata = obj["metadata"]
        namespace = metadata.get("namespace") or NAMESPACE
        return f"/api/v1/namespaces/{namespace}/{plural}/{metadata['name']}"

    def patch_node(self, number: int, patch: Object) -> None:
        self.patches.append((f"/api/v1/nodes/{self.nodes[number]['metadata']['name']}", patch))
