"""Clusters that people have reported, rebuilt small: `why` names what they found at last.

The cluster is in files and the kube-scheduler is real.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest

from .test_why import HOST, ZONE, Files, Object, node, pod
from .test_why_changes import Ask
from .test_why_changes import why as why_fixture

pytestmark = [pytest.mark.presubmit, pytest.mark.timeout(180, func_only=True)]

why = why_fixture
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
GROUP: Final = "leaderworkerset.sigs.k8s.io/group-key"


@dataclass(frozen=True)
class Reported:
    """A world, and parts of a cause, of the first change, and of no sentence."""

    arrange: Callable[[Files], object]
    cause: str
    first: str
    never: tuple[str, ...] = ()
    nodes: tuple[str, ...] | None = None  # where it fits after the first change


def owned(made: Object, kind: str, name: str) -> Object:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": True}
    made["metadata"]["ownerReferences"] = [owner]
    return made


def workload(kind: str, name: str, **spec: Any) -> Object:
    selector = {"matchLabels": {"app": name}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": []}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": selector, "template": template, **spec},
    }


def _apart(key: str, **selector: Any) -> Object:
    return {"podAntiAffinity": {REQUIRED: [{"topologyKey": key, "labelSelector": selector}]}}


def _one_node(files: Files) -> None:
    for name in "bc":
        del files.objects["Node", name]


def _replicas_apart(files: Files) -> None:
    """nacos-group/nacos-k8s#328: three replicas and one node."""
    _one_node(files)
    rule = _apart(HOST, matchLabels={"app": "web"})
    files.add(workload("StatefulSet", "web"))
    files.add(owned(pod("web-0", nodeName="a", affinity=rule), "StatefulSet", "web"))
    owned(files.waiting, "StatefulSet", "web")["spec"]["affinity"] = rule


def _group_alone(name: str, group: str, **spec: Any) -> Object:
    own = {"matchExpressions": [{"key": GROUP, "operator": "In", "values": [group]}]}
    others = [
        {"key": GROUP, "operator": "Exists"},
        {"key": GROUP, "operator": "NotIn", "values": [group]},
    ]
    rules = {"podAffinity": {REQUIRED: [{"topologyKey": ZONE, "labelSelector": own}]}}
    rules |= _apart(ZONE, matchExpressions=others)
    made = owned(pod(name, affinity=rules, **spec), "StatefulSet", name)
    made["metadata"]["labels"][GROUP] = group
    return made


def _groups_in_every_zone(files: Files) -> None:
    """kubernetes-sigs/lws#539: groups that have their zones alone."""
    files.add(_group_alone("first", "8fb2", nodeName="a"))
    files.add(_group_alone("second", "77aa", nodeName="c"))
    files.add(_group_alone("waiting", "99cc"))


# --- volumes --------------------------------------------------------------------------------------

BOUND: Final = {"pv.kubernetes.io/bind-completed": "yes"}
DRIVER: Final = "csi.example.com"


def storage_class(mode: str = "WaitForFirstConsumer", provisioner: str = DRIVER) -> Object:
    fields = {"provisioner": provisioner, "volumeBindingMode": mode}
    return _storage("StorageClass", "std", **fields)


def _storage(kind: str, name: str, **fields: Any) -> Object:
    version = "storage.k8s.io/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields}


def claim(name: str, size: str = "10Gi", **spec: Any) -> Object:
    fields = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "std",
        "volumeMode": "Filesystem",
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": {}},
        "spec": {**fields, "resources": {"requests": {"storage": size}}, **spec},
        "status": {"phase": "Pending"},
    }


def bound(files: Files, name: str, key: str, value: str, **spec: Any) -> None:
    """A claim and its volume, which nodes with a label alone can use."""
    made = claim(name, volumeName=f"pv-{name}", **spec)
    made["metadata"]["annotations"] |= BOUND
    made["status"] = {"phase": "Bound"}
    files.add(made)
    files.add(volume(f"pv-{name}", name, f"uid-{name}", key, value, **spec))


def volume(name: str, holder: str, uid: str, key: str, value: str, **spec: Any) -> Object:
    reach = [{"key": key, "operator": "In", "values": [value]}]
    fields = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "std",
        "volumeMode": "Filesystem",
        "local": {"path": "/x"},
        "claimRef": {"namespace": "default", "name": holder, "uid": uid},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": reach}]}},
        **spec,
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
            "spec": fields, "status": {"phase": "Bound"}}  # fmt: skip


