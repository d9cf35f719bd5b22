"""Every answer names the version and the configuration that decided, and first a substitute."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.config.language.schema import DEFAULT_SCHEDULER
from kube_scheduler_operator.kube.resource import NODES, PODS

from ....imitation import kube_scheduler
from ..conftest import Cluster
from .secondary_scheduler import SPACE
from .simulated_world import MINE, UNKNOWN, World

OWN = kube_scheduler.VERSION.removeprefix("v")


@pytest.fixture
def world(cluster: Cluster, tmp_path: Path) -> World:
    return World(cluster, tmp_path)


def files(world: World, kubelet: str) -> tuple[str, str]:
    """The flag with a file of the cluster, whose nodes have this kubelet."""
    file = world.folder / "cluster.json"
    objects: list[dict[str, Any]] = [
        {**obj, "apiVersion": kind.api_version, "kind": kind.kind}
        for kind in (NODES, PODS)
        for obj in world.cluster.api.objects[kind].values()
    ]
    for obj in objects:
        if obj["kind"] == NODES.kind and kubelet:
            obj["status"] = {**obj["status"], "nodeInfo": {"kubeletVersion": kubelet}}
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return "--from-files", str(file)


def commands(world: World) -> list[tuple[str, ...]]:
    return [
        ("why", "-n", "shop", f"waits-{DEFAULT_SCHEDULER}"),
        ("pending",),
        ("simulate", "-f", world.workload(DEFAULT_SCHEDULER), "--repeat", "1"),
    ]


@pytest.mark.parametrize("number", range(3))
async def test_another_version_is_named_first(world: World, number: int) -> None:
    command = commands(world)[number]
    flags = files(world, "v1.29.6")
    done = await world.run(*command, *flags)
    assert done.out.splitlines()[0] == (
        f"kube-scheduler {OWN} decides here, not 1.29.6 (kubeletVersion of the nodes): "
        "--kube-scheduler chose it."
    )
    _, found = await world.answer(*command, *flags)
    assert found["decidedBy"]["version"] == OWN
    assert found["decidedBy"]["cluster"] == {
        "version": "1.29.6",
        "origin": "kubeletVersion of the nodes",
    }


@pytest.mark.parametrize("number", range(3))
async def test_the_clusters_version_and_the_configuration_are_a_note(
    world: World, number: int, tmp_path: Path
) -> None:
    command = commands(world)[number]
    flags = files(world, kube_scheduler.VERSION)
    done = await world.run(*command, *flags)
    assert f"kube-scheduler {OWN} decides" not in done.out.splitlines()[0]
    note = f"note: kube-scheduler {OWN} decides, with its defaults: no file of --from-files is a"
    assert note in done.out
    config = tmp_path / "config.json"
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config.write_text(json.dumps({**kind, "percentageOfNodesToScore": 7}))
    _, found = await world.answer(*command, *flags, "--from-files", str(config))
    (decided,) = found["decidedBy"]["configurations"]
    assert decided["origin"] == str(config)
    assert decided["configuration"]["percentageOfNodesToScore"] == 7
    assert decided["schedulerNames"] == [DEFAULT_SCHEDULER]


async def test_each_column_has_the_configuration_that_decided_it(world: World) -> None:
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config = world.folder / "strict.json"
    config.write_text(json.dumps({**kind, "percentageOfNodesToScore": 7}))
    command = (*commands(world)[2], "--config", str(config), *files(world, kube_scheduler.VERSION))
    _, found = await world.answer(*command)
    today, other = (column["decidedBy"]["configurations"] for column in found["configurations"])
    assert found["decidedBy"]["configurations"] == today
    assert "percentageOfNodesToScore" not in today[0]["configuration"]
    assert other[0]["configuration"]["percentageOfNodesToScore"] == 7
    assert other[0]["origin"] == f"--config {config}"
    text = (await world.run(*command)).out
    assert f"note: kube-scheduler {OWN} decides\n" in text
    assert "note: today, with its defaults: no file of --from-files is a" in text
    assert f"note: strict.json, with --config {config}\n" in text


async def test_a_column_names_the_scheduler_whose_configuration_it_changes(world: World) -> None:
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config = world.folder / "tuned.json"
    config.write_text(json.dumps({**kind, "profiles": [{"schedulerName": MINE}]}))
    command = ("simulate", "-f", world.workload(MINE), "--repeat", "1", "--config", str(config))
    _, found = await world.answer(*command)
    origins = [
        {one["schedulerNames"][0]: one["origin"] for one in column["decidedBy"]["configurations"]}
        for column in found["configurations"]
    ]
    assert origins[0][DEFAULT_SCHEDULER] == origins[1][DEFAULT_SCHEDULER]
    assert origins[0][MINE].startswith(f"ConfigMap {SPACE}/")
    assert origins[1][MINE] == f"--config {config}"


async def test_files_that_show_no_version_are_named(world: World) -> None:
    done = await world.run(*commands(world)[0], *files(world, ""))
    assert f"kube-scheduler {OWN} decides (nothing shows the version of the cluster)" in done.out


@pytest.mark.parametrize(
    ("scheduler", "origin"),
    [(DEFAULT_SCHEDULER, "the configuration of revision 1"), (MINE, f"ConfigMap {SPACE}/")],
)
async def test_a_cluster_has_a_configuration_for_each_scheduler(
    world: World, scheduler: str, origin: str
) -> None:
    _, found = await world.answer("why", "-n", "shop", f"waits-{scheduler}")
    (decided,) = found["decidedBy"]["configurations"]
    assert decided["origin"].startswith(origin)
    _, found = await world.answer("pending")
    assert len(found["decidedBy"]["configurations"]) == 2
    assert found["decidedBy"]["cluster"]["version"] is not None


async def test_an_edit_names_the_version(world: World, tmp_path: Path) -> None:
    spec = {**world.schedulers.obj["spec"], "config": {"parallelism": 8}}
    file = tmp_path / "edited.json"
    file.write_text(json.dumps({**world.schedulers.obj, "spec": spec}))
    done = await world.run("diff", "-f", str(file), "--placements")
    assert f"note: kube-scheduler {OWN} decides" in done.out


async def test_a_kube_scheduler_of_the_files_decides_with_the_configuration_that_it_mounts(
    world: World,
) -> None:
    """Only Kubernetes' own image is known to follow the configuration."""
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    data = {"c": json.dumps({**kind, "profiles": [{"schedulerName": UNKNOWN}]})}
    metadata = {"name": "second", "namespace": "own"}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    for image in (f"registry.k8s.io/kube-scheduler:{kube_scheduler.VERSION}", "own/scheduler:v1"):
        spec = {
            "containers": [{"name": "s", "image": image}],
            "volumes": [{"name": "c", "configMap": {"name": "second"}}],
        }
        workload = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {"template": {"spec": spec}},
        }
        file = world.folder / "second.json"
        file.write_text(json.dumps({"kind": "List", "items": [config_map, workload]}))
        flags = (*files(world, kube_scheduler.VERSION), "--from-files", str(file))
        _, found = await world.answer("why", "-n", "shop", f"waits-{UNKNOWN}", *flags)
        if image == "own/scheduler:v1":
            assert "Deployment own/second is not simulated" in found["problem"]
        else:
            (decided,) = found["decidedBy"]["configurations"]
            assert decided["origin"] == "ConfigMap own/second"
            assert decided["scheduler"] == "Deployment own/second"
