"""Generated clusters, configurations and waiting pods, for the simulator and a real API server.

Objects are as users write them: the API server completes them, and the simulator gets what it made
of them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Final

NAMESPACES: Final = ("simulated", "simulated-other")
ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
GPU: Final = "example.com/gpu"
DRIVER: Final = "simulated.example.com"
WAITING_CLASS: Final = "simulated-wait"
PRIORITIES: Final = {"simulated-high": 1000, "simulated-low": 10, "simulated-never": 500}

Object = dict[str, Any]
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_IMAGES: Final = {"web": 300, "db": 900, "batch": 40}
"""App -> megabytes, the same on all nodes: kube-scheduler takes the size of the node that it sees
first, in an order that is random after a start."""
_APPS: Final = tuple(_IMAGES)
_TAINTS: Final = (
    {"key": "dedicated", "value": "team", "effect": "NoSchedule"},
    {"key": "maintenance", "effect": "NoExecute"},
    {"key": "slow", "value": "yes", "effect": "PreferNoSchedule"},
)
_STAYS: Final = {"operator": "Exists", "effect": "NoExecute"}
"""Toleration of running pods: kube-controller-manager evicts others while the world is compared."""


@dataclass
class GeneratedWorld:
    """A cluster and the pods that wait in it."""

    nodes: list[Object] = field(default_factory=list)  # with status
    # (path of the collection, object), to create in this order
    objects: list[tuple[str, Object]] = field(default_factory=list)
    running: list[Object] = field(default_factory=list)  # pods with spec.nodeName
    # pods without; those that change the world if they are placed come last
    waiting: list[Object] = field(default_factory=list)
    profile: Object = field(default_factory=dict)  # the profile that serves them


def generate(seed: int) -> GeneratedWorld:
    """The world of this seed; names contain it, so that worlds can follow each other quickly."""
    chance = random.Random(f"simulated world {seed}")
    world = GeneratedWorld(profile=_profile(chance))
    prefix = f"w{seed}"
    for number in range(chance.randint(3, 8)):
        world.nodes.append(draw_node(chance, f"{prefix}-n{number}"))
    if world.profile.get("plugins", {}).get("filter"):
        _forbid_evictions(world.nodes)
    names = [node["metadata"]["name"] for node in world.nodes]
    for number in range(chance.randint(0, 14)):
        pod = draw_pod(chance, f"{prefix}-r{number}", running=True)
        pod["spec"]["nodeName"] = chance.choice(names)
        pod["spec"].setdefault("tolerations", []).append(_STAYS)
        world.running.append(pod)
    _volumes(chance, world, prefix, names)
    _devices(chance, world, prefix, names)
    if chance.random() < 0.4:
        budget = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": chance.choice(_APPS)}}}
        path = f"/apis/policy/v1/namespaces/{NAMESPACES[0]}/poddisruptionbudgets"
        world.objects.append((path, {"metadata": {"name": f"{prefix}-b"}, "spec": budget}))
    simple = [draw_pod(chance, f"{prefix}-p{number}") for number in range(chance.randint(4, 7))]
    simple.sort(key=lambda pod: "priorityClassName" in pod["spec"])
    world.waiting = simple + [_using(chance, pod, prefix) for pod in _special(chance, prefix)]
    return world


def _forbid_evictions(nodes: list[Object]) -> None:
    """Without TaintToleration's filter, pods are placed on nodes from which they are evicted."""
    for node in nodes:
        taints = node["spec"]["taints"]
        node["spec"]["taints"] = [each for each in taints if each["effect"] != "NoExecute"]


def _profile(chance: random.Random) -> Object:
    """Mostly the default, because it is what most clusters have."""
    variants: tuple[Object, ...] = (
        {},
        {},
        {},
        {"pluginConfig": [_fit("MostAllocated")]},
        {"pluginConfig": [_fit("RequestedToCapacityRatio")]},
        {"plugins": {"filter": {"disabled": [{"name": "TaintToleration"}]}}},
        {
            "plugins": {
                "multiPoint": {
                    "disabled": [{"name": "InterPodAffinity"}, {"name": "ImageLocality"}],
                    "enabled": [{"name": "NodeAffinity", "weight": 7}],
                }
            }
        },
        {
            "pluginConfig": [
                {
                    "name": "NodeAffinity",
                    "args": {
                        "addedAffinity": {
                            REQUIRED: {
                                "nodeSelectorTerms": [
                                    {"matchExpressions": [{"key": ZONE, "operator": "Exists"}]}
                                ]
                            }
                        }
                    },
                }
            ]
        },
        {
            "pluginConfig": [
                {
                    "name": "PodTopologySpread",
                    "args": {
                        "defaultingType": "List",
                        "defaultConstraints": [
                            {
                                "maxSkew": 1,
                                "topologyKey": ZONE,
                                "whenUnsatisfiable": "ScheduleAnyway",
                            }
                        ],
                    },
                },
                {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 50}},
            ]
        },
    )
    return {"schedulerName": "simulated", **chance.choice(variants)}


