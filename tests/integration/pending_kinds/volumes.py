"""Volumes and their claims."""

from __future__ import annotations

from typing import Any, Final

from .situation import HOST, NAMESPACE, ZONE, Object, Situation
from .table import adds_node, delete_the_first, ignore, kind, requests, without

CSI: Final = "/apis/storage.k8s.io/v1"


@kind("PersistentVolumeClaim {}-data does not exist", "create PersistentVolumeClaim {}-data",
      lambda s: ignore(s.bound_claim(HOST, s.name("a"))))  # fmt: skip
def a_claim_that_does_not_exist(situation: Situation) -> None:
    situation.uses_claim()


@kind("waits for a volume of disk.example.com (StorageClass {}-disk)",
      "make disk.example.com provide a volume for PersistentVolumeClaim {}-data: kubectl describe "
      "pvc -n pending-kinds {}-data", lambda s: ignore(
          s.reserved_volume(HOST, s.name("a"))))  # fmt: skip
def a_claim_that_waits_for_its_volume(situation: Situation) -> None:
    situation.storage_class("disk.example.com", "Immediate")
    situation.claim()
    situation.uses_claim()


@kind("StorageClass {}-gone, which does not exist", "create StorageClass {}-gone")
def a_storage_class_that_does_not_exist(situation: Situation) -> None:
    situation.claim("gone")
    situation.uses_claim()


@kind("no free PersistentVolume of StorageClass {}-disk can be used on the node for "
      "PersistentVolumeClaim {}-data: none exists", "create a PersistentVolume",
      lambda s: ignore(s.volume(HOST, s.name("b"))))  # fmt: skip
def a_claim_without_a_volume_and_a_provisioner(situation: Situation) -> None:
    situation.storage_class("kubernetes.io/no-provisioner", "WaitForFirstConsumer")
    situation.claim()
    situation.uses_claim()


@kind("no free PersistentVolume of StorageClass {}-disk", "request 1 of cpu instead of 2",
      requests(cpu="1"), first="create a PersistentVolume")  # fmt: skip
def the_only_free_volume_is_on_a_full_node(situation: Situation) -> None:
    situation.storage_class("kubernetes.io/no-provisioner", "WaitForFirstConsumer")
    situation.volume(HOST, situation.name("a"))
    situation.claim()
    situation.uses_claim()
    situation.runs(0, "3", app="other")
    situation.requests(cpu="2")


@kind("the volume {}-volume of PersistentVolumeClaim {}-data demands",
      "request 1 of cpu instead of 2", requests(cpu="1"))  # fmt: skip
def a_volume_on_a_full_node(situation: Situation) -> None:
    situation.bound_claim(HOST, situation.name("a"))
    situation.runs(0, "3", app="other")
    situation.requests(cpu="2")


@kind(
    f"the volume {{}}-volume of PersistentVolumeClaim {{}}-data demands {HOST}={{}}-gone, which no "
    "node has",
    "bring node {}-gone back",
    adds_node("gone", "x"),
)
def a_volume_on_a_node_that_is_gone(situation: Situation) -> None:
    situation.bound_claim(HOST, situation.name("gone"))


@kind(
    f"the volume {{}}-volume of PersistentVolumeClaim {{}}-data demands {ZONE}=x, and the node has "
    f"{ZONE}=y",
    f"remove {ZONE}=y from the nodeSelector",
    without("nodeSelector"),
)
def a_volume_in_another_zone(situation: Situation) -> None:
    situation.bound_claim(ZONE, "x")
    situation.spec["nodeSelector"] = {ZONE: "y"}


@kind("uses PersistentVolumeClaim {}-data, whose access mode is ReadWriteOncePod",
      "delete pod {}-on-1-0", delete_the_first)  # fmt: skip
def a_volume_for_one_pod_alone(situation: Situation) -> None:
    situation.bound_claim(HOST, situation.name("b"), mode="ReadWriteOncePod")
    situation.runs(1, volumes=situation.spec["volumes"])


