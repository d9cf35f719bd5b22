"""What about a node keeps a volume from it: each fact of a world, with its figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from kube_scheduler_operator.simulate import volume_facts
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
    expected = f"the volume v of PersistentVolumeClaim c demands {ZONE}=west"
    assert bound(found, "b") == expected
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
            "d reports no capacity of StorageClass fast for the node (CSIStorageCapacity)",
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