def _fit(strategy: str) -> Object:
    scoring: Object = {"type": strategy, "resources": [{"name": "cpu", "weight": 2}]}
    if strategy == "RequestedToCapacityRatio":
        shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
        scoring["requestedToCapacityRatio"] = {"shape": shape}
    return {"name": "NodeResourcesFit", "args": {"scoringStrategy": scoring}}


def draw_node(chance: random.Random, name: str) -> Object:
    labels = {HOST: name, "disk": chance.choice(("ssd", "hdd"))}
    if chance.random() < 0.9:
        labels[ZONE] = chance.choice("abc")
    if chance.random() < 0.5:
        labels["generation"] = str(chance.randint(1, 9))
    amounts = {
        "cpu": chance.choice(("2", "4", "3500m", "8")),
        "memory": chance.choice(("4Gi", "8Gi", "16000Mi")),
        "ephemeral-storage": "20Gi",
        "pods": chance.choice(("110", "110", "110", "3")),
    }
    if chance.random() < 0.3:
        amounts[GPU] = str(chance.randint(1, 4))
    spec: Object = {"taints": [each for each in _TAINTS if chance.random() < 0.15]}
    if chance.random() < 0.1:
        spec["unschedulable"] = True
    images = [
        {"names": [f"registry.example.com/{app}:v1"], "sizeBytes": megabytes * 10**6}
        for app, megabytes in _IMAGES.items()
        if chance.random() < 0.4
    ]
    status = {
        "allocatable": amounts,
        "capacity": amounts,
        "images": images,
        "conditions": [{"type": "Ready", "status": "True", "reason": "x", "message": "x"}],
    }
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}


def draw_pod(chance: random.Random, name: str, *, running: bool = False) -> Object:
    app = chance.choice(_APPS)
    # The order of the draws decides which worlds a seed makes.
    spec: Object = {
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": [_container(chance, app, 0)],
    }
    _draw_containers(chance, spec, app)
    _draw_host_port(chance, spec, often=0.15 if running else 0.25)
    if chance.random() < 0.3:
        spec["priorityClassName"] = chance.choice(sorted(PRIORITIES))
    if chance.random() < 0.35:
        spec["tolerations"] = [_toleration(chance, taint) for taint in _TAINTS]
    affinity = {} if running else _draw_node_choice(chance, spec)
    for kind, often in (("podAffinity", 0.2), ("podAntiAffinity", 0.3)):
        if chance.random() < often:
            affinity[kind] = _pod_affinity(chance)
    if affinity:
        spec["affinity"] = affinity
    if chance.random() < 0.35:
        spec["topologySpreadConstraints"] = _spread(chance, app)
    return {
        "metadata": {
            "name": name,
            "namespace": chance.choice((NAMESPACES[0], NAMESPACES[0], NAMESPACES[1])),
            "labels": {"app": app, "tier": chance.choice(("front", "back"))},
        },
        "spec": spec,
    }


def _draw_containers(chance: random.Random, spec: Object, app: str) -> None:
    """Draw further containers, and resources of the pod instead of its containers."""
    if chance.random() < 0.3:
        spec["containers"].append(_container(chance, app, 1))
    if chance.random() < 0.15:
        spec["initContainers"] = [{**_container(chance, app, 2), "name": "init"}]
        if chance.random() < 0.5:
            spec["initContainers"][0]["restartPolicy"] = "Always"
    if chance.random() < 0.1:
        spec["resources"] = {"requests": {"cpu": "4"}}
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            container["resources"]["requests"].pop("cpu", None)


