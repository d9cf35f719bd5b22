"""Running Pods with devices are tried as new ones: what their ResourceClaims hold is free then.

A claim is allocated to a node and reserved for its Pod. The controller of claims removes that when
the Pod is gone, so that a new Pod gets any free device. The kube-schedulers are real.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster import binaries, releases
from kube_scheduler_operator.__main__ import kubectl_plugin
from kube_scheduler_operator.simulate import probes
from kube_scheduler_operator.simulate.configuration import default_configuration
from kube_scheduler_operator.simulate.kinds import PODS
from kube_scheduler_operator.simulate.lifts import CLAIM_WITNESS, witness_profiles
from kube_scheduler_operator.simulate.run import Run
from kube_scheduler_operator.simulate.run_options import RunOptions, gates_of

from .test_held_rooms import world_of
from .test_upgrade import API, DRIVER, NEW, OLD, devices, scheduler
from .test_why import node, pod

pytestmark = pytest.mark.timeout(600, func_only=True)

Object = dict[str, Any]
WAYS = ["of its own", "of a template"]


def slice_of(name: str, *taints: Object) -> Object:
    made = next(each for each in devices() if each["kind"] == "ResourceSlice")
    made["metadata"]["name"] = name
    made["spec"] |= {"nodeName": name, "pool": {**made["spec"]["pool"], "name": name}}
    made["spec"]["devices"] = [{"name": "gpu-0", "taints": list(taints)}]
    return made


def running(name: str, where: str, way: str, of: str = "") -> list[Object]:
    """A Pod on a node, and the claim that has the node's device; of a Deployment, if given."""
    objects = devices()
    claim = next(each for each in objects if each["kind"] == "ResourceClaim")
    made = pod(name, "1", nodeName=where)
    made["metadata"]["uid"] = name
    made["status"] = {"phase": "Running"}
    if of:
        owner: Object = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": of, "uid": of}
        made["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    claim["metadata"] |= {"name": f"{name}-gpu", "uid": f"{name}-gpu"}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [where]}]}
    result = {"request": "gpu", "driver": DRIVER, "pool": where, "device": "gpu-0"}
    claim["status"] = {
        "allocation": {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [term]},
        },
        "reservedFor": [{"resource": "pods", "name": name, "uid": name}],
    }
    if way == WAYS[0]:
        made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": f"{name}-gpu"}]
        return [made, claim]
    claim["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name}
    ]
    made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    made["status"]["resourceClaimStatuses"] = [
        {"name": "gpu", "resourceClaimName": f"{name}-gpu"},
    ]
    template = {
        "apiVersion": API,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpu", "namespace": "default"},
        "spec": {"spec": claim["spec"]},
    }
    return [made, claim, template]


def device_class() -> Object:
    return next(each for each in devices() if each["kind"] == "DeviceClass")


