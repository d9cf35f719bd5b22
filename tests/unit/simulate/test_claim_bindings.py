"""Claims that are not bound to the volume that they name, and what a StatefulSet makes again."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.simulate.claim_bindings import (
    awaited_volumes,
    released_volumes,
    template_owner,
)
from kube_scheduler_operator.simulate.constraint import Constraint, Rank
from kube_scheduler_operator.simulate.constraints import constraints_of
from kube_scheduler_operator.simulate.volume_facts import too_many

from .test_volume_facts import STORAGE, claimed, limit, node, obj, static, volume, world

OWNER = {"kind": "StatefulSet", "name": "db", "controller": True}
LATE = {"volumeBindingMode": "WaitForFirstConsumer"}


def pod(claim: str = "data", **metadata: Any) -> dict[str, Any]:
    source = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    own = {"namespace": "n", **metadata}
    return obj("Pod", "db-0", metadata=own, spec={"volumes": [source], "containers": []})


def of(waiting: dict[str, Any], *objects: dict[str, Any]) -> Constraint:
    every = constraints_of(waiting, world(*objects))
    (found,) = (each for each in every if each.family == "volumes")
    return found


def own_claim(name: str = "data", **spec: Any) -> dict[str, Any]:
    made = claimed(**spec)
    made["metadata"] |= {"name": name, "uid": "now"}
    return made


@pytest.mark.parametrize(
    ("claim", "owners", "owner"),
    [
        ("data-db-0", [OWNER], "db"),
        ("data", [OWNER], ""),
        ("data-db-0", [], ""),
        ("data-db-0", [{**OWNER, "kind": "Job"}], ""),
    ],
)
def test_a_stateful_set_makes_claims_of_the_names_of_its_pods(
    claim: str, owners: list[Any], owner: str
) -> None:
    assert template_owner(pod(ownerReferences=owners), "data", claim) == owner


def test_a_claim_that_a_stateful_set_made_is_made_again_with_its_pod() -> None:
    found = of(pod("data-db-0", ownerReferences=[OWNER]))
    assert found.text == "PersistentVolumeClaim data-db-0 does not exist"
    assert found.fix == (
        "delete pod n/db-0: StatefulSet db creates it again, with PersistentVolumeClaim data-db-0"
    )
    assert tuple(found.others(["a"])) == ()


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"claimRef": {"namespace": "n", "name": "data", "uid": "before"}},
         ": pv (of an earlier PersistentVolumeClaim of the same name)"),
        ({"capacity": {"storage": "1Gi"}}, ": pv (1Gi, and the claim requests 2Gi)"),
        ({"storageClassName": "other"}, ': pv (StorageClass "other", and the claim has "local")'),
        ({}, ""),
    ],
)  # fmt: skip
def test_why_a_claim_is_not_bound_to_the_volume_that_it_names(
    spec: dict[str, Any], why: str
) -> None:
    found = of(pod(), own_claim(volumeName="pv"), static("pv", **spec))
    start = "PersistentVolumeClaim data names PersistentVolume pv and is not bound to it"
    assert found.text == f"{start}{why}"


def test_the_volume_of_an_earlier_claim_is_given_to_the_new_one_where_it_can_be_used() -> None:
    holder = {"namespace": "n", "name": "data", "uid": "before"}
    demands = volume("w", demands=["east"])["spec"]["nodeAffinity"]
    objects = [own_claim(), static("pv", claimRef=holder, nodeAffinity=demands),
               obj("StorageClass", "local", STORAGE, provisioner="kubernetes.io/no-provisioner",
                   **LATE)]  # fmt: skip
    assert released_volumes(own_claim(), world(*objects)) == ["pv"]
    found = of(pod(), *objects)
    (repair,) = found.repairs()
    assert repair.text.endswith(
        """patch pv pv --type merge -p '{"spec":{"claimRef":{"uid":null}}}'"""
    )
    assert repair.rank == Rank.MEND < found.rank
    assert repair.only is not None
    assert [repair.only(name) for name in "ab"] == [False, True]


@pytest.mark.parametrize(
    ("annotated", "provisioner", "waits"),
    [("a", "d", True), ("gone", "d", False), ("", "d", False),
     ("a", "kubernetes.io/no-provisioner", False)],
)  # fmt: skip
def test_a_volume_is_awaited_where_a_node_was_chosen_for_it(
    annotated: str, provisioner: str, waits: bool
) -> None:
    claim = own_claim()
    if annotated:
        claim["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": annotated}
    cluster = world(claim, obj("StorageClass", "local", STORAGE, provisioner=provisioner, **LATE))
    found = list(awaited_volumes(pod(), cluster))
    assert len(found) == waits
    assert all("kube-scheduler has chosen node a and waits for d" in text for text in found)


def test_a_pod_may_have_more_volumes_than_a_driver_attaches_to_a_node() -> None:
    waiting = pod()
    waiting["spec"]["volumes"] = [
        {"name": f"v{at}", "persistentVolumeClaim": {"claimName": f"c{at}"}} for at in range(3)
    ]
    claims = [own_claim(f"c{at}") for at in range(3)]
    late = obj("StorageClass", "local", STORAGE, provisioner="d", **LATE)
    cluster = world(*claims, late, limit("a", 2), limit("b", 3), node("c", "west"))
    assert [too_many(waiting, cluster)(name) for name in "abc"] == [
        "the pod has 3 volumes of the CSI driver d, which attaches at most 2 to the node "
        "(spec.drivers of its CSINode)", "", "",
    ]  # fmt: skip
