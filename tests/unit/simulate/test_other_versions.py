"""Kinds of several API versions: files and clusters have any, and each version is served."""

from __future__ import annotations

import json
import time
from typing import Any
from unittest.mock import Mock

import aiohttp
import pytest

from kube_scheduler_operator.simulate.api_server import WorldServer
from kube_scheduler_operator.simulate.kinds import (
    BY_KIND,
    DEVICE_TAINT_RULES,
    KINDS,
    POD_GROUPS,
    WORKLOADS,
)
from kube_scheduler_operator.simulate.store import WorldStore
from kube_scheduler_operator.simulate.world import World

Object = dict[str, Any]

GROUP = "scheduling.k8s.io"
RULE: Object = {
    "deviceSelector": {"driver": "gpu.example"},
    "taint": {"key": "unhealthy", "effect": "NoSchedule"},
}
OF_1_36: Object = {
    "podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}},
    "schedulingPolicy": {"gang": {"minCount": 3}},
    "disruptionMode": "PodGroup",
}
OF_1_37: Object = {
    "workloadRef": {"workloadName": "w", "templateName": "t"},
    "schedulingPolicy": {"gang": {"minCount": 3}},
    "disruptionMode": {"all": {}},
}


def world(api_version: str, kind: str, spec: Object, **metadata: Any) -> World:
    made = World()
    metadata = {"name": "a", **metadata}
    assert made.add({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})
    return made


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1alpha3"])
def test_a_device_taint_rule_of_any_version_is_in_the_world(version: str) -> None:
    made = world(f"resource.k8s.io/{version}", "DeviceTaintRule", RULE)
    rule = made.get(DEVICE_TAINT_RULES, "a")
    assert rule is not None
    assert (rule["apiVersion"], rule["spec"]) == ("resource.k8s.io/v1", RULE)


@pytest.mark.parametrize(("version", "spec"), [("v1beta1", OF_1_37), ("v1alpha2", OF_1_36)])
def test_a_pod_group_of_any_version_is_in_the_world(version: str, spec: Object) -> None:
    made = world(f"{GROUP}/{version}", "PodGroup", spec, namespace="n")
    group = made.get(POD_GROUPS, "a", "n")
    assert group is not None
    assert (group["apiVersion"], group["spec"]) == (f"{GROUP}/v1beta1", OF_1_37)


def test_workloads_are_read_in_the_version_that_kube_scheduler_reads() -> None:
    assert (WORKLOADS.api_version, WORKLOADS.kind) in BY_KIND
    assert (f"{GROUP}/v1beta1", "Workload") not in BY_KIND


@pytest.mark.parametrize(("version", "spec"), [("v1beta1", OF_1_37), ("v1alpha2", OF_1_36)])
async def test_each_version_is_served_in_its_form(version: str, spec: Object) -> None:
    made = world(f"{GROUP}/v1beta1", "PodGroup", OF_1_37, namespace="n")
    server = WorldServer(WorldStore(made), Mock(), time.time)
    await server.start()
    path = f"{server.url}/apis/{GROUP}/{version}"
    try:
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{path}/podgroups") as answer:
                listed = await answer.json()
            async with session.get(f"{path}/namespaces/n/podgroups/a") as answer:
                group = await answer.json()
            watching = {"watch": "1", "resourceVersion": listed["metadata"]["resourceVersion"]}
            async with session.get(f"{path}/podgroups", params=watching) as answer:
                patch = {"status": {"conditions": [{"type": "PodGroupScheduled"}]}}
                await session.patch(
                    f"{path}/namespaces/n/podgroups/a/status",
                    json=patch,
                    headers={"Content-Type": "application/strategic-merge-patch+json"},
                )
                event = json.loads(await answer.content.readline())
    finally:
        await server.stop()
    assert (listed["kind"], listed["apiVersion"]) == ("PodGroupList", f"{GROUP}/{version}")
    assert event["type"] == "MODIFIED"
    (item,) = listed["items"]
    assert item["spec"] == spec
    assert not {"apiVersion", "kind"} & item.keys(), "items of a list name no kind"
    served = [group, event["object"]]
    assert [(obj["apiVersion"], obj["spec"]) for obj in served] == [
        (f"{GROUP}/{version}", spec)
    ] * 2
    assert served[-1]["status"]["conditions"] == [{"type": "PodGroupScheduled"}]


@pytest.mark.parametrize("spec", [None, [], "x", {"disruptionMode": []}, {"workloadRef": "x"}])
@pytest.mark.parametrize(("api_version", "kind"), [key for key in BY_KIND if "k8s.io" in key[0]])
def test_what_has_no_spec_gets_one(api_version: str, kind: str, spec: Any) -> None:
    known = BY_KIND[api_version, kind]
    if not known.others:
        return
    made = world(api_version, kind, spec)
    (entry,) = made.objects[known.resource].values()
    for served in known.versions():
        assert known.in_version(served.version, entry.object())["apiVersion"] == served.api_version


def test_every_kind_is_found_by_its_own_version() -> None:
    assert all(BY_KIND[one.api_version, one.kind].resource == one for one in KINDS)
