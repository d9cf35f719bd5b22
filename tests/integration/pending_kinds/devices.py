"""Devices and their claims."""

from __future__ import annotations

from typing import Final

from .situation import DRIVER, Object, Situation
from .table import ignore, kind, requests, without

SLICES: Final = "/apis/resource.k8s.io/v1/resourceslices"
RULES: Final = "/apis/resource.k8s.io/v1/devicetaintrules"


@kind("the node has 1 device of driver pending.example.com (DeviceClass {}-gpu), and request r of "
      "ResourceClaim {}-gpu-0 wants 2", "remove the resource claim gpu-0",
      without("resourceClaims"), first="request 1 device instead of 2")  # fmt: skip
def more_devices_than_any_node_has(situation: Situation) -> None:
    situation.devices(2, 0, 1)


@kind("no ResourceSlice has a device for the node, and ResourceClaim {}-gpu-0 requests one",
      f"make the driver {DRIVER} run on a node: no ResourceSlice has a device of driver",
      lambda s: ignore(s.slice(0, {"name": "d"})))  # fmt: skip
def a_device_class_without_devices(situation: Situation) -> None:
    situation.devices(1)


@kind("ResourceClaim {}-gpu-0 does not exist", "create ResourceClaim {}-gpu-0",
      lambda s: s.devices(1, 0), untried=True)  # fmt: skip
def a_resource_claim_that_does_not_exist(situation: Situation) -> None:
    situation.devices(1, 0, create=False)
    situation.objects.clear()


@kind("the node has devices for each of the resource claims gpu-0, gpu-1, not for all of them",
      "remove the resource claim gpu-",
      lambda s: s.spec["resourceClaims"].pop() and None)  # fmt: skip
def two_claims_for_one_device(situation: Situation) -> None:
    situation.devices(1, 0, claims=2)


@kind("too few of 1 device of driver pending.example.com (DeviceClass {}-gpu) that the node has "
      "free meet the selectors of request r of ResourceClaim {}-gpu-0, which wants 1: device.",
      "remove the resource claim gpu-0", without("resourceClaims"),
      first="correct the selector device.attributes")  # fmt: skip
def a_device_that_lacks_an_attribute(situation: Situation) -> None:
    situation.devices(1, 0)
    wanted = f"device.attributes['{DRIVER}'].memory == 'large'"
    (claim,) = (obj for path, obj, _ in situation.objects if path.endswith("resourceclaims"))
    exactly = claim["spec"]["devices"]["requests"][0]["exactly"]
    exactly["selectors"] = [{"cel": {"expression": wanted}}]
    (part,) = (obj for path, obj, _ in situation.objects if path.endswith("resourceslices"))
    part["spec"]["devices"][0]["attributes"] = {"memory": {"string": "small"}}


GUARD: Final = f'"memory" in device.attributes["{DRIVER}"] && '
READS: Final = f"device.attributes['{DRIVER}'].memory == 'large'"


def _one_with_memory(situation: Situation) -> None:
    """Two nodes with a device each, of which one has the attribute memory."""
    situation.devices(1, 0, 1)
    part = situation.object("resourceslices", 1)
    part["spec"]["devices"][0]["attributes"] = {"memory": {"string": "large"}}


def _guards_the_class(situation: Situation) -> None:
    path = f"/apis/resource.k8s.io/v1/deviceclasses/{situation.name('gpu')}"
    selectors = [{"cel": {"expression": f"{GUARD}({READS})"}}]
    situation.patches.append((path, {"spec": {"selectors": selectors}}))


@kind(f"the selector {READS} of DeviceClass {{}}-gpu fails for ",
      "guard the selector of DeviceClass {}-gpu, so that devices without what is read do not fit "
      f"instead of ending the attempt: {GUARD}({READS})",
      _guards_the_class, reason="SchedulerError")  # fmt: skip
def a_selector_of_a_class_that_fails_for_a_device(situation: Situation) -> None:
    _one_with_memory(situation)
    selectors = [{"cel": {"expression": READS}}]
    situation.object("deviceclasses")["spec"]["selectors"] = selectors


@kind(f"the selector {READS} of ResourceClaim pending-kinds/{{}}-gpu-0 fails for ",
      "guard the selector of ResourceClaim {}-gpu-0, so that devices",
      lambda s: s.uses_another_claim(lambda devices: devices["requests"][0]["exactly"].update(
          selectors=[{"cel": {"expression": f"{GUARD}({READS})"}}])),
      reason="SchedulerError")  # fmt: skip
def a_selector_of_a_claim_that_fails_for_a_device(situation: Situation) -> None:
    _one_with_memory(situation)
    _claim(situation)["exactly"]["selectors"] = [{"cel": {"expression": READS}}]


