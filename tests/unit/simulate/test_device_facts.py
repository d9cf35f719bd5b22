"""What devices a node lacks for a resource claim, and what may help."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.simulate import device_constraints
from kube_scheduler_operator.simulate.constraint import Constraint, Rank
from kube_scheduler_operator.simulate.constraints import constraints_of
from kube_scheduler_operator.simulate.world import World

Object = dict[str, Any]
DRA = "resource.k8s.io/v1"
SICK = {"key": "sick", "effect": "NoSchedule"}
BIG = "device.attributes['gpu.example'].memory == 'big'"


SMALL = {"name": "d", "attributes": {"memory": {"string": "small"}}}


def obj(kind: str, name: str, version: str = DRA, namespace: str = "", **fields: Any) -> Object:
    place = {"namespace": namespace} if namespace else {}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **place}, **fields}


def node(name: str) -> Object:
    return obj("Node", name, "v1", spec={}, status={})


def devices(on: str, *found: Object, **spec: Any) -> Object:
    content = {"driver": "gpu.example", "nodeName": on, "pool": {"name": on}, **spec}
    return obj("ResourceSlice", f"of-{on}", spec={**content, "devices": list(found)})


def claim(name: str, *used: str, status: Object | None = None, **exactly: Any) -> Object:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": 1, **exactly}}
    allocated = [
        {"request": "r", "driver": "gpu.example", "pool": pool, "device": device}
        for pool, device in (one.split("/") for one in used)
    ]
    allocation = {"allocation": {"devices": {"results": allocated}}} if used else {}
    return obj("ResourceClaim", name, namespace="ai", spec={"devices": {"requests": [request]}},
               status=status or allocation)  # fmt: skip


CLASS = obj("DeviceClass", "gpu", spec={
    "selectors": [{"cel": {"expression": "device.driver == 'gpu.example'"}}]
})  # fmt: skip


def waits(*objects: Object, version: str = "v1.37.2") -> Constraint:
    made = World()
    for each in (node("a"), node("b"), CLASS, *objects):
        assert made.add(each)
    made.complete()
    entry = {"name": "c", "resourceClaimName": "mine"}
    pod = {"metadata": {"name": "p", "namespace": "ai"}, "spec": {"resourceClaims": [entry]}}
    (found,) = (
        each
        for each in constraints_of(pod, made, Gates(Version.parse(version)))
        if each.family == "devices"
    )
    return found


def fact(found: Constraint, name: str = "a") -> str:
    assert found.on is not None
    return found.on(name)


OF_CLASS = "of driver gpu.example (DeviceClass gpu)"
MINE = "request r of ResourceClaim mine"
ON_A = {"nodeSelector": {"nodeSelectorTerms": [{"matchFields": [
    {"key": "metadata.name", "operator": "In", "values": ["b"]}]}]}}  # fmt: skip


def part(name: str, memory: str) -> Object:
    counters = {"memory": {"value": memory}}
    return {"name": name, "consumesCounters": [{"counterSet": "gpu-0", "counters": counters}]}


HALF, WHOLE = part("half", "40Gi"), part("whole", "80Gi")
COUNTERS = obj("ResourceSlice", "counters", spec={
    "driver": "gpu.example", "nodeName": "a", "pool": {"name": "a"},
    "sharedCounters": [{"name": "gpu-0", "counters": {"memory": {"value": "80Gi"}}}],
})  # fmt: skip


def _alternatives(*counts: int) -> Object:
    made = claim("mine")
    (request,) = made["spec"]["devices"]["requests"]
    exactly = request.pop("exactly")
    request["firstAvailable"] = [
        {**exactly, "name": f"of-{count}", "count": count} for count in counts
    ]
    return made


def _alike(made: Object) -> Object:
    made["spec"]["devices"]["constraints"] = [
        {"requests": ["r"], "matchAttribute": "gpu.example/numa"}
    ]
    return made


RULE = obj("DeviceTaintRule", "repair", spec={"deviceSelector": {"device": "d"}, "taint": SICK})


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        ([claim("mine")], "no ResourceSlice has a device for the node, and ResourceClaim mine "
         "requests one"),
        ([claim("mine"), devices("b", {"name": "d"})], "no ResourceSlice has a device for the "
         "node, and ResourceClaim mine requests one"),
        ([claim("mine", count=2), devices("a", {"name": "d"})],
         f"the node has 1 device {OF_CLASS}, and {MINE} wants 2"),
        ([claim("mine"), devices("a", {"name": "d"}, driver="nic.example")],
         f"the node has 0 devices {OF_CLASS}, and {MINE} wants 1"),
        ([claim("mine"), claim("other", "a/d"), devices("a", {"name": "d"})],
         f"1 of 1 device {OF_CLASS} on the node is allocated, for example to ResourceClaim "
         f"ai/other; {MINE} wants 1"),
        ([claim("mine"), claim("other", "a/d"),
          devices("a", {"name": "d", "allowMultipleAllocations": True})], ""),
        ([claim("mine"), devices("a", {"name": "d", "taints": [SICK]})],
         f"device d of the node has the taint sick:NoSchedule, set by driver gpu.example, which "
         f"{MINE} does not tolerate"),
        ([claim("mine"), devices("a", {"name": "d"}), RULE],
         "device d of the node has the taint sick:NoSchedule, set by DeviceTaintRule repair, which "
         f"{MINE} does not tolerate"),
        ([claim("mine", tolerations=[{"operator": "Exists"}]), devices("a", {"name": "d"}), RULE],
         ""),
        ([claim("mine", selectors=[{"cel": {"expression": BIG}}]), devices("a", {"name": "d"})],
         f"too few of 1 device {OF_CLASS} that the node has free meet the selectors of {MINE}, "
         f"which wants 1: {BIG}"),
        ([claim("mine", deviceClassName="none"), devices("a", {"name": "d"})],
         f"DeviceClass none of {MINE} does not exist"),
        ([claim("mine", status={"allocation": {**ON_A, "devices": {"results": [
            {"driver": "gpu.example", "pool": "b", "device": "d"}]}}})],
         "ResourceClaim mine is allocated: device d of gpu.example, which node b alone can use"),
        ([claim("mine"), devices("a", {"name": "d"}, nodeName=None, allNodes=True)], ""),
        ([claim("mine", allocationMode="All"), claim("other", "a/d"),
          devices("a", {"name": "d"}, {"name": "e"})],
         f"1 of 2 devices {OF_CLASS} on the node is allocated, for example to ResourceClaim "
         f"ai/other; {MINE} wants all"),
        ([claim("mine"), devices("a", {"name": "d"}, pool={
            "name": "a", "generation": 2, "resourceSliceCount": 3})],
         "1 of 3 ResourceSlices of the pool a of driver gpu.example exist, and kube-scheduler "
         "allocates no device of it for ResourceClaim mine before all do"),
        ([_alternatives(3, 2), devices("a", {"name": "d"})],
         f"the node has 1 device {OF_CLASS}, and request r/of-3 of ResourceClaim mine wants 3; the "
         f"node has 1 device {OF_CLASS}, and request r/of-2 of ResourceClaim mine wants 2"),
        ([_alternatives(3, 1), devices("a", {"name": "d"})], ""),
        ([_alike(claim("mine", count=2)), devices("a", *(
            {"name": name, "attributes": {"numa": {"int": number}}}
            for number, name in enumerate("de")))],
         "ResourceClaim mine demands 2 devices with the same gpu.example/numa (constraints), and "
         "the node has 1 free with the same"),
        ([claim("mine"), claim("other", "a/half"), COUNTERS, devices("a", HALF, WHOLE)],
         f"device whole of pool a needs 80Gi of the counter memory of gpu-0, of which 40Gi of 80Gi "
         f"is left; {MINE} wants 1"),
    ],
)  # fmt: skip
def test_what_devices_a_node_lacks(objects: list[Object], text: str) -> None:
    assert fact(waits(*objects)) == text


def test_taints_of_devices_count_where_the_version_heeds_them() -> None:
    objects = (claim("mine"), devices("a", {"name": "d", "taints": [SICK]}), RULE)
    assert fact(waits(*objects, version="v1.35.4")) == ""
    assert "taint sick:NoSchedule" in fact(waits(*objects, version="v1.36.3"))


def test_what_may_help_is_made_when_it_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most pods that are explained fit, and finding it looks at all devices of all nodes."""
    monkeypatch.setattr(device_constraints, "RuleRepair", None)
    found = waits(claim("mine", count=2), devices("a", {"name": "d"}))
    with pytest.raises(TypeError):
        list(found.repairs())