def _draw_host_port(chance: random.Random, spec: Object, *, often: float) -> None:
    if chance.random() < often:
        port: Object = {"containerPort": 80, "hostPort": chance.choice((8080, 8443))}
        if chance.random() < 0.3:
            port["protocol"] = "UDP"
        spec["containers"][0]["ports"] = [port]


def _draw_node_choice(chance: random.Random, spec: Object) -> Object:
    """Draw how a pod chooses nodes, and a gate; the affinity."""
    affinity: Object = {}
    if chance.random() < 0.25:
        spec["nodeSelector"] = {"disk": chance.choice(("ssd", "hdd", "tape"))}
    if chance.random() < 0.3:
        affinity["nodeAffinity"] = _node_affinity(chance)
    if chance.random() < 0.05:
        spec["schedulingGates"] = [{"name": "example.com/gate"}]
    return affinity


def _container(chance: random.Random, app: str, number: int) -> Object:
    requests = {}
    if chance.random() < 0.85:
        requests["cpu"] = chance.choice(("100m", "500m", "1", "1500m", "3", "9"))
    if chance.random() < 0.7:
        requests["memory"] = chance.choice(("64Mi", "1Gi", "3Gi", "5Gi"))
    if chance.random() < 0.1:
        requests["ephemeral-storage"] = chance.choice(("1Gi", "15Gi"))
    resources: Object = {"requests": requests}
    if chance.random() < 0.12:
        requests[GPU] = "1"
        resources["limits"] = {GPU: "1"}
    image = f"registry.example.com/{app}:v1"
    return {"name": f"c{number}", "image": image, "resources": resources}


def _toleration(chance: random.Random, taint: Object) -> Object:
    if chance.random() < 0.2:
        return {"key": taint["key"], "operator": "Exists"}
    wrong = chance.random() < 0.3
    value = "other" if wrong else taint.get("value", "")
    return {
        "key": taint["key"],
        "operator": "Equal",
        "value": value,
        "effect": taint["effect"],
    }


def _requirement(chance: random.Random) -> Object:
    return chance.choice(
        (
            {"key": ZONE, "operator": "In", "values": chance.sample("abcd", 2)},
            {"key": ZONE, "operator": "NotIn", "values": [chance.choice("abc")]},
            {"key": "generation", "operator": "Gt", "values": ["4"]},
            {"key": "generation", "operator": "DoesNotExist"},
            {"key": "disk", "operator": "In", "values": ["ssd"]},
        )
    )


def _node_affinity(chance: random.Random) -> Object:
    found: Object = {}
    if chance.random() < 0.7:
        terms = [
            {"matchExpressions": [_requirement(chance) for _ in range(chance.randint(1, 2))]}
            for _ in range(chance.randint(1, 2))
        ]
        found[REQUIRED] = {"nodeSelectorTerms": terms}
    if chance.random() < 0.5 or not found:
        preference = {"matchExpressions": [_requirement(chance)]}
        found[PREFERRED] = [{"weight": chance.randint(1, 100), "preference": preference}]
    return found


def _term(chance: random.Random) -> Object:
    labels = chance.choice(({"app": chance.choice(_APPS)}, {"tier": "front"}))
    term: Object = {
        "labelSelector": {"matchLabels": labels},
        "topologyKey": chance.choice((HOST, ZONE)),
    }
    if chance.random() < 0.2:
        term["namespaces"] = list(NAMESPACES)
    elif chance.random() < 0.2:
        term["namespaceSelector"] = {}
    return term


def _pod_affinity(chance: random.Random) -> Object:
    found: Object = {}
    if chance.random() < 0.6:
        found[REQUIRED] = [_term(chance) for _ in range(chance.choice((1, 1, 2)))]
    if chance.random() < 0.5 or not found:
        weight = chance.randint(1, 100)
        found[PREFERRED] = [{"weight": weight, "podAffinityTerm": _term(chance)}]
    return found


def _spread(chance: random.Random, app: str) -> list[Object]:
    found = []
    for key in chance.sample((HOST, ZONE), chance.randint(1, 2)):
        rule: Object = {
            "maxSkew": chance.choice((1, 1, 2)),
            "topologyKey": key,
            "whenUnsatisfiable": chance.choice(("DoNotSchedule", "ScheduleAnyway")),
            "labelSelector": {"matchLabels": {"app": app}},
        }
        if chance.random() < 0.2:
            rule["nodeAffinityPolicy"] = "Ignore"
        if chance.random() < 0.2:
            rule["nodeTaintsPolicy"] = "Honor"
        if chance.random() < 0.15 and rule["whenUnsatisfiable"] == "DoNotSchedule":
            rule["minDomains"] = 3
        if chance.random() < 0.15:
            rule["matchLabelKeys"] = ["tier"]
        found.append(rule)
    return found


