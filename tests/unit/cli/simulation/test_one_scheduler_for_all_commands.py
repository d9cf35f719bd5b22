"""All commands that simulate know the same schedulers: which one serves a Pod is one decision."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.cli.simulation import placements
from kube_scheduler_operator.config.language.schema import DEFAULT_SCHEDULER
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    NODES,
    PODS,
    SCHEDULER_PROFILES,
    SECONDARY_SCHEDULERS,
    Resource,
)
from kube_scheduler_operator.simulate.edit_effect import EditEffect
from kube_scheduler_operator.simulate.run_options import RunOptions, simulated_names

from ..conftest import Cluster
from .secondary_scheduler import SPACE
from .simulated_world import CONTROL_PLANE_LEASE, MINE, UNKNOWN, World


@pytest.fixture
def world(cluster: Cluster, tmp_path: Path) -> World:
    return World(cluster, tmp_path)


CONFIGURATION = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": MINE}],
}
SERVED = {DEFAULT_SCHEDULER: True, MINE: True, UNKNOWN: False}


@pytest.mark.parametrize(("scheduler", "is_served"), SERVED.items())
async def test_why(world: World, scheduler: str, is_served: bool) -> None:
    _, found = await world.answer("why", "-n", "shop", f"waits-{scheduler}")
    assert found["served"] is is_served
    assert bool(found["problem"]) is not is_served
    assert found["now"]["reason"] == ("" if is_served else "NoScheduler")


async def test_pending(world: World) -> None:
    _, found = await world.answer("pending")
    kinds = {pod: group["kind"] for group in found["groups"] for pod in group["pods"]}
    assert kinds == {
        f"shop/waits-{name}": "queued" if served else "no scheduler"
        for name, served in SERVED.items()
    }


@pytest.mark.parametrize(("scheduler", "is_served"), SERVED.items())
async def test_simulate_a_workload(world: World, scheduler: str, is_served: bool) -> None:
    file = world.workload(scheduler)
    code, found = await world.answer("simulate", "-f", file, "--repeat", "1")
    assert (code, found["fits"]) == ((0, True) if is_served else (1, False))
    reasons = found["configurations"][0]["reasons"][0]
    assert [UNKNOWN in reason for reason in reasons] == ([] if is_served else [True])


@pytest.mark.parametrize(("scheduler", "largest"), [(DEFAULT_SCHEDULER, 3), (MINE, 3)])
async def test_the_largest_number_of_pods(world: World, scheduler: str, largest: int) -> None:
    """Of 8 places, three Pods run and two that wait come first."""
    file = world.workload(scheduler)
    _, found = await world.answer("simulate", "-f", file, "--max", "--repeat", "1")
    assert found["configurations"][0]["figures"]["largest"]["median"] == largest


async def test_the_largest_number_of_pods_names_those_that_are_left_without_a_node(
    world: World,
) -> None:
    flags = ("--max", "--drain", "n1", "--repeat", "1")
    done = await world.run("simulate", "-f", world.workload(DEFAULT_SCHEDULER), *flags)
    assert (done.code, "of its spec, but 1 other pod has no node" in done.out) == (1, True)


async def test_a_drain_moves_the_pods_of_every_scheduler(world: World) -> None:
    code, found = await world.answer("simulate", "--drain", "n1", "--repeat", "1")
    assert found["pods"] == {"of the drained node n1": 3}
    reasons = found["configurations"][0]["reasons"][0]
    assert [UNKNOWN in reason for reason in reasons] == [True], "that of no scheduler stays"
    world.cluster.api.remove(PODS, f"runs-{UNKNOWN}", "shop")
    code, found = await world.answer("simulate", "--drain", "n1", "--repeat", "1")
    assert (code, found["fits"]) == (0, True)


async def test_a_replay_places_the_pods_of_every_scheduler_and_names_those_it_leaves(
    world: World,
) -> None:
    code, found = await world.answer("simulate", "--replay", "--repeat", "1")
    assert (code, found["pods"]) == (0, {"that run now": 2})
    (note,) = (note for note in found["notes"] if note.startswith("--replay"))
    assert "1 pod" in note
    assert UNKNOWN in note


async def test_a_scheduler_whose_configuration_is_not_known_is_neither_missing_nor_full(
    world: World,
) -> None:
    world.schedulers.put(configHash="another")
    code, why = await world.answer("why", "-n", "shop", f"waits-{MINE}")
    assert why["now"]["reason"] == "NotSimulated"
    assert "is not known" in why["problem"]
    _, pending = await world.answer("pending")
    (group,) = (one for one in pending["groups"] if one["pods"] == [f"shop/waits-{MINE}"])
    assert group["kind"] == "not simulated"
    file = world.workload(MINE)
    code, found = await world.answer("simulate", "-f", file, "--repeat", "1")
    assert (code, found["fits"]) == (2, None)
    assert len(found["configurations"][0]["notSimulated"]) == 2
    assert (await world.run("simulate", "-f", file, "--max")).code == 2


@pytest.fixture
def files(world: World, tmp_path: Path) -> tuple[str, str]:
    """The flag with a file of the cluster, which has no configuration."""
    file = tmp_path / "cluster.json"
    objects = [
        {**obj, "apiVersion": kind.api_version, "kind": kind.kind}
        for kind in (NODES, PODS, SECONDARY_SCHEDULERS)
        for obj in world.cluster.api.objects[kind].values()
    ]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return "--from-files", str(file)


async def test_a_scheduler_in_files_is_not_missing(world: World, files: tuple[str, str]) -> None:
    """Its configuration is not known, so its Pods are neither served nor without a scheduler."""
    _, pending = await world.answer("pending", *files)
    kinds = {pod: group["kind"] for group in pending["groups"] for pod in group["pods"]}
    assert kinds[f"shop/waits-{MINE}"] == "not simulated"
    assert kinds[f"shop/waits-{UNKNOWN}"] == "no scheduler"
    _, why = await world.answer("why", "-n", "shop", f"waits-{MINE}", *files)
    assert why["now"]["reason"] == "NotSimulated"
    workload = world.workload(MINE)
    code, found = await world.answer("simulate", "-f", workload, "--repeat", "1", *files)
    assert (code, found["fits"]) == (2, None)


@pytest.mark.parametrize("flag", ["--config", "--from-files"])
async def test_a_configuration_in_files_is_of_the_scheduler_that_serves_its_names(
    world: World, files: tuple[str, str], tmp_path: Path, flag: str
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIGURATION))
    _, pending = await world.answer("pending", *files, flag, str(config))
    kinds = {pod: group["kind"] for group in pending["groups"] for pod in group["pods"]}
    assert kinds[f"shop/waits-{MINE}"] == kinds[f"shop/waits-{DEFAULT_SCHEDULER}"] == "queued"


async def test_a_pod_on_a_node_waits_for_no_scheduler(world: World) -> None:
    waits = await world.run("why", "-n", "shop", f"waits-{UNKNOWN}")
    assert "It waits until one does" in waits.out
    assert "Correct it where the Pod is made (spec.template.spec.schedulerName)" in waits.out
    runs = await world.run("why", "-n", "shop", f"runs-{UNKNOWN}")
    assert "runs on node n1" in runs.out
    assert f'No scheduler serves its spec.schedulerName "{UNKNOWN}"' in runs.out
    assert "It waits" not in runs.out
    assert "spec.template.spec.schedulerName" not in runs.out


@pytest.mark.parametrize("kind", [SECONDARY_SCHEDULERS, SCHEDULER_PROFILES])
async def test_an_object_that_names_the_scheduler_and_is_refused_is_named(
    world: World, kind: Resource
) -> None:
    type_, status = ("Degraded", "True") if kind == SECONDARY_SCHEDULERS else ("Accepted", "False")
    message = f"spec.{'x' * 5000}: no such field"
    condition = {"type": type_, "status": status, "reason": "Invalid", "message": message}
    spec = {"namespace": SPACE} if kind == SECONDARY_SCHEDULERS else {}
    obj = {"metadata": {"name": UNKNOWN}, "spec": spec, "status": {"conditions": [condition]}}
    world.cluster.api.served.add(kind)
    world.cluster.put(kind, obj)
    waits = await world.run("why", "-n", "shop", f"waits-{UNKNOWN}")
    assert f"{kind.kind} {UNKNOWN} names it and is not in use: spec.xxx" in waits.out
    assert "x" * 2000 not in waits.out
    _, pending = await world.answer("pending", "-A")
    causes = [group["cause"] for group in pending["groups"] if group["kind"] == "no scheduler"]
    assert any(f"{kind.kind} {UNKNOWN} names it and is not in use" in cause for cause in causes)


async def test_schedulers_that_may_not_be_read_may_exist(world: World) -> None:
    world.cluster.api.fail(403, path="/secondaryschedulers", times=None, reason="Forbidden")
    _, why = await world.answer("why", "-n", "shop", f"waits-{MINE}")
    assert why["now"]["reason"] == "NotSimulated"
    done = await world.run("why", "-n", "shop", f"waits-{MINE}")
    assert "as far as is known: SecondarySchedulers are left out" in done.out


@pytest.mark.parametrize(
    ("scheduler", "lease"), [(DEFAULT_SCHEDULER, CONTROL_PLANE_LEASE), (MINE, (SPACE, MINE))]
)
async def test_a_pod_is_in_no_queue_without_a_leader(
    world: World, scheduler: str, lease: tuple[str, str]
) -> None:
    world.cluster.lease(*lease, age=60)
    done = await world.run("why", "-n", "shop", f"waits-{scheduler}")
    assert "schedules nothing now" in done.out
    assert f"{lease[0]}/{lease[1]}" in done.out
    assert "queue" not in done.out
    _, pending = await world.answer("pending")
    kinds = {pod: group["kind"] for group in pending["groups"] for pod in group["pods"]}
    assert kinds[f"shop/waits-{scheduler}"] == "idle scheduler"
    for flags in ((), ("--max",)):
        file = world.workload(scheduler)
        _, simulated = await world.answer("simulate", "-f", file, "--repeat", "1", *flags)
        (note,) = (one for one in simulated["notes"] if "schedules nothing now" in one)
        assert f"{lease[0]}/{lease[1]}" in note


async def test_a_simulation_reports_no_idle_scheduler_of_other_pods(world: World) -> None:
    world.cluster.lease(SPACE, MINE, age=60)
    file = world.workload(DEFAULT_SCHEDULER)
    _, simulated = await world.answer("simulate", "-f", file, "--repeat", "1")
    assert not any("schedules nothing now" in note for note in simulated["notes"])


@pytest.mark.parametrize("scheduler", [DEFAULT_SCHEDULER, MINE])
async def test_a_pod_may_be_in_no_queue_while_another_scheduler_holds_the_lease(
    world: World, scheduler: str
) -> None:
    """Both renew their Leases: only the operator knows that the holder is another one."""
    message = "by-hand holds the Lease"
    if scheduler == MINE:
        shared = {"type": "Degraded", "status": "True", "reason": "LeaseShared"}
        world.schedulers.put(conditions=[{**shared, "message": message}])
    else:
        holder = {"type": "UnknownLeaseHolder", "status": "True", "message": message}
        world.cluster.kubescheduler({"a": 1}, status={"conditions": [holder]})
    done = await world.run("why", "-n", "shop", f"waits-{scheduler}")
    assert message in done.out
    assert "queue" not in done.out
    _, pending = await world.answer("pending")
    kinds = {pod: group["kind"] for group in pending["groups"] for pod in group["pods"]}
    assert kinds[f"shop/waits-{scheduler}"] == "idle scheduler"


async def test_a_configuration_takes_the_place_of_the_scheduler_whose_names_it_has(
    world: World, tmp_path: Path
) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(CONFIGURATION))
    workload = world.workload(MINE)
    code, found = await world.answer(
        "simulate", "-f", workload, "--config", str(file), "--repeat", "1"
    )
    assert code == 0
    assert [column["runsThatFit"] for column in found["configurations"]] == [1, 1]
    _, pending = await world.answer("pending", "--config", str(file))
    kinds = {pod: group["kind"] for group in pending["groups"] for pod in group["pods"]}
    assert kinds[f"shop/waits-{DEFAULT_SCHEDULER}"] == kinds[f"shop/waits-{MINE}"] == "queued"


async def test_an_edit_of_one_is_simulated_beside_the_others(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulated: list[set[str]] = []

    async def recorded(options: RunOptions, **_: Any) -> EditEffect:
        simulated.append({*simulated_names(options)})
        return EditEffect()

    monkeypatch.setattr(placements, "edit_effect", recorded)
    monkeypatch.setattr(placements, "_MOST_PODS", 0)
    spec = {**world.schedulers.obj["spec"], "config": {"parallelism": 8}}
    file = tmp_path / "edited.json"
    file.write_text(json.dumps({**world.schedulers.obj, "spec": spec}))
    done = await world.run("diff", "-f", str(file), "--placements")
    assert (done.code, done.err) == (1, "")
    assert simulated == [{DEFAULT_SCHEDULER, MINE}]


@pytest.mark.parametrize("mounted", [False, True])
async def test_a_scheduler_that_only_its_pod_shows_is_not_missing(
    world: World, mounted: bool
) -> None:
    """Its name, or the configuration in the ConfigMap that it mounts, is the schedulerName."""
    name = "second" if mounted else UNKNOWN
    world.pod(f"{name}-scheduler", DEFAULT_SCHEDULER, "n1")
    pod = world.cluster.api.objects[PODS]["shop", f"{name}-scheduler"]
    spec = {
        **pod["spec"],
        "containers": [{"name": "c", "image": "own/scheduler:v1"}],
        "volumes": [{"name": "c", "configMap": {"name": "config"}}],
    }
    world.cluster.put(PODS, {**pod, "spec": spec})
    if mounted:
        config = {**CONFIGURATION, "profiles": [{"schedulerName": UNKNOWN}]}
        metadata = {"name": "config", "namespace": "shop"}
        data = {"bad.yaml": "KubeSchedulerConfiguration: [", "config.json": json.dumps(config)}
        world.cluster.put(CONFIG_MAPS, {"metadata": metadata, "data": data})
    _, why = await world.answer("why", "-n", "shop", f"waits-{UNKNOWN}")
    assert why["now"]["reason"] == "NotSimulated"
    assert f"Pod shop/{name}-scheduler is not simulated: it is another scheduler" in why["problem"]
    _, pending = await world.answer("pending")
    kinds = {pod: group["kind"] for group in pending["groups"] for pod in group["pods"]}
    assert kinds[f"shop/waits-{UNKNOWN}"] == "not simulated"