def test_what_may_help_is_a_claim_that_is_changed_in_one_thing() -> None:
    selectors = [{"cel": {"expression": BIG}}, {"cel": {"expression": "true"}}]
    found = waits(claim("mine", count=3, selectors=selectors), devices("a", SMALL), RULE)
    repairs = list(found.repairs())
    texts = [repair.text for repair in repairs]
    assert texts == [
        "end the taint of the devices, which DeviceTaintRule repair sets: kubectl describe "
        "devicetaintrule repair",
        f"correct the selector {BIG}, which no free device meets",
        "correct the selector true, which no free device meets",
        "request 2 devices instead of 3",
        "request 1 device instead of 3",
    ]
    assert [repair.rank for repair in repairs] == [
        Rank.MEND, Rank.RULE, Rank.RULE, Rank.LESS, Rank.LESS,
    ]  # fmt: skip
    changed = [repair.objects[0]["spec"]["devices"]["requests"][0]["exactly"]
               for repair in repairs]  # fmt: skip
    assert changed[0]["tolerations"] == [{"operator": "Exists"}]
    assert [len(one["selectors"]) for one in changed] == [2, 1, 1, 2, 2]
    assert [one["count"] for one in changed] == [3, 3, 3, 2, 1]
    for repair in repairs:
        pod: Object = {
            "spec": {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]}
        }
        repair.change(pod)
        (entry,) = pod["spec"]["resourceClaims"]
        assert entry == {"name": "c", "resourceClaimName": repair.objects[0]["metadata"]["name"]}
        assert "_" in entry["resourceClaimName"], "a name that no claim of a cluster can have"


