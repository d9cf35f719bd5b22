"""Kinds that only some versions of kube-scheduler read decide as they do in that version.

Each world has one object in a form that files may have; the real kube-scheduler gets the form that
it reads.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from cluster import binaries, releases
from kube_scheduler_operator.simulate.configuration import default_configuration
from kube_scheduler_operator.simulate.decisions import PodDecision
from kube_scheduler_operator.simulate.run import Run
from kube_scheduler_operator.simulate.run_options import RunOptions
from kube_scheduler_operator.simulate.why import explain
from kube_scheduler_operator.simulate.world import World

from .test_kinds_against_binary import VERSIONS
from .test_why import node, pod

pytestmark = [pytest.mark.core, pytest.mark.timeout(600, func_only=True)]

Object = dict[str, Any]

DRIVER: Final = "gpu.example"
TAINT: Final[Object] = {"key": "gpu.example/unhealthy", "effect": "NoSchedule"}
RULES: Final = "DRADeviceTaints=true,DRADeviceTaintRules=true"


def of(kind: str, name: str, spec: Object, version: str = "resource.k8s.io/v1") -> Object:
    metadata = {"name": name}
    if kind in ("ResourceClaim", "PodGroup", "Workload"):
        metadata["namespace"] = "default"
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def devices(*taints: Object, resource: str = "") -> list[Object]:
    """A node with one device, a class and a claim for it."""
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    device_class: Object = {"selectors": [selector]}
    if resource:
        device_class["extendedResourceName"] = resource
    device = {"name": "gpu-0", **({"taints": list(taints)} if taints else {})}
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 1}
    slice_ = {"driver": DRIVER, "nodeName": "a", "pool": pool, "devices": [device]}
    request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER, "allocationMode": "ExactCount",
                                          "count": 1}}  # fmt: skip
    return [
        node("a", "z"),
        of("DeviceClass", DRIVER, device_class),
        of("ResourceSlice", "a", slice_),
        of("ResourceClaim", "one", {"devices": {"requests": [request]}}),
    ]


def with_claim() -> Object:
    made = pod("p", resourceClaims=[{"name": "gpu", "resourceClaimName": "one"}])
    made["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    return made


def rule(version: str) -> Object:
    spec = {"deviceSelector": {"driver": DRIVER}, "taint": TAINT}
    return of("DeviceTaintRule", "broken", spec, f"resource.k8s.io/{version}")


def decide(
    version: str, objects: list[Object], pods: list[Object], gates: str = ""
) -> list[PodDecision]:
    world = World()
    for obj in objects:
        assert world.add(obj)
    for one in pods:
        world.add(one)
    world.complete()
    binary = binaries.provide(["kube-scheduler"], version)["kube-scheduler"]
    flags = (f"--feature-gates={gates}",) if gates else ()

    async def ask() -> list[PodDecision]:
        options = RunOptions(binary, default_configuration(), flags, seconds=60)
        async with Run(world, options) as run:
            decisions = await run.schedule(world.pending())
            assert run.notes == []
            return list(decisions.values())

    return asyncio.run(ask())


def placed(decisions: list[PodDecision]) -> list[bool]:
    return [bool(decision.node) for decision in decisions]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_taint_of_a_device_decides_from_1_36_on(version: str) -> None:
    decided = decide(version, devices(TAINT), [with_claim()])
    assert placed(decided) == [releases.minor(version) < 36]
    assert placed(decide(version, devices(TAINT), [with_claim()], "DRADeviceTaints=true")) == [
        False
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_changed_claim_is_tried_once_kube_scheduler_knows_it(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it, the message about the pod names the claim, and no node accepts the pod."""
    world = World()
    for obj in devices():
        if obj["kind"] == "ResourceClaim":
            (request,) = obj["spec"]["devices"]["requests"]
            request["exactly"]["selectors"] = [{"cel": {"expression": "false"}}]
        world.add(obj)
    world.add(with_claim())
    world.complete()
    put, late = Run.put, []

    def put_late(run: Run, resource: Any, obj: Object) -> None:
        if obj.get("kind") != "ResourceClaim":
            put(run, resource, obj)
            return
        late.append(obj["metadata"]["name"])
        asyncio.get_running_loop().call_later(0.5, put, run, resource, obj)

    monkeypatch.setattr(Run, "put", put_late)
    binary = binaries.provide(["kube-scheduler"], version)["kube-scheduler"]
    options = RunOptions(binary, default_configuration(), seconds=60)
    found = asyncio.run(explain(world, world.pending()[0], options))
    assert late
    assert found.fixes[0].text == "correct the selector false, which no free device meets"