def uses(made: Object, *claims: str) -> Object:
    made["spec"]["volumes"] = [
        {"name": name.partition("-")[0], "persistentVolumeClaim": {"claimName": name}}
        for name in claims
    ]
    return made


def _claim_of_a_stateful_set_is_gone(files: Files) -> None:
    """kubernetes/kubernetes#113139 and #89910: its Pod was deleted before its claim."""
    files.add(storage_class())
    owned(uses(files.waiting, "data-waiting"), "StatefulSet", "db")


def _drained_node_of_a_local_volume(files: Files) -> None:
    """rancher/local-path-provisioner#476: the Pod is to move, not its data."""
    files.add(storage_class())
    files.nodes[2]["spec"]["unschedulable"] = True
    bound(files, "data-waiting", HOST, "c")
    owned(uses(files.waiting, "data-waiting"), "StatefulSet", "db")


def _volumes_provided_before_the_pod(files: Files) -> None:
    """Orange-OpenSource/nifikop#73: two claims of a class with Immediate."""
    files.add(storage_class("Immediate"))
    bound(files, "data", ZONE, "x")
    bound(files, "logs", ZONE, "y")
    uses(files.waiting, "data", "logs")


def _more_volumes_than_a_node_takes(files: Files) -> None:
    """hetznercloud/csi-driver#240: one Pod with 17 claims, where a node takes 16."""
    files.add(storage_class())
    for name in "abc":
        driver = {"name": DRIVER, "nodeID": name, "allocatable": {"count": 2}, "topologyKeys": []}
        files.add(_storage("CSINode", name, spec={"drivers": [driver]}))
    names = ("one", "two", "three")
    for name in names:
        files.add(claim(name))
    uses(files.waiting, *names)


def _reports(files: Files, amount: str, **labels: str) -> None:
    files.add(storage_class())
    files.add(_storage("CSIDriver", DRIVER, spec={"storageCapacity": True}))
    report = _storage("CSIStorageCapacity", "report", storageClassName="std", capacity=amount)
    files.add({**report, "nodeTopology": {"matchLabels": labels}})


def _capacity_of_other_nodes(files: Files) -> None:
    """openebs/zfs-localpv#453: the topology of the reports is none of the nodes'."""
    _reports(files, "90Gi", **{"openebs.io/nodename": "a"})
    files.add(claim("data"))
    uses(files.waiting, "data")


def _two_claims_of_a_small_pool(files: Files) -> None:
    """minio/directpv#317: two claims of 12Gi each, and 6Gi."""
    _reports(files, "6Gi", **{HOST: "a"})
    files.add(claim("data", "12Gi"))
    files.add(claim("logs", "12Gi"))
    uses(files.waiting, "data", "logs")


def _released_volume_of_the_same_name(files: Files) -> None:
    """longhorn/longhorn#525: a claim that names the volume of a deleted one."""
    files.add(storage_class())
    files.add(claim("data", volumeName="pv"))
    files.add(volume("pv", "data", "before", HOST, "a"))
    uses(files.waiting, "data")


def _one_pod_alone_in_a_rollout(files: Files) -> None:
    """A Deployment with ReadWriteOncePod (as helmforgedev/charts#1294 with ReadWriteOnce)."""
    files.add(storage_class())
    bound(files, "data", HOST, "a", accessModes=["ReadWriteOncePod"])
    files.add(uses(pod("holder", nodeName="a"), "data"))
    uses(files.waiting, "data")