@pytest.fixture
def answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Runs a command over files; its document."""

    def run(objects: list[Object], *command: str) -> Any:
        path = tmp_path / "cluster.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        kubectl_plugin([*command, "--from-files", str(path), "-o", "json"])
        printed = capsys.readouterr()
        assert not printed.err
        return json.loads(printed.out)

    return run


@pytest.mark.parametrize("way", WAYS)
def test_an_upgrade_names_a_running_pod_whose_device_has_a_taint(
    answer: Callable[..., Any], way: str
) -> None:
    """Taints of devices count from 1.36 on."""
    taint = {"key": "worn", "effect": "NoSchedule", "timeAdded": "2026-03-01T08:00:00Z"}
    objects = [node("a", "x"), device_class(), slice_of("a", taint), scheduler(OLD)]
    command = ["check", "--upgrade", NEW.removeprefix("v").rpartition(".")[0]]
    for version in (OLD, NEW):
        program = binaries.provide_scheduler(version)
        command += ["--kube-scheduler", str(program)]
    found = answer([*objects, *running("infer", "a", way)], *command)
    (step,) = found["steps"]
    (placements,) = step["schedulers"][0]["placements"]
    assert placements["lost"] == [
        {"reason": "cannot allocate all claims", "pods": ["default/infer"]}
    ]


@pytest.mark.presubmit
@pytest.mark.parametrize("way", WAYS)
def test_a_drained_pod_gets_a_device_of_another_node(answer: Callable[..., Any], way: str) -> None:
    objects = [node("a", "x"), node("b", "x"), device_class(), slice_of("a"), slice_of("b")]
    objects += running("infer", "a", way, of="infer")
    found = answer(objects, "simulate", "--drain", "a")
    assert found["drains"][0]["moved"] == ["default/infer"]
    assert found["configurations"][0]["runsThatFit"] == 5


@pytest.mark.presubmit
@pytest.mark.parametrize("way", WAYS)
def test_why_names_all_nodes_with_a_device_for_a_running_pod(
    answer: Callable[..., Any], way: str
) -> None:
    objects = [node("a", "x"), node("b", "x"), device_class(), slice_of("a"), slice_of("b")]
    found = answer([*objects, *running("infer", "a", way)], "why", "infer")
    assert found["node"] == "a"
    assert sorted(found["candidates"]) == ["a", "b"]


@pytest.mark.parametrize("version", [releases.PINNED[minor] for minor in sorted(releases.PINNED)])
def test_a_lifted_pod_gives_its_device_up_and_has_it_again(version: str) -> None:
    """Two Pods have the only devices: each can be placed again, and a third one never."""
    third = [*running("third", "a", WAYS[0])]
    third[0]["spec"].pop("nodeName")
    third[0]["status"] = {"phase": "Pending"}
    third[1].pop("status")
    objects = [node("a", "x"), node("b", "x"), device_class(), slice_of("a"), slice_of("b")]
    objects += [*running("one", "a", WAYS[0]), *running("two", "b", WAYS[1]), *third]
    world = world_of(objects)
    program = binaries.provide_scheduler(version)
    options = RunOptions(program, default_configuration())
    one, two, waiting = (world.get(PODS, name, "default") for name in ("one", "two", "third"))
    assert one is not None
    assert two is not None
    assert waiting is not None
    found = asyncio.run(probes.acceptances(world, options, [one, two, one, waiting]))
    assert [sorted(each.nodes) for each in found] == [["a"], ["b"], ["a"], []]


@pytest.mark.parametrize("version", [releases.PINNED[minor] for minor in sorted(releases.PINNED)])
def test_kube_scheduler_names_a_claim_only_while_it_has_not_read_it(version: str) -> None:
    """The class of the claim that it has read does not exist, so each Pod is refused."""
    known = next(each for each in devices() if each["kind"] == "ResourceClaim")
    known["metadata"]["name"] = "is-known"
    (request,) = known["spec"]["devices"]["requests"]
    request["exactly"]["deviceClassName"] = "no-class"
    objects = [node("a", "x"), device_class(), slice_of("a"), *running("o", "a", WAYS[0]), known]
    world = world_of(objects)
    program = binaries.provide_scheduler(version)
    options = RunOptions(program, default_configuration())
    profile = {"schedulerName": "default-scheduler"}
    witness = witness_profiles(profile, gates_of(options), world)
    names = frozenset(own["schedulerName"] for own in witness)
    assert CLAIM_WITNESS in names
    asked = []
    for claim in ("is-missing", "is-known"):
        made = pod(claim[3:], "1", schedulerName=CLAIM_WITNESS)
        made["metadata"] |= {"uid": claim, "namespace": "default"}
        made["spec"]["resourceClaims"] = [{"name": "none", "resourceClaimName": claim}]
        asked.append(made)

    async def messages() -> list[str]:
        async with Run(world, replace(options, profiles=witness, probes=names)) as run:
            decisions = await run.schedule(asked, settle=False)
            return [decision.message for decision in decisions.values()]

    missing, refused = asyncio.run(messages())
    assert "is-missing" in missing
    assert "no-class" in refused
    assert "is-known" not in refused
