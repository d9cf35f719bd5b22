"""Devices that are allocated, what they have, and the conditions before a pod is bound."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.simulate.claim_bindings import awaited
from kube_scheduler_operator.simulate.constraint import Constraint
from kube_scheduler_operator.simulate.constraints import constraints_of
from kube_scheduler_operator.simulate.device_values import written_values
from kube_scheduler_operator.simulate.world import World

from .test_device_facts import BIG, CLASS, claim, devices, node

Object = dict[str, Any]
ATTACHED = "fabric.example/attached"


def world(*objects: Object) -> World:
    made = World()
    for each in (node("a"), node("b"), CLASS, *objects):
        assert made.add(each)
    made.complete()
    return made


def pod(*owners: Object) -> Object:
    entry = {"name": "c", "resourceClaimName": "mine"}
    metadata = {"name": "p", "namespace": "ai", "ownerReferences": list(owners)}
    return {"metadata": metadata, "spec": {"resourceClaims": [entry]}}


def of(waiting: Object, cluster: World) -> Constraint:
    every = constraints_of(waiting, cluster)
    (found,) = (each for each in every if each.family == "devices")
    return found


def test_an_attribute_that_a_device_lacks_cannot_be_the_same() -> None:
    free: list[Object] = [{"name": "gpu", "attributes": {"root": {"string": "0"}}}, {"name": "nic"}]
    two = claim("mine", count=2)
    two["spec"]["devices"]["constraints"] = [{"matchAttribute": "root"}]
    found = of(pod(), world(devices("a", *free), two))
    assert found.on is not None
    assert found.on("a") == (
        "ResourceClaim mine demands 2 devices with the same root (constraints), and the node has "
        "1 free with the same; device nic of driver gpu.example has no such attribute"
    )


@pytest.mark.parametrize("owners", [(), ({"kind": "ReplicaSet", "name": "r", "controller": True},)])
def test_pods_of_a_workload_may_have_claims_of_their_own(owners: tuple[Object, ...]) -> None:
    cluster = world(devices("a", {"name": "d"}), claim("mine", "a/d"))
    found = of(pod(*owners), cluster)
    texts = [repair.text for repair in found.repairs()]
    assert len(texts) == len(owners)
    assert all(text.startswith("use a ResourceClaimTemplate") for text in texts)


def test_what_devices_have_of_what_a_selector_reads_is_named() -> None:
    key = ("gpu.example", "a", "d")
    memory = {"attributes": {"memory": {"string": "small"}}}
    assert written_values([BIG], [(key, memory)]) == "; device d has memory small"
    size = "device.capacity['gpu.example'].memory.compareTo(quantity('60Gi')) >= 0"
    both = {**memory, "capacity": {"memory": {"value": "40Gi"}}}
    assert written_values([BIG, size], [(key, both)]) == (
        "; device d has memory small and memory 40Gi"
    )
    assert written_values([BIG], [(key, {})]) == ""
    assert written_values(["device.driver == 'd'"], [(key, memory)]) == ""


@pytest.mark.parametrize(
    ("reported", "on", "waits"),
    [(None, True, True), ("False", True, True), ("True", True, False), (None, False, False)],
)
def test_a_device_may_have_to_meet_conditions_before_its_pod_is_bound(
    reported: str | None, on: bool, waits: bool
) -> None:
    made = claim("mine", "a/d")
    (result,) = made["status"]["allocation"]["devices"]["results"]
    result["bindingConditions"] = [ATTACHED]
    if reported is not None:
        condition = {"type": ATTACHED, "status": reported}
        keys = {key: result[key] for key in ("driver", "pool", "device")}
        made["status"]["devices"] = [{**keys, "conditions": [condition]}]
    gates = Gates(Version.parse("v1.36.3"), {"DRADeviceBindingConditions": on})
    found = awaited(pod(), world(made), lambda: gates)
    assert len(found) == waits
    assert all(f"waits for its condition {ATTACHED}" in text for text in found)
