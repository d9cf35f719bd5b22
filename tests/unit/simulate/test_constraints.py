"""The constraints of a pod, and what removing each of them leaves."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kube_scheduler_operator.simulate.constraint import different_texts, quantity_text
from kube_scheduler_operator.simulate.constraints import (
    MOST_TRIED,
    constraints_of,
    tried,
    without,
)
from kube_scheduler_operator.simulate.world import World

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TERM = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone"}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
ZONE_A = {"key": "zone", "operator": "In", "values": ["a"]}
NEW = {"key": "generation", "operator": "Gt", "values": ["4"]}


def _container(**fields: Any) -> dict[str, Any]:
    return {"name": "c", **fields}


CASES: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "a request": (
        {"containers": [_container(resources={"requests": {"cpu": "1", "memory": "1Gi"}})]},
        "request less cpu",
        {"containers": [_container(resources={"requests": {"memory": "1Gi"}})]},
    ),
    "a limit that is the request": (
        {"containers": [_container(resources={"limits": {"cpu": "1"}, "requests": {}})]},
        "request less cpu",
        {"containers": [_container(resources={"limits": {}, "requests": {}})]},
    ),
    "a label of the nodeSelector": (
        {"nodeSelector": {"disk": "ssd", "zone": "a"}},
        "remove disk=ssd from the nodeSelector",
        {"nodeSelector": {"zone": "a"}},
    ),
    "an expression of the only term": (
        {"affinity": {"nodeAffinity": {REQUIRED: {
            "nodeSelectorTerms": [{"matchExpressions": [ZONE_A, NEW]}]}}}},
        "remove generation greater than 4 from the node affinity",
        {"affinity": {"nodeAffinity": {REQUIRED: {
            "nodeSelectorTerms": [{"matchExpressions": [ZONE_A]}]}}}},
    ),
    "the last expression of the only term": (
        {"affinity": {"nodeAffinity": {REQUIRED: {
            "nodeSelectorTerms": [{"matchExpressions": [ZONE_A]}]}}}},
        "remove zone in a from the node affinity",
        {"affinity": {"nodeAffinity": {}}},
    ),
    "several terms, of which one has to match": (
        {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [
            {"matchExpressions": [ZONE_A]}, {"matchExpressions": [NEW]}]}}}},
        "remove the required node affinity",
        {"affinity": {"nodeAffinity": {}}},
    ),
    "a host port": (
        {"containers": [_container(ports=[{"hostPort": 80}, {"hostPort": 81}])]},
        "remove the hostPort 80/TCP",
        {"containers": [_container(ports=[{"hostPort": 81}])]},
    ),
    "a port of a pod with hostNetwork": (
        {"hostNetwork": True, "containers": [_container(ports=[{"hostPort": 80}])]},
        "use another port than 80/TCP, or no hostNetwork",
        {"hostNetwork": True, "containers": [_container(ports=[])]},
    ),
    "a spread": (
        {"topologySpreadConstraints": [SPREAD, {**SPREAD, "topologyKey": "host"}]},
        "use ScheduleAnyway for the spread over zone",
        {
            "topologySpreadConstraints": [
                {**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"},
                {**SPREAD, "topologyKey": "host"},
            ]
        },
    ),
    "an anti-affinity": (
        {"affinity": {"podAntiAffinity": {REQUIRED: [TERM]}}},
        "remove the pod anti-affinity to pods with app=db per zone",
        {"affinity": {"podAntiAffinity": {REQUIRED: []}}},
    ),
    "an expression that is written twice": (
        {"affinity": {"nodeAffinity": {REQUIRED: {
            "nodeSelectorTerms": [{"matchExpressions": [NEW, ZONE_A, ZONE_A]}]}}}},
        "remove zone in a from the node affinity",
        {"affinity": {"nodeAffinity": {REQUIRED: {
            "nodeSelectorTerms": [{"matchExpressions": [NEW]}]}}}},
    ),
    "an anti-affinity that is written twice": (
        {"affinity": {"podAntiAffinity": {REQUIRED: [TERM, TERM]}}},
        "remove the pod anti-affinity to pods with app=db per zone",
        {"affinity": {"podAntiAffinity": {REQUIRED: []}}},
    ),
    "a claim": (
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
        "create PersistentVolumeClaim data",
        {"volumes": []},
    ),
    "a volume of a driver": (
        {"volumes": [{"name": "v", "csi": {"driver": "d"}}, {"name": "w", "csi": {"driver": "d"}}]},
        "remove the volume v (d)",
        {"volumes": [{"name": "w", "csi": {"driver": "d"}}]},
    ),
    "a device": (
        {
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "g"}],
            "containers": [_container(resources={"claims": [{"name": "gpu"}]})],
        },
        "create ResourceClaim g",
        {"resourceClaims": [], "containers": [_container(resources={"claims": []})]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_one_constraint_is_removed(name: str) -> None:
    spec, fix, left = CASES[name]
    pod = {"metadata": {"name": "p", "namespace": "n"}, "spec": spec}
    before = copy.deepcopy(pod)
    constraints = constraints_of(pod, World())
    assert without(pod, constraints)
    (constraint,) = (each for each in constraints if each.fix == fix)
    assert without(pod, [constraint])["spec"] == left
    assert pod == before


def test_all_constraints_together_leave_a_pod_that_fits_everywhere() -> None:
    spec: dict[str, Any] = {}
    for case, _, _ in CASES.values():
        for key, value in copy.deepcopy(case).items():
            known = spec.get(key)
            if isinstance(value, list) and known is not None:
                known += value
            elif isinstance(value, dict) and known is not None:
                known.update(value)
            else:
                spec[key] = value
    pod = {"metadata": {"name": "p", "namespace": "n"}, "spec": spec}
    world = World()
    world.add(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "a"},
            "spec": {"taints": [{"key": "k", "effect": "NoExecute"}]},
        }
    )
    left = without(pod, constraints_of(pod, world))
    assert [each.fix for each in constraints_of(left, World())] == [
        "uncordon the node: kubectl uncordon NODE"
    ]
    toleration = {"key": "k", "operator": "Equal", "effect": "NoExecute"}
    assert toleration in left["spec"]["tolerations"]


def test_the_image_of_a_volume_restricts_nothing() -> None:
    spec = {"volumes": [{"name": "model", "image": {"reference": "registry/model:v1"}}]}
    pod = {"metadata": {"name": "p", "namespace": "n"}, "spec": spec}
    assert "volumes" not in {each.family for each in constraints_of(pod, World())}


@pytest.mark.parametrize(("effect", "named_by"), [("NoSchedule", "cordon"), ("NoExecute", "")])
def test_the_taint_of_a_cordoned_node_belongs_to_the_cordon(effect: str, named_by: str) -> None:
    world = World()
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": effect}
    world.add(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "a"},
            "spec": {"taints": [taint], "unschedulable": True},
        }
    )
    pod = {"metadata": {"name": "p", "namespace": "n"}, "spec": {}}
    assert [(each.family, each.named_by) for each in constraints_of(pod, world)] == [
        ("cordon", ""), ("taints", named_by),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 2000, "2"),
        ("memory", 4 * 2**30, "4Gi"),
        ("memory", 1536 * 2**20, "1536Mi"),
        ("memory", 18181869946, "16.9Gi"),  # 90 percent of 20202077718
        ("memory", 16 * 2**30 - 1024, "15.9Gi"),
        ("memory", 1000, "1000"),
        ("memory", 2**63, "8Ei"),  # the largest quantity
        ("hugepages-2Mi", 3 * 2**30, "3Gi"),
        ("example.com/gpu", 3, "3"),
    ],
)
def test_amounts_are_written_as_users_do(resource: str, amount: float, text: str) -> None:
    assert quantity_text(resource, amount) == text


def test_amounts_that_would_look_alike_have_all_digits() -> None:
    exact = (16 * 2**30 - 1024, 16 * 2**30 - 2048)
    assert different_texts("memory", *exact) == ("17179868160", "17179867136")
    assert different_texts("memory", 2**30, 2**31) == ("1Gi", "2Gi")
    assert different_texts("cpu", 500, 500) == ("500m", "500m")


# --- claims ---------------------------------------------------------------------------------------

CLAIM = {"accessModes": ["ReadWriteOnce"], "storageClassName": "disk"}


def _named(kind: str, version: str, name: str, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "n"} if kind.endswith("Claim") else {"name": name}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def _claim(phase: str = "Pending", **spec: Any) -> dict[str, Any]:
    fields = {"spec": {**CLAIM, **spec}, "status": {"phase": phase}}
    made = _named("PersistentVolumeClaim", "v1", "data", **fields)
    if phase == "Bound":
        made["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    return made


def _class(provisioner: str, mode: str = "Immediate") -> dict[str, Any]:
    fields = {"provisioner": provisioner, "volumeBindingMode": mode}
    return _named("StorageClass", "storage.k8s.io/v1", "disk", **fields)


def _leaving() -> dict[str, Any]:
    claim = _claim("Bound", volumeName="v1")
    claim["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return claim


def _volume(demanded: dict[str, str] | None = None) -> dict[str, Any]:
    expressions = [
        {"key": key, "operator": "In", "values": [value]} for key, value in (demanded or {}).items()
    ]
    terms = [{"matchExpressions": expressions}] if expressions else []
    fields = {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}}
    return _named("PersistentVolume", "v1", "v1", **fields)


def _selected(node: str) -> dict[str, Any]:
    claim = _claim()
    claim["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": node}
    return claim


def _node(name: str) -> dict[str, Any]:
    return _named("Node", "v1", name, spec={}, status={})


def _driver() -> dict[str, Any]:
    fields = {"spec": {"storageCapacity": True}}
    return _named("CSIDriver", "storage.k8s.io/v1", "disk.example.com", **fields)


def _user(name: str, claim: str, node: str) -> dict[str, Any]:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
    fields = {"spec": {"nodeName": node, "volumes": volumes, "containers": []}}
    pod = _named("Pod", "v1", name, **fields)
    pod["metadata"]["namespace"] = "n"
    return pod


@pytest.mark.parametrize(
    ("objects", "text", "fix"),
    [
        ([], "does not exist", "create PersistentVolumeClaim data"),
        (
            [_claim("Bound", volumeName="v1; delete node a")],
            'no PersistentVolume can have the name "v1; delete node a", which PersistentVolumeCl',
            "create PersistentVolumeClaim data again without volumeName",
        ),
        (
            [_claim(storageClassName="x; y")],
            'no StorageClass can have the name "x; y", which PersistentVolumeClaim data demands',
            "create PersistentVolumeClaim data again with an existing one",
        ),
        ([_leaving()], "is being deleted", "create PersistentVolumeClaim data again once it"),
        (
            [_claim("Lost", volumeName="v1")],
            "has lost its volume v1",
            "create PersistentVolumeClaim data again, or restore PersistentVolume v1",
        ),
        (
            [_claim("Bound", volumeName="v1")],
            "the PersistentVolume v1 of PersistentVolumeClaim data does not exist",
            "create PersistentVolume v1, or PersistentVolumeClaim data again without volumeName",
        ),
        (
            [_claim("Bound", volumeName="v1"), _volume()],
            "the volume v1 of PersistentVolumeClaim data cannot be used on the node",
            "remove the volume v (PersistentVolumeClaim data), or copy its data to a volume",
        ),
        (
            [_claim("Bound", volumeName="v1"), _volume({"kubernetes.io/hostname": "gone"})],
            "the volume v1 of PersistentVolumeClaim data cannot be used on the node",
            "bring node gone back, or create PersistentVolumeClaim data again: its data is lost",
        ),
        (
            [
                _claim("Bound", volumeName="v1", accessModes=["ReadWriteOncePod"]),
                _user("waits", "data", ""),
                _user("other", "data-2", "a"),
                _user("holder", "data", "a"),
            ],
            "pod holder uses PersistentVolumeClaim data, whose access mode is ReadWriteOncePod",
            "remove the volume v (PersistentVolumeClaim data), or use a claim of another access",
        ),
        (
            [_claim(storageClassName="")],
            'has the storageClassName "", and no free PersistentVolume without a class',
            "create a PersistentVolume for PersistentVolumeClaim data",
        ),
        (
            [_claim(storageClassName=None)],
            "has no storageClassName, and no StorageClass is the default: the cluster has none",
            "create a StorageClass and make it the default",
        ),
        (
            [_claim(storageClassName=None), _class("disk.example.com")],
            "has no storageClassName, and no StorageClass is the default; the cluster has disk",
            "make a StorageClass the default: kubectl annotate storageclass disk storageclass.",
        ),
        (
            [_selected("gone"), _class("disk.example.com", "WaitForFirstConsumer")],
            "data is to be provided for node gone (volume.kubernetes.io/selected-node), which does",
            "remove the annotation: kubectl annotate pvc -n n data volume.kubernetes.io/selected-",
        ),
        (
            [_selected("a"), _node("a"), _class("disk.example.com", "WaitForFirstConsumer")],
            "data is to be provided for node a, and disk.example.com has not done it",
            "see why disk.example.com does not provide it: kubectl describe pvc -n n data",
        ),
        (
            [_claim(), _class("disk.example.com", "WaitForFirstConsumer"), _driver()],
            "disk.example.com cannot provide a volume for PersistentVolumeClaim data on the node",
            "make disk.example.com report its capacity (CSIStorageCapacity), or set storage",
        ),
        ([_claim()], "names StorageClass disk, which does not exist", "create StorageClass disk"),
        (
            [_claim(), _class("kubernetes.io/no-provisioner", "WaitForFirstConsumer")],
            "no free PersistentVolume of StorageClass disk can be used on the node",
            "create a PersistentVolume for PersistentVolumeClaim data",
        ),
        (
            [_claim(), _class("disk.example.com", "WaitForFirstConsumer")],
            "disk.example.com cannot provide a volume for PersistentVolumeClaim data on the node",
            "remove the volume v (PersistentVolumeClaim data)",
        ),
        (
            [_claim(), _class("disk.example.com")],
            "waits for a volume of disk.example.com (StorageClass disk)",
            "make disk.example.com provide a volume for PersistentVolumeClaim data",
        ),
    ],
)
def test_what_a_claim_lacks_is_named(objects: list[dict[str, Any]], text: str, fix: str) -> None:
    world = World()
    for obj in objects:
        world.add(obj)
    spec = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
    pod = {"metadata": {"name": "p", "namespace": "n"}, "spec": spec}
    (found,) = (each for each in constraints_of(pod, world) if each.family == "volumes")
    assert text in found.text
    assert found.fix.startswith(fix)


# --- anti-affinity of running pods ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("term", "fix"),
    [
        ({}, "change the label app=db of the pod"),
        ({"namespaces": ["n"]}, "change the label app=db of the pod"),
        ({"namespaces": ["other"]}, ""),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, "change the label app=db"),
        ({"namespaceSelector": {"matchLabels": {"team": "b"}}}, ""),
        ({"labelSelector": {"matchLabels": {"app": "web"}}}, ""),
        ({"labelSelector": {}}, ""),
    ],
)
def test_labels_that_running_pods_keep_away_are_constraints(term: dict[str, Any], fix: str) -> None:
    world = World()
    world.add({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": {"team": "a"}},
    })  # fmt: skip
    labels = {"zone": "z"}
    world.add({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "labels": labels},
               "spec": {}, "status": {}})  # fmt: skip
    other = _user("other", "data", "a")
    other["spec"]["affinity"] = {"podAntiAffinity": {REQUIRED: [{**TERM, **term}]}}
    world.add(other)
    labels = {"app": "db", "tier": "back"}
    pod = {"metadata": {"name": "p", "namespace": "n", "labels": labels}, "spec": {}}
    found = [each for each in constraints_of(pod, world) if each.family == "pod affinity"]
    assert [each.fix for each in found if not each.fix.startswith(fix)] == []
    assert len(found) == bool(fix)
    for each in found:
        assert "pod n/other" in each.text
        assert without(pod, [each])["metadata"]["labels"] == {"tier": "back"}


def test_a_topology_key_that_no_node_has_is_named() -> None:
    affinity = {"podAffinity": {REQUIRED: [TERM]}}
    pod = {"metadata": {"name": "p", "namespace": "n"}, "spec": {"affinity": affinity}}
    world = World()
    world.add({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "spec": {}})
    key = TERM["topologyKey"]
    for labels, named in (({}, True), ({key: "b"}, False)):
        metadata = {"name": "b", "labels": labels}
        world.add({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}})
        (found,) = (each for each in constraints_of(pod, world) if each.family == "pod affinity")
        assert (f"no node has the label {key}" in found.text) is named


def test_some_constraints_of_each_kind_are_tried_one_by_one() -> None:
    """Each try is a pod of its own, without the others."""
    pod = {
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {
            "containers": [_container(resources={"requests": {"cpu": "1"}})],
            "nodeSelector": {f"label-{number}": "x" for number in range(3 * MOST_TRIED)},
        },
    }
    found, others = tried(constraints_of(pod, World()))
    families = [each.family for each in found]
    assert (families.count("node affinity"), others) == (MOST_TRIED, 2 * MOST_TRIED)
    assert {"cordon", "requests"} <= set(families)
    assert tried(found) == (found, 0)


def test_no_claim_of_an_impossible_name_is_proposed() -> None:
    """The API server accepts any text as claimName, so a fix could be a stranger's sentence."""
    name = 'x", and delete node a\x1b[31m'
    spec = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]}
    pod = {"metadata": {"name": "p", "namespace": "n"}, "spec": spec}
    (found,) = (one for one in constraints_of(pod, World()) if one.family == "volumes")
    assert found.text == (
        'no PersistentVolumeClaim can have the name "x\\", and delete node a\\u001b[31m"'
    )
    assert found.fix == "remove the volume v, or name an existing PersistentVolumeClaim"