def test_alternatives_are_changed_where_devices_have_taints() -> None:
    found = waits(_alternatives(3, 2), devices("a", {"name": "d"}), RULE)
    (repair,) = found.repairs()
    assert repair.text == "add an alternative with 1 device to request r"


@pytest.mark.parametrize(
    ("objects", "text", "rank"),
    [
        ([claim("mine")], "make the driver gpu.example run on a node: no ResourceSlice has a "
         "device of driver gpu.example (kubectl get resourceslices)", Rank.MEND),
        ([claim("mine", deviceClassName="none"), devices("a", {"name": "d"})],
         "create DeviceClass none, or ResourceClaim mine again with another deviceClassName",
         Rank.MEND),
        ([claim("mine"), claim("other", "a/d"), devices("a", {"name": "d"})],
         "delete ResourceClaim ai/other, which has a device and no pod: kubectl delete "
         "resourceclaim -n ai other", Rank.MEND),
        ([claim("mine"), devices("a", {"name": "d"}, pool={"name": "a", "resourceSliceCount": 2})],
         "make the driver gpu.example publish all ResourceSlices of its pool a: there are 1 of 2",
         Rank.MEND),
        ([claim("mine", allocationMode="All"), devices("a", {"name": "d"})],
         "request 1 device instead of all", Rank.LESS),
        ([_alternatives(3, 2), devices("a", {"name": "d"})],
         "add an alternative with 1 device to request r", Rank.LESS),
        ([_alike(claim("mine")), devices("a", {"name": "d"})],
         "remove the constraint matchAttribute gpu.example/numa of ResourceClaim mine", Rank.DROP),
    ],
)  # fmt: skip
def test_what_gives_a_claim_its_devices_is_named_first(
    objects: list[Object], text: str, rank: Rank
) -> None:
    first = next(iter(waits(*objects).repairs()))
    assert (first.text, first.rank) == (text, rank)