REPORTED: Final = [
    Reported(
        _claim_of_a_stateful_set_is_gone,
        "PersistentVolumeClaim data-waiting does not exist",
        "delete pod default/waiting: StatefulSet db creates it again",
        ("create PersistentVolumeClaim",),
    ),
    Reported(
        _drained_node_of_a_local_volume,
        "the volume pv-data-waiting of PersistentVolumeClaim data-waiting demands",
        "uncordon the node",
        ("remove the volume",),
    ),
    Reported(
        _volumes_provided_before_the_pod,
        "demands topology.kubernetes.io/zone=y, and the node has topology.kubernetes.io/zone=x",
        "create PersistentVolumeClaim logs again with a StorageClass whose volumeBindingMode is "
        "WaitForFirstConsumer",
        nodes=("a", "b"),
    ),
    Reported(
        _more_volumes_than_a_node_takes,
        f"the pod has 3 volumes of the CSI driver {DRIVER}, which attaches at most 2 to the node",
        "remove the volume one",
        ("add a node",),
    ),
    Reported(
        _capacity_of_other_nodes,
        "it reports some for openebs.io/nodename=a",
        f"make {DRIVER} report its capacity",
        ("remove the volume",),
    ),
    Reported(
        _two_claims_of_a_small_pool,
        f"{DRIVER} has 6Gi free of StorageClass std for the node, and PersistentVolumeClaim data",
        "request 3Gi instead of 12Gi in each of PersistentVolumeClaims data and logs",
        nodes=("a",),
    ),
    Reported(
        _released_volume_of_the_same_name,
        "PersistentVolumeClaim data names PersistentVolume pv and is not bound to it: pv (of an "
        "earlier PersistentVolumeClaim of the same name",
        "give PersistentVolume pv of an earlier claim of this name to this one",
        nodes=("a",),
    ),
    Reported(
        _one_pod_alone_in_a_rollout,
        "pod holder uses PersistentVolumeClaim data, whose access mode is ReadWriteOncePod",
        "delete pod holder",
        nodes=("a",),
    ),
    Reported(
        _replicas_apart,
        "pod default/web-0 with app=web runs on node a",
        "add a node like a",
        ("change the label", "has anti-affinity to pods"),
    ),
    Reported(
        _groups_in_every_zone,
        "pod default/second with",
        f"add a node like a with another value of {ZONE}",
        ("demands", "change the label"),
    ),
]


@pytest.mark.parametrize("reported", REPORTED, ids=lambda one: one.arrange.__name__.strip("_"))
def test_what_people_found_is_named(reported: Reported, why: Ask) -> None:
    files = Files()
    reported.arrange(files)
    document = why([*files.objects.values()])
    causes = [cause["text"] for group in document["groups"] for cause in group["causes"]]
    texts = [fix["text"] for fix in document["fixes"]]
    assert any(reported.cause in text for text in causes), causes
    assert reported.first in texts[0], texts
    for words in reported.never:
        assert not any(words in text for text in (*causes, *texts)), words
    if reported.nodes is not None:
        assert tuple(sorted(document["fixes"][0]["nodes"])) == reported.nodes


def test_an_anti_affinity_of_a_workload_ends_for_all_its_pods(why: Ask) -> None:
    files = Files()
    _replicas_apart(files)
    (fix,) = (fix for fix in why([*files.objects.values()])["fixes"] if fix["kind"] == "drop")
    assert fix["text"] == (
        "remove the pod anti-affinity to pods with app=web per kubernetes.io/hostname, then delete "
        "pod default/web-0, which has it as well"
    )
    where = "spec.template.spec.affinity.podAntiAffinity"
    assert [(edit["object"], edit["field"]) for edit in fix["patch"]] == [
        ("StatefulSet default/web", f"{where}.{REQUIRED}[0]"), ("Pod default/web-0", ""),
    ]  # fmt: skip


def test_a_namespace_that_kube_scheduler_counts_by_mistake_is_named(why: Ask) -> None:
    """kubernetes/kubernetes#141526; versions with its repair place the pod."""
    files = Files()
    _one_node(files)
    files.add(node("a", "x"))
    chosen = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["default"]}
    rule = _apart(HOST, matchLabels={"app": "web"})
    rule["podAntiAffinity"][REQUIRED][0]["namespaceSelector"] = {"matchExpressions": [chosen]}
    files.waiting["spec"]["affinity"] = rule
    files.running()
    files.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    document = why([*files.objects.values()])
    if not document["candidates"]:
        ((cause,),) = (group["causes"] for group in document["groups"])
        assert "but this version of kube-scheduler counts it" in cause["text"]
        first = document["fixes"][0]
        assert first["text"].startswith("set the namespaces of the pod anti-affinity to other")
        assert first["nodes"] == ["a"]


def test_a_volume_that_its_driver_has_not_provided_is_awaited(why: Ask) -> None:
    """openebs/lvm-localpv#31: the node that was chosen has too little room for the volume."""
    files = Files()
    files.add(storage_class())
    made = claim("data")
    made["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = "a"
    files.add(made)
    uses(files.waiting, "data")
    document = why([*files.objects.values()])
    assert document["outcome"] == "binding"
    (text,) = document["binding"]
    assert text.startswith(f"kube-scheduler has chosen node a and waits for {DRIVER} to provide")