@kind("PersistentVolumeClaim {}-data has no storageClassName, and no StorageClass is the default",
      "make a StorageClass the default: kubectl annotate storageclass",
      lambda s: s.patches.append((f"{CSI}/storageclasses/{s.name('disk')}", {"metadata": {
          "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}})))  # fmt: skip
def a_claim_without_a_class_where_none_is_the_default(situation: Situation) -> None:
    situation.storage_class("kubernetes.io/no-provisioner", "WaitForFirstConsumer")
    situation.volume(HOST, situation.name("a"))
    situation.claim()["spec"].pop("storageClassName")
    situation.uses_claim()


@kind("no free PersistentVolume without a class can be used on the node for "
      "PersistentVolumeClaim {}-data"
      ": none exists",
      "create a PersistentVolume for PersistentVolumeClaim {}-data",
      lambda s: ignore(s.volume(HOST, s.name("a"), storageClassName="")))  # fmt: skip
def a_claim_without_a_class_by_intention(situation: Situation) -> None:
    situation.claim(storageClassName="")
    situation.uses_claim()


@kind("no free PersistentVolume of StorageClass {}-disk can be used on the node for "
      "PersistentVolumeClaim {}-data: not {}-volume (1Gi, and the claim requests 2Gi)",
      "create a PersistentVolume", lambda s: ignore(
          s.volume(HOST, s.name("b"), name="large", capacity={"storage": "2Gi"})))  # fmt: skip
def a_free_volume_that_is_too_small(situation: Situation) -> None:
    situation.storage_class("kubernetes.io/no-provisioner", "WaitForFirstConsumer")
    situation.volume(HOST, situation.name("a"))
    situation.claim(resources={"requests": {"storage": "2Gi"}})
    situation.uses_claim()


@kind("{}-volume (ReadWriteOnce, and the claim demands ReadWriteMany)",
      "create a PersistentVolume", lambda s: ignore(
          s.volume(HOST, s.name("b"), name="shared", mode="ReadWriteMany")))  # fmt: skip
def a_free_volume_of_another_access_mode(situation: Situation) -> None:
    situation.storage_class("kubernetes.io/no-provisioner", "WaitForFirstConsumer")
    situation.volume(HOST, situation.name("a"))
    situation.claim(mode="ReadWriteMany")
    situation.uses_claim()


@kind("{}-volume-other (of PersistentVolumeClaim pending-kinds/{}-other)",
      "create a PersistentVolume",
      lambda s: ignore(s.volume(HOST, s.name("b"), name="free")))  # fmt: skip
def a_volume_that_is_reserved_for_another_claim(situation: Situation) -> None:
    situation.storage_class("kubernetes.io/no-provisioner", "WaitForFirstConsumer")
    situation.reserved_volume(HOST, situation.name("a"), claim="other")
    situation.claim()
    situation.uses_claim()


@kind("{}-volume (without the labels speed=fast of the claim's selector)",
      "create a PersistentVolume", lambda s: s.volume(HOST, s.name("b"), name="fast")[
          "metadata"].update(labels={"speed": "fast"}))  # fmt: skip
def a_claim_for_volumes_with_labels(situation: Situation) -> None:
    situation.storage_class("kubernetes.io/no-provisioner", "WaitForFirstConsumer")
    situation.volume(HOST, situation.name("a"))
    situation.claim(selector={"matchLabels": {"speed": "fast"}})
    situation.uses_claim()


@kind("the PersistentVolume {}-volume of PersistentVolumeClaim {}-data does not exist",
      "create PersistentVolume {}-volume",
      lambda s: ignore(s.reserved_volume(HOST, s.name("a"))))  # fmt: skip
def a_claim_for_a_volume_that_does_not_exist(situation: Situation) -> None:
    situation.claim(volumeName=situation.name("volume"))
    situation.uses_claim()


@kind(f"the volume {{}}-volume-more of PersistentVolumeClaim {{}}-more demands {ZONE}=y, and the "
      f"node has {ZONE}=x", "remove the volume more (PersistentVolumeClaim {}-more), or copy its "
      "data",
      lambda s: s.uses_claim("data"))  # fmt: skip
def two_volumes_in_different_zones(situation: Situation) -> None:
    situation.bound_claim(ZONE, "x")
    situation.bound_claim(ZONE, "y", claim="more")
    situation.uses_claim("data", "more")


@kind(
    f"the volume {{}}-volume of PersistentVolumeClaim {{}}-data demands {ZONE}=z, which no node "
    "has",
    f"add a node with the label {ZONE}=z",
    adds_node("d", "z"),
)
def a_volume_in_a_zone_without_nodes(situation: Situation) -> None:
    situation.bound_claim(ZONE, "z")


@kind(
    f"the volume {{}}-volume of PersistentVolumeClaim {{}}-data is in z ({ZONE}), the node in x",
    f"add a node with the label {ZONE}=z",
    adds_node("d", "z"),
)
def a_volume_with_the_label_of_a_zone(situation: Situation) -> None:
    volume = situation.bound_claim(HOST, *(situation.name(name) for name in "abcd"))
    volume["metadata"]["labels"] = {ZONE: "z"}


def _provides(situation: Situation, size: str = "1Gi", **fields: Any) -> None:
    """A class whose driver reports capacities, and a claim of it."""
    driver = situation.name("csi")
    situation.add(f"{CSI}/csidrivers", "csi", spec={"storageCapacity": True})
    situation.storage_class(driver, "WaitForFirstConsumer", **fields)
    situation.claim(resources={"requests": {"storage": size}})
    situation.uses_claim()


def _capacity(situation: Situation, amount: str) -> None:
    situation.add(
        f"{CSI}/namespaces/{NAMESPACE}/csistoragecapacities",
        "capacity",
        storageClassName=situation.name("disk"),
        capacity=amount,
        nodeTopology={},
    )


def _uses(situation: Situation, name: str, storage_class: str, **spec: Any) -> None:
    situation.claim(storage_class, name=name, **spec)
    situation.uses_claim(name)


def _uses_wide_class(situation: Situation) -> None:
    content: Object = {
        "provisioner": "disk.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    situation.add(f"{CSI}/storageclasses", "wide", **content)
    _uses(situation, "more", "wide")


def _create_again(situation: Situation) -> None:
    path = situation.path_of(situation.object("persistentvolumeclaims"), "persistentvolumeclaims")
    situation.patches.append((path, {"metadata": {"finalizers": None}}))
    reference = {"namespace": NAMESPACE, "name": situation.name("data")}
    situation.volume(HOST, situation.name("b"), name="again", claimRef=reference)
    situation.claim(volumeName=situation.name("again"))


def _creates_class(situation: Situation) -> None:
    content: Object = {
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    situation.add(f"{CSI}/storageclasses", "gone", **content)
    situation.volume(HOST, situation.name("a"), storageClassName=situation.name("gone"))


@kind(
    "{}-csi reports no capacity of StorageClass {}-disk for the node, nor for any other node",
    "make {}-csi report its capacity (CSIStorageCapacity)",
    lambda s: _capacity(s, "5Gi"),
)
def a_driver_that_reports_no_capacity(situation: Situation) -> None:
    _provides(situation)


@kind("{}-csi has 5Gi free of StorageClass {}-disk for the node, and PersistentVolumeClaim {}-data "
      "wants 10Gi", "request 5Gi instead of 10Gi in PersistentVolumeClaim {}-data",
      lambda s: _uses(s, "small", "disk", resources={"requests": {"storage": "5Gi"}}))  # fmt: skip
def a_driver_with_too_little_capacity(situation: Situation) -> None:
    _provides(situation, "10Gi")
    _capacity(situation, "5Gi")


@kind(f"StorageClass {{}}-disk provides volumes only where {ZONE} is z",
      "create StorageClass {}-disk again with the labels of these nodes in allowedTopologies, or "
      "use another class",
      lambda s: _uses_wide_class(s))  # fmt: skip
def a_class_for_another_zone(situation: Situation) -> None:
    expressions = [{"key": ZONE, "values": ["z"]}]
    topology = {"matchLabelExpressions": expressions}
    situation.storage_class(
        "disk.example.com", "WaitForFirstConsumer", allowedTopologies=[topology]
    )
    situation.claim()
    situation.uses_claim()


@kind("the volume of PersistentVolumeClaim {}-data is to be provided for node gone "
      "(volume.kubernetes.io/selected-node), which does not exist",
      "remove the annotation: kubectl annotate pvc -n pending-kinds {}-data", lambda s:
      s.patches.append((s.path_of(s.object("persistentvolumeclaims"), "persistentvolumeclaims"), {
          "metadata": {"annotations": {"volume.kubernetes.io/selected-node": None}}})))  # fmt: skip
def a_claim_whose_selected_node_is_gone(situation: Situation) -> None:
    situation.storage_class("disk.example.com", "WaitForFirstConsumer")
    annotations = {"volume.kubernetes.io/selected-node": "gone"}
    situation.claim()["metadata"]["annotations"] = annotations
    situation.uses_claim()


@kind("PersistentVolumeClaim {}-data is being deleted",
      "create PersistentVolumeClaim {}-data again once it is gone",
      lambda s: _create_again(s))  # fmt: skip
def a_claim_that_is_being_deleted(situation: Situation) -> None:
    situation.bound_claim(HOST, situation.name("b"))
    claim = situation.object("persistentvolumeclaims")
    claim["metadata"]["finalizers"] = ["example.com/hold"]
    situation.terminating.append(situation.path_of(claim, "persistentvolumeclaims"))


@kind(
    "PersistentVolumeClaim {}-waiting-scratch names StorageClass {}-gone, which does not exist",
    "create StorageClass {}-gone",
    lambda s: _creates_class(s),
)
def an_ephemeral_volume_of_a_class_that_does_not_exist(situation: Situation) -> None:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": situation.name("gone"),
        "resources": {"requests": {"storage": "1Gi"}},
    }
    template = {"volumeClaimTemplate": {"spec": spec}}
    situation.spec["volumes"] = [{"name": "scratch", "ephemeral": template}]


def _of_driver(situation: Situation, *drivers: Object) -> str:
    """A bound claim of a CSI driver's volume on the first node, which has these drivers."""
    name = situation.name("csi")
    csi = {"driver": name, "volumeHandle": "new"}
    situation.bound_claim(HOST, situation.name("a"), csi=csi, local=None)
    situation.add(f"{CSI}/csinodes", "a", spec={"drivers": list(drivers)})
    return name


def _detached(situation: Situation) -> None:
    situation.deletions.append(f"{CSI}/volumeattachments/{situation.name('left')}")


@kind("1 of 1 volumes of the CSI driver {}-csi are attached to the node, although no pod there "
      "uses that of VolumeAttachment {}-left",
      "see why a volume that no pod uses is still attached to {}-a", _detached)  # fmt: skip
def a_volume_that_is_still_attached(situation: Situation) -> None:
    driver = {"name": situation.name("csi"), "nodeID": "a", "allocatable": {"count": 1}}
    name = _of_driver(situation, {**driver, "topologyKeys": []})
    csi = {"driver": name, "volumeHandle": "old"}
    old = situation.volume(HOST, situation.name("a"), name="old", csi=csi, local=None)
    source = {"persistentVolumeName": old["metadata"]["name"]}
    spec = {"attacher": name, "nodeName": situation.name("a"), "source": source}
    situation.add(f"{CSI}/volumeattachments", "left", spec=spec)


def _installed(situation: Situation) -> None:
    driver = {"name": situation.name("csi"), "nodeID": "a", "topologyKeys": []}
    path = f"{CSI}/csinodes/{situation.name('a')}"
    situation.patches.append((path, {"spec": {"drivers": [driver]}}))


@kind("the CSI driver {}-csi is not installed on the node", "make the CSI driver {}-csi run",
      _installed, since=37, retried_late_since=37)  # fmt: skip
def a_driver_that_does_not_run_on_the_node(situation: Situation) -> None:
    _of_driver(situation)
    situation.add(f"{CSI}/csidrivers", "csi", spec={"preventPodSchedulingIfMissing": True})
