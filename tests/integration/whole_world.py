"""A world in which objects of every kind that kube-scheduler reads decide about some pod."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from .test_kinds_decide import DRIVER, TAINT, of
from .test_why import HOST, ZONE, node, pod

Object = dict[str, Any]
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_STORAGE: Final = "storage.k8s.io/v1"
_CSI: Final = "csi.example"
_GIB: Final = 2**30
_CREATED: Final = "2026-01-01T00:00:00Z"
GROUP: Final = "gang"
LATE: Final = ("static", "dynamic")
"""Claims that are bound once kube-scheduler has chosen a node, each with a pod of its name."""


def whole_world() -> Iterator[Object]:
    """Yield its objects, but for the waiting pods."""
    for name in ("default", "dev"):
        labels = {"kubernetes.io/metadata.name": name, "team": name}
        yield {**of("Namespace", name, {}, "v1"), "metadata": {"name": name, "labels": labels}}
    yield from map(_images, _nodes())
    yield from _running()
    yield from _owners()
    yield from _volumes()
    yield from _devices()
    yield from _groups()


def _nodes() -> Iterator[Object]:
    gpus = {"example.com/gpu": "2"}
    yield node("n0", "x", amounts={"cpu": "8", **gpus})
    huge = {"cpu": "8", "hugepages-2Mi": "64Mi"}
    yield node("n1", "x", amounts=huge, labels={"disk": "hdd"})
    yield node(
        "n2",
        "y",
        amounts={"cpu": "8"},
        taints=[{"key": "slow", "value": "yes", "effect": "PreferNoSchedule"}],
    )
    yield node("n3", "z", taints=[{"key": "dedicated", "value": "a", "effect": "NoSchedule"}])
    yield node("n4", "z", unschedulable=True)


def _images(obj: Object) -> Object:
    if obj["metadata"]["name"] == "n2":
        obj["status"]["images"] = [{"names": ["big:1"], "sizeBytes": _GIB}]
    return obj


def _on(name: str, where: str, cpu: str = "500m", app: str = "web", **spec: Any) -> Object:
    made = pod(name, cpu, app, nodeName=where, **spec)
    made["status"] = {"phase": "Running", "startTime": _CREATED}
    return made


def _term(app: str, key: str, **fields: Any) -> Object:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **fields}


def _owned(made: Object, kind: str, name: str) -> Object:
    api = "v1" if kind == "ReplicationController" else "apps/v1"
    owner = {"apiVersion": api, "kind": kind, "name": name, "uid": name, "controller": True}
    made["metadata"]["ownerReferences"] = [owner]
    return made


def _running() -> Iterator[Object]:
    yield _on("r-web", "n0")
    yield _on("r-db", "n2", app="db")
    other = _on("r-other", "n1", app="db")
    other["metadata"]["namespace"] = "dev"
    yield other
    ports = _on("r-port", "n0", app="port")
    ports["spec"]["containers"][0]["ports"] = [
        {"hostPort": 8080, "containerPort": 80, "protocol": "TCP"}
    ]
    yield ports
    lonely = {"podAntiAffinity": {REQUIRED: [_term("shy", HOST)]}}
    yield _on("r-lonely", "n1", app="lonely", affinity=lonely)
    resized = _on("r-resized", "n2", "1", app="other")
    amounts = {"requests": {"cpu": "2"}}
    resized["status"]["containerStatuses"] = [
        {"name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": 0,
         "resources": amounts, "allocatedResources": amounts["requests"]}
    ]  # fmt: skip
    yield resized
    init = {"name": "init", "image": "i", "resources": {"requests": {"cpu": "700m"}}}
    yield _on("r-init", "n1", app="init", initContainers=[init], overhead={"cpu": "100m"})
    for kind, name in (
        ("ReplicaSet", "rs"),
        ("StatefulSet", "sts"),
        ("ReplicationController", "rc"),
    ):
        where = {"rs": "n0", "sts": "n1", "rc": "n2"}[name]
        yield _owned(_on(f"r-{name}", where, app=name), kind, name)
    # Of these two, the last pod preempts the first, if no budget keeps it.
    for at, (where, priority) in enumerate((("n0", -10), ("n2", -5))):
        yield _on(f"victim-{at}", where, "1", app=f"victim-{at}", priority=priority)


def _owners() -> Iterator[Object]:
    """Yield what selects pods that are spread by default, and a budget."""
    yield _in_default(of("Service", "web", {"selector": {"app": "served"}}, "v1"))
    yield _on("r-served", "n0", app="served")
    yield _in_default(of("ReplicationController", "rc", {"selector": {"app": "rc"}}, "v1"))
    for kind, name in (("ReplicaSet", "rs"), ("StatefulSet", "sts")):
        chosen = {"selector": {"matchLabels": {"app": name}}, "replicas": 2}
        yield _in_default(of(kind, name, chosen, "apps/v1"))
    budget = {"selector": {"matchLabels": {"app": "victim-0"}}, "maxUnavailable": 0}
    made = _in_default(of("PodDisruptionBudget", "b", budget, "policy/v1"))
    yield {**made, "status": {"disruptionsAllowed": 0, "observedGeneration": 1}}


def _in_default(obj: Object) -> Object:
    obj["metadata"] |= {"namespace": "default", "uid": obj["metadata"]["name"]}
    return obj


def _volume(name: str, claim: str = "", labels: Mapping[str, str] | None = None,
            **spec: Any) -> Object:  # fmt: skip
    content: Object = {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **spec,
    }  # fmt: skip
    made = of("PersistentVolume", name, content, "v1")
    made["metadata"] |= {"uid": name, "labels": dict(labels or {})}
    made["status"] = {"phase": "Available"}
    if claim:
        content["claimRef"] = {"namespace": "default", "name": claim, "uid": claim}
        made["status"] = {"phase": "Bound"}
    return made


def _claim(name: str, volume: str = "", storage_class: str = "", *modes: str) -> Object:
    spec: Object = {
        "accessModes": list(modes or ("ReadWriteOnce",)),
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": storage_class,
    }
    made = _in_default(of("PersistentVolumeClaim", name, spec, "v1"))
    made["status"] = {"phase": "Pending"}
    if volume:
        spec["volumeName"] = volume
        made["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        made["status"] = {"phase": "Bound"}
    return made


def _reach(key: str, *values: str) -> Object:
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}
    return {"required": {"nodeSelectorTerms": [term]}}


def _uses(claim: str) -> list[Object]:
    return [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]


def _volumes() -> Iterator[Object]:
    local: Object = {"local": {"path": "/x"}}
    yield _volume("v-bound", "bound", **local, nodeAffinity=_reach(ZONE, "x"))
    yield _claim("bound", "v-bound")
    yield _volume("v-zone", "zone", {ZONE: "y"}, **local)
    yield _claim("zone", "v-zone")
    late = {"volumeBindingMode": "WaitForFirstConsumer", "reclaimPolicy": "Delete"}
    for name, provisioner in (("static", "kubernetes.io/no-provisioner"), ("dynamic", _CSI)):
        made = of("StorageClass", name, {}, _STORAGE)
        del made["spec"]
        yield {**made, "provisioner": provisioner, **late}
    yield _volume("v-static", **local, storageClassName="static", nodeAffinity=_reach(HOST, "n2"))
    yield _claim("static", "", "static")
    yield _claim("dynamic", "", "dynamic")
    yield of("CSIDriver", _CSI, {"attachRequired": True, "storageCapacity": True}, _STORAGE)
    for zone, size in (("x", "10Gi"), ("y", "1Gi"), ("z", "1Mi")):
        capacity = _in_default(of("CSIStorageCapacity", f"in-{zone}", {}, _STORAGE))
        del capacity["spec"]
        yield {
            **capacity, "storageClassName": "dynamic", "capacity": size,
            "nodeTopology": {"matchLabels": {ZONE: zone}},
        }  # fmt: skip
    drivers = [
        {"name": _CSI, "nodeID": "n0", "topologyKeys": [ZONE], "allocatable": {"count": 1}},
        {
            "name": "ebs.csi.aws.com",
            "nodeID": "n0",
            "topologyKeys": [],
            "allocatable": {"count": 1},
        },
    ]
    for name in ("n0", "n1", "n2"):
        yield of("CSINode", name, {"drivers": drivers}, _STORAGE)
    for name in ("one", "two"):
        csi = {"driver": _CSI, "volumeHandle": name}
        yield _volume(f"v-{name}", name, csi=csi)
        yield _claim(name, f"v-{name}")
    yield _on("r-attached", "n0", app="attached", volumes=_uses("one"))
    csi = {"driver": _CSI, "volumeHandle": "gone"}
    yield _volume("v-gone", csi=csi)
    attachment = of("VolumeAttachment", "attached", {
        "attacher": _CSI, "nodeName": "n1", "source": {"persistentVolumeName": "v-gone"},
    }, _STORAGE)  # fmt: skip
    yield {**attachment, "status": {"attached": True}}
    csi = {"driver": "other.example", "volumeHandle": "alone"}
    yield _volume("v-alone", "alone", csi=csi)
    yield _claim("alone", "v-alone", "", "ReadWriteOncePod")
    yield _on("r-alone", "n1", app="alone", volumes=_uses("alone"))
    disk = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
    yield _on("r-disk", "n0", app="disk", volumes=[{"name": "v", **disk}])


def _devices() -> Iterator[Object]:
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    yield of("DeviceClass", DRIVER, {"selectors": [selector]})
    for name, taints in (("n0", []), ("n1", []), ("n2", [TAINT]), ("n3", [])):
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        device = {"name": "d", **({"taints": taints} if taints else {})}
        spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": [device]}
        yield of("ResourceSlice", name, spec)
    request = {"name": "r", "exactly": {
        "deviceClassName": DRIVER, "allocationMode": "ExactCount", "count": 1,
    }}  # fmt: skip
    for name in ("held", "wanted"):
        made = _in_default(of("ResourceClaim", name, {"devices": {"requests": [request]}}))
        if name == "held":
            result = {"request": "r", "driver": DRIVER, "pool": "n0", "device": "d"}
            field = {"key": "metadata.name", "operator": "In", "values": ["n0"]}
            made["status"] = {
                "allocation": {
                    "devices": {"results": [result]},
                    "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
                },
                "reservedFor": [{"resource": "pods", "name": "r-held", "uid": "r-held"}],
            }
        yield made
    used = [{"name": "gpu", "resourceClaimName": "held"}]
    yield _on("r-held", "n0", app="held", resourceClaims=used)
    rule = {"deviceSelector": {"driver": DRIVER, "pool": "n1"}, "taint": TAINT}
    yield of("DeviceTaintRule", "rule", rule)


def _groups() -> Iterator[Object]:
    """Yield a group in each form; without it, its pod waits."""
    gang = {"gang": {"minCount": 1}}
    parts = {"podGroups": [{"name": GROUP, "policy": gang}]}
    yield _in_default(of("Workload", GROUP, parts, "scheduling.k8s.io/v1alpha1"))
    group = {"schedulingPolicy": gang, "parentCompositePodGroupName": "all"}
    yield _in_default(of("PodGroup", GROUP, group, "scheduling.k8s.io/v1beta1"))
    whole: Object = {"schedulingPolicy": {"basic": {}}}
    yield _in_default(of("CompositePodGroup", "all", whole, "scheduling.k8s.io/v1alpha3"))


# --- the pods that wait ---------------------------------------------------------------------------


def waiting_pods(minor: int) -> Iterator[Object]:
    """Yield the pods; only the last one preempts others."""
    for made in _waiting(minor):
        yield {**made, "spec": {**made["spec"], "preemptionPolicy": "Never"}}
    yield pod("p-last", "4500m", nodeSelector={"disk": "ssd"}, priority=100)


def _waiting(minor: int) -> Iterator[Object]:
    yield pod("p-plain")
    big = pod("p-image")
    big["spec"]["containers"][0]["image"] = "big:1"
    yield big
    spaces = {"namespaceSelector": {"matchLabels": {"team": "dev"}}}
    yield pod("p-near", affinity={"podAffinity": {REQUIRED: [_term("db", HOST, **spaces)]}})
    preferred = {"weight": 5, "podAffinityTerm": _term("web", ZONE)}
    yield pod("p-prefers", affinity={"podAffinity": {PREFERRED: [preferred]}})
    yield pod("p-far", affinity={"podAntiAffinity": {REQUIRED: [_term("web", ZONE)]}})
    yield pod("p-shy", app="shy")
    rule = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}}}  # fmt: skip
    yield pod("p-spread", topologySpreadConstraints=[rule])
    yield pod("p-disk", nodeSelector={"disk": "ssd"})
    yield pod("p-tolerant", tolerations=[{"key": "dedicated", "operator": "Exists"}])
    port = pod("p-port")
    port["spec"]["containers"][0]["ports"] = [
        {"hostPort": 8080, "containerPort": 80, "protocol": "TCP"}
    ]
    yield port
    for name, amounts in (("gpu", {"example.com/gpu": "1"}), ("huge", {"hugepages-2Mi": "32Mi"})):
        made = pod(f"p-{name}")
        made["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
        yield made
    yield pod("p-half", "6")
    yield pod("p-served", app="served")
    for kind, name in (
        ("ReplicaSet", "rs"),
        ("StatefulSet", "sts"),
        ("ReplicationController", "rc"),
    ):
        yield _owned(pod(f"p-{name}", app=name), kind, name)
    yield pod("p-in-tree", volumes=[{"name": "v", "awsElasticBlockStore": {"volumeID": "vol-2"}}])
    yield pod("p-hosted", hostNetwork=True, hostUsers=False)
    tolerant = [{"key": "dedicated", "operator": "Exists"}]
    for claim in ("bound", "zone", "two", "alone", *LATE):
        yield pod(f"p-{claim}", volumes=_uses(claim), tolerations=tolerant)
    devices = pod(
        "p-wanted",
        resourceClaims=[{"name": "gpu", "resourceClaimName": "wanted"}],
        tolerations=tolerant,
    )
    devices["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    yield devices
    if minor >= 35:  # alone in its group
        reference: Object = {"schedulingGroup": {"podGroupName": GROUP}}
        if minor == 35:
            reference = {"workloadRef": {"name": GROUP, "podGroup": GROUP}}
        yield pod("p-member", **reference)
