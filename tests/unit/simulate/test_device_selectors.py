"""Selectors of devices that fail for some device, and expressions that do not."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.simulate.device_selectors import (
    SelectorFailure,
    failed_selector,
    failure_notes,
    guard_claim,
    guarded,
)
from kube_scheduler_operator.simulate.world import World

DRA = "resource.k8s.io/v1"
READS = "device.attributes['gpu.example'].memory == 'big'"
GUARD = '"memory" in device.attributes["gpu.example"]'
OLD = (
    'running "DynamicResources" filter plugin: class gpu: selector #1: CEL runtime error: no such '
    "key: memory"
)
NEW = (
    'running "DynamicResources" filter plugin: claim ai/mine: selector #0 on device '
    "gpu.example/racks/a/bare: CEL runtime error: no such key: memory. consider using CEL optional "
    "chaining (.? followed by orValue()) or guarding the check with has() for optional fields"
)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (READS, f"{GUARD} && ({READS})"),
        (
            'device.capacity["gpu.example"]["size"].isGreaterThan(quantity("1Gi"))',
            '"size" in device.capacity["gpu.example"] && '
            '(device.capacity["gpu.example"]["size"].isGreaterThan(quantity("1Gi")))',
        ),
        (
            f"{READS} || device.attributes['gpu.example'].family == 'x'",
            f'{GUARD} && "family" in device.attributes["gpu.example"] && '
            f"({READS} || device.attributes['gpu.example'].family == 'x')",
        ),
        (f"{GUARD} && {READS}", ""),
        (f"has(device.attributes['gpu.example'].memory) && {READS}", ""),
        ("device.attributes['gpu.example'].?memory.orValue('') == 'big'", ""),
        ("device.driver == 'gpu.example'", ""),
        (READS + " " * 10_000, ""),
    ],
)
def test_what_an_expression_reads_is_tested_first(expression: str, expected: str) -> None:
    assert guarded(expression) == expected


def obj(kind: str, name: str, spec: Any, namespace: str = "") -> dict[str, Any]:
    place = {"namespace": namespace} if namespace else {}
    return {"apiVersion": DRA, "kind": kind, "metadata": {"name": name, **place}, "spec": spec}


def world() -> World:
    made = World()
    driver = {"cel": {"expression": "device.driver == 'gpu.example'"}}
    reads = {"cel": {"expression": READS}}
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "selectors": [reads]}}
    devices = [
        {"name": "big", "attributes": {"memory": {"string": "big"}}},
        {"name": "other", "attributes": {"gpu.example/memory": {"string": "big"}}},
        {"name": "bare"},
    ]
    pool = {"driver": "gpu.example", "pool": {"name": "racks/a"}, "nodeName": "n"}
    for each in (
        obj("DeviceClass", "gpu", {"selectors": [driver, reads]}),
        obj("ResourceClaim", "mine", {"devices": {"requests": [request]}}, "ai"),
        obj("ResourceSlice", "of-n", {**pool, "devices": devices}),
    ):
        assert made.add(each)
    made.complete()
    return made


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            OLD,
            f"the selector {READS} of DeviceClass gpu fails for devices that lack what it reads, "
            "such as device bare of pool racks/a of driver gpu.example: no such key: memory",
        ),
        (
            NEW,
            f"the selector {READS} of ResourceClaim ai/mine fails for device bare of pool racks/a "
            "of driver gpu.example: no such key: memory",
        ),
        (
            OLD.replace("gpu", "gone"),
            "selector 1 of DeviceClass gone fails for a device: no such key: memory",
        ),
        (
            OLD.replace("no such key: memory", "no such overload\x1b[2J"),
            f"the selector {READS} of DeviceClass gpu fails for a device: no such overload"
            "\\u001b[2J",
        ),
    ],
)
def test_what_kube_scheduler_reports_names_selector_and_device(words: str, expected: str) -> None:
    failure = failed_selector(["cannot allocate all claims", words])
    assert failure is not None
    assert failure.text(world()) == expected
    (note,) = failure_notes(world(), "", words)
    assert note.startswith(expected)
    assert "may differ from attempt to attempt" in note


def test_other_reasons_are_of_no_selector() -> None:
    words = ["cannot allocate all claims", "Insufficient cpu"]
    assert failed_selector(words) is None
    assert list(failure_notes(world(), *words)) == []


def test_a_failure_is_of_the_claim_that_has_the_selector() -> None:
    of_class = SelectorFailure(True, "gpu", 0, "", "x")
    of_claim = SelectorFailure(False, "ai/mine", 0, "", "x")
    claim = obj("ResourceClaim", "mine", {}, "ai")
    assert of_class.is_of(claim, ["gpu"])
    assert not of_class.is_of(claim, ["other"])
    assert of_claim.is_of(claim, [])
    assert not of_claim.is_of(obj("ResourceClaim", "other", {}, "ai"), [])


def test_the_selectors_of_all_requests_and_alternatives_are_guarded() -> None:
    def selecting() -> dict[str, Any]:
        return {"selectors": [{"cel": {"expression": "true"}}, {"cel": {"expression": READS}}]}

    devices: dict[str, Any] = {
        "requests": [{"exactly": selecting()}, {"firstAvailable": [{}, selecting()]}]
    }
    whole = f"{GUARD} && ({READS})"
    assert guard_claim(devices, lambda _: False) == []
    assert guard_claim(devices, lambda _: True) == [
        ("requests[0].exactly.selectors[1].cel.expression", whole),
        ("requests[1].firstAvailable[1].selectors[1].cel.expression", whole),
    ]
    assert devices["requests"][0]["exactly"]["selectors"][1]["cel"]["expression"] == whole
    assert guard_claim(devices, lambda _: True) == []