@kind("the node is cordoned", "uncordon the node",
      lambda s: s.patch_node(0, {"spec": {"unschedulable": None}}))  # fmt: skip
def devices_on_a_cordoned_node(situation: Situation) -> None:
    situation.devices(1, 0)
    situation.nodes[0]["spec"]["unschedulable"] = True


def _claim(situation: Situation, at: int = 0) -> Object:
    claim: Object = situation.object("resourceclaims", at)
    request: Object = claim["spec"]["devices"]["requests"][0]
    return request


def _allocated(situation: Situation, claim: Object, number: int, device: str = "d") -> None:
    """A claim that has a device of a node."""
    node = situation.nodes[number]["metadata"]["name"]
    result = {"request": "r", "driver": DRIVER, "pool": node, "device": device}
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    allocation = {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
    }
    at = next(at for at, (_, obj, _) in enumerate(situation.objects) if obj is claim)
    path, obj, _ = situation.objects[at]
    situation.objects[at] = (path, obj, {"allocation": allocation})


@kind("DeviceClass {}-gpu of request r of ResourceClaim {}-gpu-0 does not exist",
      "create DeviceClass {}-gpu, or ResourceClaim {}-gpu-0 again with another deviceClassName",
      lambda s: ignore(s.device_class()))  # fmt: skip
def a_device_class_that_does_not_exist(situation: Situation) -> None:
    situation.devices(1, 0)
    situation.objects.pop(0)


@kind("1 of 1 device of driver pending.example.com (DeviceClass {}-gpu) on the node is allocated, "
      "for example to ResourceClaim pending-kinds/{}-gpu-0; request r of ResourceClaim {}-gpu-1 "
      "wants 1", "delete ResourceClaim pending-kinds/{}-gpu-0, which has a device and no pod: "
      "kubectl delete resourceclaim -n pending-kinds {}-gpu-0",
      lambda s: s.delete_claim(0))  # fmt: skip
def a_device_that_another_claim_has(situation: Situation) -> None:
    situation.devices(1, 0, claims=2)
    situation.spec["resourceClaims"].pop(0)
    _allocated(situation, situation.object("resourceclaims"), 0)


@kind("on the node is allocated, for example to ResourceClaim pending-kinds/{}-gpu-0",
      "see why ResourceClaim pending-kinds/{}-gpu-0, which no existing pod uses, is reserved for "
      "trainings.example.com/t", lambda s: s.delete_claim(0))  # fmt: skip
def a_device_of_a_claim_that_another_object_holds(situation: Situation) -> None:
    """kube-controller-manager removes the reservations of pods alone."""
    a_device_that_another_claim_has(situation)
    users = [{"apiGroup": "example.com", "resource": "trainings", "name": "t", "uid": "1"}]
    for _, obj, status in situation.objects:
        if obj is situation.object("resourceclaims"):
            status["reservedFor"] = users


@kind(
    "less than 2 of cpu is free, requested by container c; of all nodes with too little, {}-a "
    "has most free: 1 of 4",
    "request 1 of cpu instead of 2",
    requests(cpu="1"),
)
def a_claim_that_is_allocated_on_a_full_node(situation: Situation) -> None:
    situation.devices(1, 0)
    _allocated(situation, situation.object("resourceclaims"), 0)
    situation.runs(0, "3")
    situation.requests(cpu="2")


@kind("the node has 1 device of driver pending.example.com (DeviceClass {}-gpu), and request "
      "r/of-2 of ResourceClaim {}-gpu-0 wants 2", "add an alternative with 1 device",
      lambda s: s.uses_another_claim(lambda devices: devices["requests"][0][
          "firstAvailable"][1].update(count=1)))  # fmt: skip
def alternatives_that_no_node_has(situation: Situation) -> None:
    situation.devices(1, 0)
    request = _claim(situation)
    exactly = request.pop("exactly")
    first = [{**exactly, "name": f"of-{count}", "count": count} for count in (4, 2)]
    request["firstAvailable"] = first


@kind("ResourceClaim {}-gpu-0 demands 2 devices with the same pending.example.com/numa "
      "(constraints), and the node has 1 free with the same", "request 1 device instead of 2",
      lambda s: s.uses_another_claim(lambda devices: devices["requests"][0]["exactly"].update(
          count=1)))  # fmt: skip
def devices_with_different_attributes(situation: Situation) -> None:
    situation.devices(2, 0)
    (slice_,) = [obj for path, obj, _ in situation.objects if path.endswith("resourceslices")]
    slice_["spec"]["devices"] = [
        {"name": name, "attributes": {"numa": {"int": at}}} for at, name in enumerate("de")
    ]
    claim = situation.object("resourceclaims")
    claim["spec"]["devices"]["constraints"] = [
        {"requests": ["r"], "matchAttribute": f"{DRIVER}/numa"}
    ]