@pytest.mark.parametrize(("version", "off"), [("v1.35.4", True), ("v1.36.3", False)])
def test_partitions_are_not_allocated_without_their_feature(version: str, off: bool) -> None:
    text = fact(waits(claim("mine"), devices("a", part("half", "1Gi")), version=version))
    expected = (
        "kube-scheduler allocates no device that consumes counters, as those of the node do: its "
        "feature gate DRAPartitionableDevices is off"
    )
    assert (text == expected) is off


def reserved(*users: Object) -> Object:
    held = claim("other", "a/d")
    held["status"]["reservedFor"] = list(users)
    return held


POD: Object = {"resource": "pods", "name": "gone", "uid": "1"}


@pytest.mark.parametrize(
    ("users", "named"),
    [
        ([POD], "pods/gone"),
        ([POD, {"apiGroup": "example.com", "resource": "jobs", "name": "j"}],
         "pods/gone, jobs.example.com/j"),
        ([{**POD, "name": "here", "uid": "old"}], "pods/here"),
        ([{**POD, "name": "here", "uid": "new"}], ""),
    ],
)  # fmt: skip
def test_a_claim_that_is_reserved_for_no_existing_pod_is_named(
    users: list[Object], named: str
) -> None:
    here: Object = {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "here", "namespace": "ai", "uid": "new"},
        "spec": {"containers": []}, "status": {},
    }  # fmt: skip
    found = waits(claim("mine"), reserved(*users), here, devices("a", {"name": "d"}))
    first = next(iter(found.repairs())).text
    if named:
        start = (
            f"see why ResourceClaim ai/other, which no existing pod uses, is reserved for {named}"
        )
        assert first == f"{start}: kubectl get resourceclaim -n ai other -o yaml"
    else:
        assert first.startswith("add a node with a device")


def test_a_template_that_does_not_exist_is_named() -> None:
    made = World()
    entry = {"name": "c", "resourceClaimTemplateName": "gone"}
    pod = {"metadata": {"name": "p", "namespace": "ai"}, "spec": {"resourceClaims": [entry]}}
    (found,) = (each for each in constraints_of(pod, made) if each.family == "devices")
    assert (found.text, found.fix, found.rank) == (
        "ResourceClaimTemplate gone does not exist", "create ResourceClaimTemplate gone", Rank.MEND
    )  # fmt: skip


def test_a_selector_that_fails_is_guarded_in_the_claim_or_in_its_class() -> None:
    reads: dict[str, Any] = {"selectors": [{"cel": {"expression": BIG}}]}
    bare = devices("a", {"name": "d"})
    guard = f'"memory" in device.attributes["gpu.example"] && ({BIG})'
    of_claim = next(iter(waits(claim("mine", **reads), bare).repairs()))
    assert of_claim.text.startswith("guard the selector of ResourceClaim mine, ")
    assert of_claim.text.endswith(guard)
    assert of_claim.field == "spec.devices.requests[0].exactly.selectors[0].cel.expression"
    reading = obj("DeviceClass", "reading", spec=reads)
    of_class = next(iter(waits(claim("mine", deviceClassName="reading"), reading, bare).repairs()))
    assert of_class.text.startswith("guard the selector of DeviceClass reading, ")
    assert (of_class.object, of_class.rank) == ("DeviceClass reading", Rank.MEND)
    other, changed = of_class.objects
    assert changed["spec"]["selectors"][0]["cel"]["expression"] == guard
    (request,) = other["spec"]["devices"]["requests"]
    assert request["exactly"]["deviceClassName"] == changed["metadata"]["name"]


def test_the_words_of_kube_scheduler_about_a_selector_are_of_its_claim() -> None:
    failed = (
        "claim ai/mine: selector #0 on device gpu.example/a/d: CEL runtime error: no such key: x"
    )
    seen = waits(claim("mine"), devices("a", {"name": "d"})).seen
    assert seen is not None
    assert seen([failed]).endswith(
        "fails for device d of pool a of driver gpu.example: no such key: x"
    )
    assert seen([failed.replace("mine", "other")]) == ""
    assert seen(["cannot allocate all claims"]) == ""
