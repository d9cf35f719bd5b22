"""What about a node keeps a volume from it: each fact of a world, with its figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from kube_scheduler_operator.simulate import volume_facts
from kube_scheduler_operator.simulate.volume_repairs import claim_repairs
from kube_scheduler_operator.simulate.world import World

STORAGE = "storage.k8s.io/v1"
ZONE = "topology.kubernetes.io/zone"


def obj(kind: str, name: str, version: str = "v1", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, **fields.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def node(name: str, zone: str) -> dict[str, Any]:
    return obj("Node", name, metadata={"labels": {ZONE: zone}}, spec={}, status={})


def volume(
    name: str, *, demands: Iterable[str] = (), labels: Mapping[str, str] | None = None
) -> dict[str, Any]:
    spec: dict[str, Any] = {"csi": {"driver": "d", "volumeHandle": f"handle-{name}"}}
    if demands:
        zones = {"key": ZONE, "operator": "In", "values": list(demands)}
        terms = [{"matchExpressions": [zones]}]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    return obj("PersistentVolume", name, metadata={"labels": dict(labels or {})}, spec=spec)


def user(name: str, on: str) -> list[dict[str, Any]]:
    """A Pod on a node, with a claim and a volume of its own."""
    claim = obj("PersistentVolumeClaim", f"c-{name}", metadata={"namespace": "n"},
                spec={"volumeName": f"v-{name}"})  # fmt: skip
    source = {"name": "data", "persistentVolumeClaim": {"claimName": f"c-{name}"}}
    spec = {"nodeName": on, "containers": [], "volumes": [source]}
    pod = obj("Pod", name, metadata={"namespace": "n"}, spec=spec)
    return [volume(f"v-{name}"), claim, pod]


def limit(on: str, count: int | None) -> dict[str, Any]:
    driver: dict[str, Any] = {"name": "d", "nodeID": on}
    if count is not None:
        driver["allocatable"] = {"count": count}
    return obj("CSINode", on, STORAGE, spec={"drivers": [driver]})


def world(*objects: dict[str, Any]) -> World:
    made = World()
    for each in (node("a", "west"), node("b", "east"), *objects):
        assert made.add(each)
    made.complete()
    return made


def bound(found: World, on: str) -> str:
    return volume_facts.of_bound("v", "PersistentVolumeClaim c", found)(on)


def test_what_a_volume_demands_of_nodes() -> None:
    found = world(volume("v", demands=["west"]))
    assert bound(found, "a") == ""
    expected = f"the volume v of PersistentVolumeClaim c demands {ZONE}=west, and the node has "
    assert bound(found, "b") == f"{expected}{ZONE}=east"
    nowhere = world(volume("v", demands=["north", "south"]))
    assert bound(nowhere, "b") == (
        f"the volume v of PersistentVolumeClaim c demands {ZONE} in (north,south), which no node "
        "has"
    )


def test_the_zone_in_the_labels_of_a_volume() -> None:
    found = world(volume("v", labels={ZONE: "west__north"}))
    assert bound(found, "a") == ""
    expected = (
        f"the volume v of PersistentVolumeClaim c is in west__north ({ZONE}), the node in east"
    )
    assert bound(found, "b") == expected


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (3, ""),
        (2, "2 of 2 volumes of the CSI driver d are attached to the node"),
        (0, "2 of 0 volumes of the CSI driver d are attached to the node"),
        (None, ""),
    ],
)
def test_the_number_of_volumes_that_a_driver_attaches(count: int | None, expected: str) -> None:
    users = [*user("p", "a"), *user("q", "a"), *user("r", "b")]
    found = world(volume("v"), *users, limit("a", count), limit("b", 2))
    assert bound(found, "a") == expected
    assert bound(found, "b") == ""


def attachment(of: str, on: str) -> dict[str, Any]:
    spec = {"attacher": "d", "nodeName": on, "source": {"persistentVolumeName": f"v-{of}"}}
    return obj("VolumeAttachment", f"att-{of}", STORAGE, spec=spec)


def test_an_attachment_counts_until_it_ends_and_that_of_no_pod_is_named() -> None:
    objects = [volume("v"), volume("v-old"), *user("x", "a"), attachment("x", "a")]
    both = "2 of 2 volumes of the CSI driver d are attached to the node"
    full = world(*objects, attachment("old", "a"), limit("a", 2), limit("b", 1))
    assert (
        bound(full, "a") == f"{both}, although no pod there uses that of VolumeAttachment att-old"
    )
    assert volume_facts.left_attachments("d", full) == [("att-old", "a")]
    assert bound(world(*objects, limit("a", 2)), "a") == ""
    # Without the attachments of no pod, the node has no place either.
    over = world(*objects, attachment("old", "a"), limit("a", 1))
    assert volume_facts.left_attachments("d", over) == []


def test_a_volume_of_a_node_by_its_name_is_of_every_node() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["a"]}
    made = user("x", "b")
    made[0]["spec"]["nodeAffinity"] = {
        "required": {"nodeSelectorTerms": [{"matchFields": [field]}]}
    }
    (note,) = volume_facts.fields_without_effect(made[2], world(*made))
    assert note.startswith("PersistentVolume v-x demands a node by matchFields, which kube-sch")
    assert list(volume_facts.fields_without_effect(made[2], world(*user("x", "b")))) == []


def test_a_driver_that_has_to_run_on_the_node_of_its_volumes() -> None:
    demands = obj("CSIDriver", "d", STORAGE, spec={"preventPodSchedulingIfMissing": True})
    found = world(volume("v"), demands, limit("a", None))
    assert bound(found, "a") == ""
    assert bound(found, "b") == (
        "the CSI driver d is not installed on the node: CSINode b does not list it"
    )
    assert volume_facts.without_driver("d", found) == ["b"]
    assert bound(world(volume("v"), obj("CSIDriver", "d", STORAGE, spec={})), "b") == ""


def test_a_volume_that_does_not_exist() -> None:
    expected = "the PersistentVolume v of PersistentVolumeClaim c does not exist"
    assert bound(world(), "a") == expected


# --- volumes that a driver would provide ----------------------------------------------------------

CLAIM = obj("PersistentVolumeClaim", "c", metadata={"namespace": "n"},
            spec={"resources": {"requests": {"storage": "10Gi"}}})  # fmt: skip


def provided(*objects: dict[str, Any], on: str = "a", **fields: Any) -> str:
    storage_class = obj("StorageClass", "fast", STORAGE, provisioner="d", **fields)
    return volume_facts.of_class(CLAIM, storage_class, world(*objects))(on)


def capacity(zone: str, **sizes: str) -> dict[str, Any]:
    topology = {"matchLabels": {ZONE: zone}}
    metadata = {"namespace": "n"}
    return obj("CSIStorageCapacity", f"in-{zone}-{len(sizes)}", STORAGE, metadata=metadata,
               storageClassName="fast", nodeTopology=topology, **sizes)  # fmt: skip


def reporting(*, capacities: bool) -> dict[str, Any]:
    return obj("CSIDriver", "d", STORAGE, spec={"storageCapacity": capacities})


def test_where_a_class_provides_volumes() -> None:
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["east", "north"]}]}]
    expected = f"StorageClass fast provides volumes only where {ZONE} is east or north"
    assert provided(allowedTopologies=allowed) == expected
    assert provided(allowedTopologies=allowed, on="b") == ""


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([], ""),
        ([reporting(capacities=False)], ""),
        (
            [reporting(capacities=True)],
            "d reports no capacity of StorageClass fast for the node, nor for any other node "
            "(CSIStorageCapacity)",
        ),
        (
            [reporting(capacities=True), capacity("east", capacity="20Gi")],
            "d reports no capacity of StorageClass fast for the node (CSIStorageCapacity); it "
            f"reports some for {ZONE}=east",
        ),
        ([reporting(capacities=True), capacity("west", capacity="10Gi")], ""),
        (
            [reporting(capacities=True), capacity("west", capacity="6Gi")],
            "d has 6Gi free of StorageClass fast for the node, and PersistentVolumeClaim c wants "
            "10Gi",
        ),
        (
            [
                reporting(capacities=True),
                capacity("west", capacity="40Gi", maximumVolumeSize="8Gi"),
                capacity("west", capacity="6Gi"),
            ],
            "d has at most 8Gi in one volume of StorageClass fast for the node, and "
            "PersistentVolumeClaim c wants 10Gi",
        ),
        ([reporting(capacities=True), capacity("west", capacity="much")],
         "d has much free of StorageClass fast for the node, and PersistentVolumeClaim c wants "
         "10Gi"),
    ],
)  # fmt: skip
def test_the_capacity_that_a_driver_reports(objects: list[Any], expected: str) -> None:
    assert provided(*objects) == expected


# --- volumes that exist ---------------------------------------------------------------------------


def static(name: str = "v", labels: Mapping[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    fields = {
        "storageClassName": "local",
        "capacity": {"storage": "2Gi"},
        "accessModes": ["ReadWriteOnce"],
        **spec,
    }
    made = volume(name, labels=labels)
    return {**made, "spec": {**made["spec"], **fields}}


def claimed(storage_class: str | None = "local", **spec: Any) -> dict[str, Any]:
    fields = {
        "resources": {"requests": {"storage": "2Gi"}},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        **spec,
    }
    return obj("PersistentVolumeClaim", "data", metadata={"namespace": "n"}, spec=fields)


@pytest.mark.parametrize(
    ("existing", "claim", "text"),
    [
        ([], {}, ""),
        ([static(claimRef={"namespace": "n", "name": "other"})], {},
         "v (of PersistentVolumeClaim n/other)"),
        ([static(claimRef={"namespace": "n", "name": "data", "uid": "before"})], {},
         "v (of an earlier PersistentVolumeClaim of the same name)"),
        ([static()], {"resources": {"requests": {"storage": "3Gi"}}},
         "v (2Gi, and the claim requests 3Gi)"),
        ([static()], {"accessModes": ["ReadWriteMany"]},
         "v (ReadWriteOnce, and the claim demands ReadWriteMany)"),
        ([static()], {"selector": {"matchLabels": {"speed": "fast"}}},
         "v (without the labels speed=fast of the claim's selector)"),
        ([static(volumeMode="Block")], {}, "v (volumeMode Block)"),
        ([static(nodeAffinity=volume("w", demands=["east"])["spec"]["nodeAffinity"])], {},
         f"v (its nodeAffinity demands {ZONE}=east)"),
        ([static(storageClassName="other")], {}, ""),
        ([static(f"v{number}", volumeMode="Block") for number in range(9)], {},
         "v0 (volumeMode Block); not v1 (volumeMode Block); not v2 (volumeMode Block); "
         "not the others"),
    ],
)  # fmt: skip
def test_why_volumes_that_exist_are_not_bound(
    existing: list[Any], claim: dict[str, Any], text: str
) -> None:
    found = volume_facts.of_free(claimed(**claim), "local", world(*existing))("a")
    start = "no free PersistentVolume of StorageClass local can be used on the node for "
    there = f"not {text}" if text else "none exists"
    assert found == f"{start}PersistentVolumeClaim data: {there}"


def test_the_labels_that_a_volume_demands_and_no_node_has() -> None:
    cluster = world()
    missing = volume_facts.missing_labels
    assert missing(volume("v", demands=["south"]), cluster) == {ZONE: ["south"]}
    assert missing(volume("v", demands=["south", "west"]), cluster) == {}
    assert missing(volume("v", labels={ZONE: "south__north"}), cluster) == {
        ZONE: ["south", "north"]
    }


# --- what keeps the volume ------------------------------------------------------------------------


def repairs(claim: dict[str, Any], *objects: dict[str, Any]) -> list[Any]:
    pod = obj("Pod", "p", metadata={"namespace": "n"}, spec={"volumes": [
        {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]})  # fmt: skip
    found = world(claim, *objects)
    return [(one, pod) for one in claim_repairs(pod, "v", "data", found, lambda pod: None)]


def test_a_node_is_added_where_a_volume_can_be_used() -> None:
    claim = claimed(volumeName="pv")
    claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    ((repair, _),) = repairs(claim, volume("pv", demands=["south"]))
    assert repair.text == f"add a node with the label {ZONE}=south"
    assert repairs(claim, volume("pv", demands=["west"])) == []


def test_a_claim_is_made_smaller_and_a_class_wider() -> None:
    late = {"volumeBindingMode": "WaitForFirstConsumer", "provisioner": "d"}
    topology = {"matchLabelExpressions": [{"key": ZONE, "values": ["south"]}]}
    wide = obj("StorageClass", "local", STORAGE, **late, allowedTopologies=[topology])
    size = obj("CSIStorageCapacity", "c", STORAGE, metadata={"namespace": "n"},
               storageClassName="local", capacity="1Gi")  # fmt: skip
    (wider, pod), (smaller, _) = repairs(claimed(), wide, size)
    assert wider.text == (
        "create StorageClass local again with the labels of these nodes in allowedTopologies, or "
        "use "
        "another class"
    )
    storage_class, claim = wider.objects
    assert "allowedTopologies" not in storage_class
    assert claim["spec"]["storageClassName"] == storage_class["metadata"]["name"]
    wider.change(pod)
    (source,) = pod["spec"]["volumes"]
    assert source["persistentVolumeClaim"] == {"claimName": claim["metadata"]["name"]}
    assert smaller.text.startswith("request 1Gi instead of 2Gi in PersistentVolumeClaim data")
    assert smaller.objects[0]["spec"]["resources"] == {"requests": {"storage": "1Gi"}}


@pytest.mark.parametrize("mode", ["Immediate", "WaitForFirstConsumer"])
def test_volumes_that_no_node_can_use_together_are_named_together(mode: str) -> None:
    storage_class = obj("StorageClass", "disk", STORAGE, volumeBindingMode=mode)
    ours, other = volume("v", demands=["north"]), volume("w", demands=["west"])
    ours["spec"]["storageClassName"] = "disk"
    found = world(ours, other, storage_class)
    others = {"w": "PersistentVolumeClaim d"}
    text = volume_facts.of_bound("v", "PersistentVolumeClaim c", found, others)("a")
    assert text.startswith(
        f"the volume v of PersistentVolumeClaim c demands {ZONE}=north, and the volume w of "
        f"PersistentVolumeClaim d demands {ZONE}=west: no node meets both"
    )
    assert text.endswith("(volumeBindingMode Immediate)") is (mode == "Immediate")
    alone = volume_facts.of_bound("v", "PersistentVolumeClaim c", found, {"v": "x"})("a")
    assert alone.endswith(f"demands {ZONE}=north, which no node has")