@kind("is allocated, for example to ResourceClaim pending-kinds/{}-gpu-0; request r of "
      "ResourceClaim {}-gpu-1 wants all", "delete ResourceClaim pending-kinds/{}-gpu-0",
      lambda s: s.delete_claim(0))  # fmt: skip
def all_devices_of_a_node_of_which_one_is_used(situation: Situation) -> None:
    situation.devices(1, 0, claims=2)
    situation.object("resourceslices")["spec"]["devices"].append({"name": "e"})
    _allocated(situation, situation.object("resourceclaims"), 0)
    situation.object("resourceclaims", 1)["spec"]["devices"]["requests"][0]["exactly"] = {
        "deviceClassName": situation.name("gpu"),
        "allocationMode": "All",
    }
    situation.spec["resourceClaims"].pop(0)


@kind("ResourceClaimTemplate {}-template does not exist",
      "create ResourceClaimTemplate {}-template",
      lambda s: s.claim_template(), untried=True)  # fmt: skip
def a_template_of_a_claim_that_does_not_exist(situation: Situation) -> None:
    template = situation.name("template")
    situation.spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]


@kind("1 of 2 ResourceSlices of the pool {}-a of driver pending.example.com exist, and "
      "kube-scheduler allocates no device of it",
      "make the driver pending.example.com publish all ResourceSlices",
      lambda s: ignore(s.slice(0, {"name": "e"}, name="rest", count=2)))  # fmt: skip
def a_pool_whose_slices_are_incomplete(situation: Situation) -> None:
    situation.devices(1)
    situation.slice(0, {"name": "d"}, count=2)


@kind("the node has 0 devices of driver other.example.com (DeviceClass {}-gpu)",
      "make the driver other.example.com run on a node",
      lambda s: s.slice(1, {"name": "d"}, name="other")["spec"].update(
          driver="other.example.com"))  # fmt: skip
def a_driver_without_devices_of_the_class(situation: Situation) -> None:
    situation.devices(1, 0)
    expression_ = {"cel": {"expression": "device.driver == 'other.example.com'"}}
    situation.object("deviceclasses")["spec"]["selectors"] = [expression_]


@kind("device d of the node has the taint unhealthy:NoSchedule, set by driver pending.example.com",
      "end the taint of the devices, which driver pending.example.com sets: kubectl describe "
      "resourceslices", lambda s: s.patches.
      append((f"{SLICES}/{s.name('slice-0')}", {"spec": {"devices": [{"name": "d"}]}})),
      since=36)  # fmt: skip
def devices_with_a_taint_of_their_driver(situation: Situation) -> None:
    situation.devices(1, 0)
    taint = {"key": "unhealthy", "effect": "NoSchedule"}
    situation.object("resourceslices")["spec"]["devices"][0]["taints"] = [taint]


@kind("device d of the node has the taint maintenance:NoSchedule, set by DeviceTaintRule {}-rule",
      "end the taint of the devices, which DeviceTaintRule {}-rule sets: kubectl describe "
      "devicetaintrule {}-rule",
      lambda s: s.deletions.append(f"{RULES}/{s.name('rule')}"), since=37)  # fmt: skip
def devices_with_a_taint_of_a_rule(situation: Situation) -> None:
    situation.devices(1, 0)
    taint = {"key": "maintenance", "effect": "NoSchedule"}
    spec = {"deviceSelector": {"driver": DRIVER}, "taint": taint}
    situation.add(RULES, "rule", spec=spec)


@kind("of the counter memory of gpu-0, of which 0 of 80Gi is left",
      "delete ResourceClaim pending-kinds/{}-gpu-0, which has a device and no pod: kubectl delete "
      "resourceclaim -n pending-kinds {}-gpu-0",
      lambda s: s.delete_claim(0), since=36)  # fmt: skip
def partitions_of_a_device_that_is_used_up(situation: Situation) -> None:
    situation.devices(1, claims=2)
    counters = situation.slice(0, name="counters", count=2)["spec"]
    del counters["devices"]
    counters["sharedCounters"] = [{"name": "gpu-0", "counters": {"memory": {"value": "80Gi"}}}]

    def part(name: str, memory: str) -> Object:
        used = {"counterSet": "gpu-0", "counters": {"memory": {"value": memory}}}
        return {"name": name, "consumesCounters": [used]}

    situation.slice(0, part("half", "40Gi"), part("whole", "80Gi"), count=2)
    _allocated(situation, situation.object("resourceclaims"), 0, "whole")
    situation.spec["resourceClaims"].pop(0)