@pytest.mark.parametrize("form", ["v1", "v1beta2", "v1alpha3"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_rule_in_any_form_decides_from_1_37_on_and_with_its_gate(version: str, form: str) -> None:
    objects = [*devices(), rule(form)]
    decided = decide(version, objects, [with_claim()])
    assert placed(decided) == [releases.minor(version) < 37]
    gates = "DRADeviceTaints=true" if releases.minor(version) < 35 else RULES
    assert placed(decide(version, objects, [with_claim()], gates)) == [False]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_extended_resource_is_a_claim_from_1_36_on_and_with_its_gate(version: str) -> None:
    """kube-scheduler creates the claim with generateName, and gives it a status."""
    name = "example.com/gpu"
    objects = devices(resource=name)
    waiting = pod("p")
    waiting["spec"]["containers"][0]["resources"] = {
        "requests": {name: "1"}, "limits": {name: "1"},
    }  # fmt: skip
    assert placed(decide(version, objects, [waiting])) == [releases.minor(version) >= 36]
    decided = decide(version, objects, [waiting], "DRAExtendedResource=true")
    assert placed(decided) == [True]


@pytest.mark.parametrize("version", [one for one in VERSIONS if releases.minor(one) >= 36])
def test_a_claim_that_an_earlier_attempt_made_does_not_keep_the_device_from_its_pod(
    version: str,
) -> None:
    """kube-scheduler knows it by an annotation; its binding failed after it was allocated."""
    name = "example.com/gpu"
    waiting = pod("p")
    amounts = {name: "1"}
    waiting["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    objects = devices(resource=name)
    claim = objects[-1]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p", "controller": True}
    claim["metadata"] |= {
        "ownerReferences": [owner],
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
    }
    result = {"request": "gpu", "driver": DRIVER, "pool": "a", "device": "gpu-0"}
    claim["status"] = {"allocation": {"devices": {"results": [result]}}}
    taken = "cannot allocate all claims"
    (decision,) = decide(version, objects, [waiting])
    assert taken not in decision.message  # the claim is deallocated, and the pod tried again
    del claim["metadata"]["annotations"]
    (decision,) = decide(version, objects, [waiting])
    assert taken in decision.message


def members(version: str, count: int) -> tuple[list[Object], list[Object], str]:
    """A group that needs two Pods, some of its Pods, and the gates, in the form of a version."""
    minor = releases.minor(version)
    gang: Object = {"gang": {"minCount": 2}}
    reference: Object
    if minor == 35:
        spec: Object = {"podGroups": [{"name": "g", "policy": gang}]}
        group = of("Workload", "w", spec, "scheduling.k8s.io/v1alpha1")
        reference = {"workloadRef": {"name": "w", "podGroup": "g"}}
    else:
        form = "v1alpha2" if minor == 36 else "v1beta1"
        group = of("PodGroup", "w", {"schedulingPolicy": gang}, f"scheduling.k8s.io/{form}")
        reference = {"schedulingGroup": {"podGroupName": "w"}}
    pods = [pod(f"p{number}", **reference) for number in range(count)]
    gates = "GenericWorkload=true" + (",GangScheduling=true" if minor < 37 else "")
    return [node("a", "z"), group], pods, gates


@pytest.mark.parametrize("version", [one for one in VERSIONS if releases.minor(one) >= 35])
def test_the_members_of_a_group_are_placed_together(version: str) -> None:
    objects, pods, gates = members(version, 1)
    assert placed(decide(version, objects, pods)) == [True]  # without the gate it is not read
    assert placed(decide(version, objects, pods, gates)) == [False]
    objects, pods, gates = members(version, 2)
    assert placed(decide(version, objects, pods, gates)) == [True, True]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_driver_that_a_node_lacks_keeps_its_volumes_away_from_1_37_on(version: str) -> None:
    """CSIDriver's spec.preventPodSchedulingIfMissing, on by default from 1.37 on."""
    storage = "storage.k8s.io/v1"
    driver = of("CSIDriver", "d", {"preventPodSchedulingIfMissing": True}, storage)
    csi_node = of("CSINode", "a", {"drivers": []}, storage)
    volume = of("PersistentVolume", "v", {"csi": {"driver": "d", "volumeHandle": "h"},
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "claimRef": {"namespace": "default", "name": "c", "uid": "c"}}, "v1")  # fmt: skip
    claim: Object = of("PersistentVolumeClaim", "c", {"volumeName": "v"}, "v1")
    claim["metadata"] |= {
        "namespace": "default", "uid": "c",
        "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
    }  # fmt: skip
    claim["status"] = {"phase": "Bound"}
    waiting = pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])
    objects = [node("a", "z"), csi_node, driver, volume, claim]
    assert placed(decide(version, objects, [waiting])) == [releases.minor(version) < 37]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_feature_that_a_pod_needs_is_one_that_its_node_declares(version: str) -> None:
    """hostUsers with hostNetwork, by the plugin NodeDeclaredFeatures, on from 1.36 on."""
    feature = "UserNamespacesHostNetworkSupport"
    waiting = pod("p", hostNetwork=True, hostUsers=False)
    assert placed(decide(version, [node("a", "z")], [waiting])) == [releases.minor(version) < 36]
    declares = node("a", "z")
    declares["status"]["declaredFeatures"] = [feature]
    assert placed(decide(version, [declares], [waiting])) == [True]