# --- volumes and devices --------------------------------------------------------------------------


def _volumes(chance: random.Random, world: GeneratedWorld, prefix: str, names: list[str]) -> None:
    """A bound claim on one node, a free volume for a claim that waits, and a claim without one."""
    capacity = {"storage": "1Gi"}
    claims = f"/api/v1/namespaces/{NAMESPACES[0]}/persistentvolumeclaims"
    for kind in ("bound", "free"):
        node = chance.choice(names)
        reach = {"key": HOST, "operator": "In", "values": [node]}
        volume: Object = {
            "capacity": capacity,
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": WAITING_CLASS,
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": "/nowhere"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [reach]}]}},
        }
        claim: Object = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": WAITING_CLASS,
            "resources": {"requests": capacity},
        }
        if kind == "bound":
            name = {"namespace": NAMESPACES[0], "name": f"{prefix}-bound"}
            volume["claimRef"] = name
            claim["volumeName"] = f"{prefix}-bound"
        else:
            volume["storageClassName"] = claim["storageClassName"] = f"{WAITING_CLASS}-{prefix}"
            storage_class = {
                "metadata": {"name": f"{WAITING_CLASS}-{prefix}"},
                "provisioner": "kubernetes.io/no-provisioner",
                "volumeBindingMode": "WaitForFirstConsumer",
            }
            world.objects.append(("/apis/storage.k8s.io/v1/storageclasses", storage_class))
        metadata = {"metadata": {"name": f"{prefix}-{kind}"}}
        world.objects.append(("/api/v1/persistentvolumes", {**metadata, "spec": volume}))
        world.objects.append((claims, {**metadata, "spec": claim}))
    homeless = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": WAITING_CLASS,
        "resources": {"requests": {"storage": "900Gi"}},
    }
    metadata = {"metadata": {"name": f"{prefix}-homeless"}}
    world.objects.append((claims, {**metadata, "spec": homeless}))


def _devices(chance: random.Random, world: GeneratedWorld, prefix: str, names: list[str]) -> None:
    """Devices on some nodes, and claims for one and for more than there are."""
    base = "/apis/resource.k8s.io/v1"
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    device_class = {"metadata": {"name": prefix}, "spec": {"selectors": [selector]}}
    world.objects.append((f"{base}/deviceclasses", device_class))
    for node in chance.sample(names, 2):
        spec = {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"d{number}"} for number in range(2)],
        }
        slice_ = {"metadata": {"name": f"{prefix}-{node}"}, "spec": spec}
        world.objects.append((f"{base}/resourceslices", slice_))
    for kind, count in (("device", 1), ("devices", 3)):
        request = {"name": "r", "exactly": {"deviceClassName": prefix, "count": count}}
        claim = {
            "metadata": {"name": f"{prefix}-{kind}"},
            "spec": {"devices": {"requests": [request]}},
        }
        path = f"{base}/namespaces/{NAMESPACES[0]}/resourceclaims"
        world.objects.append((path, claim))


def _special(chance: random.Random, prefix: str) -> list[Object]:
    pods = [draw_pod(chance, f"{prefix}-s{number}") for number in range(chance.randint(2, 4))]
    for pod in pods:
        pod["metadata"]["namespace"] = NAMESPACES[0]
        pod["spec"].pop("schedulingGates", None)
    return pods


def _using(chance: random.Random, pod: Object, prefix: str) -> Object:
    """The pod with a volume or a device."""
    spec = pod["spec"]
    what = chance.choice(("bound", "free", "homeless", "missing", "device", "devices"))
    if what.startswith("device"):
        spec["resourceClaims"] = [{"name": "d", "resourceClaimName": f"{prefix}-{what}"}]
        spec["containers"][0]["resources"]["claims"] = [{"name": "d"}]
    else:
        claim = {"claimName": f"{prefix}-{what}"}
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": claim}]
    return pod
