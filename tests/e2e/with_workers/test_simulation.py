"""Simulations in the cluster: the operand's own image decides, and nothing stays behind."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster import archive, binaries, images, nodes, operator_image
from cluster.observe import OPERATOR_NAMESPACE, schedule_pod, until
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.cli.simulation.in_cluster import JobSimulator
from kube_scheduler_operator.cli.simulation.running_scheduler import Operand
from kube_scheduler_operator.kube.client import ApiClient
from kube_scheduler_operator.kube.credentials import find
from kube_scheduler_operator.simulate import kinds
from kube_scheduler_operator.simulate.configuration import default_configuration
from kube_scheduler_operator.simulate.questions import NO_BINARY
from kube_scheduler_operator.simulate.read_cluster import read_cluster
from kube_scheduler_operator.simulate.run_options import RunOptions
from kube_scheduler_operator.simulate.why import explain

from ..conftest import PODS, PODS_IN_DEFAULT, Cluster

JOBS = f"/apis/batch/v1/namespaces/{OPERATOR_NAMESPACE}/jobs"
SELECTED = "?labelSelector=app%3Dkube-scheduler-simulation"

pytestmark = pytest.mark.usefixtures("no_pods_left")


@pytest.fixture
def waiting(cluster: Cluster) -> Iterator[str]:
    """A Pod that fits nowhere."""
    container = {
        "name": "c",
        "image": "registry.k8s.io/pause:3.10",
        "resources": {"requests": {"cpu": "1000"}},
    }
    pod = {"metadata": {"name": "waiting"}, "spec": {"containers": [container]}}
    cluster.api.request("POST", PODS_IN_DEFAULT, pod)
    yield "default/waiting"
    cluster.without_pods()


def left(cluster: Cluster) -> list[str]:
    """The Jobs and Pods of simulations."""
    return [
        f"{kind}/{item['metadata']['name']}"
        for kind, path in (("job", JOBS), ("pod", PODS))
        for item in cluster.api.request("GET", path + SELECTED)["items"]
    ]


def all_gone(cluster: Cluster, timeout: float) -> None:
    until(lambda: not left(cluster), timeout, lambda: f"still there: {left(cluster)}")


def ordered(value: Any) -> Any:
    """A document without the order in its lists: kube-scheduler has none among equal nodes."""
    if isinstance(value, dict):
        return {key: ordered(each) for key, each in value.items()}
    if isinstance(value, list):
        return sorted((ordered(each) for each in value), key=json.dumps)
    return value


@pytest.mark.presubmit
def test_the_cluster_and_this_machine_give_the_same_answer(cluster: Cluster, waiting: str) -> None:
    binary = cluster.sandbox.state / "bin" / "kube-scheduler"
    there = cluster.plugin("why", waiting, "--in-cluster", "-o", "json")
    assert there.returncode == 0, there.stderr
    all_gone(cluster, 60)
    here = cluster.plugin("why", waiting, "--kube-scheduler", str(binary), "-o", "json")
    found, own = json.loads(there.stdout), json.loads(here.stdout)
    assert found["groups"]
    assert "kube-scheduler:" in found["decidedBy"].pop("image")
    assert own["decidedBy"].pop("image") == ""
    assert found["decidedBy"].pop("chosen") == ""
    assert own["decidedBy"].pop("chosen") == "--kube-scheduler"
    assert ordered(found) == ordered(own)


@pytest.fixture
def prying_image(cluster: Cluster, tmp_path: Path) -> str:
    """An image with a kube-scheduler that looks around in its container first."""
    version = cluster.sandbox.kubernetes
    program = Path(__file__).with_name("prying_scheduler.py")
    files = {
        "usr/local/bin/kube-scheduler": tmp_path / "kube-scheduler",
        "real/kube-scheduler": (cluster.sandbox.state / "bin" / "kube-scheduler").resolve(),
    }
    shutil.copy(program, tmp_path)
    (tmp_path / program.name).rename(tmp_path / "kube-scheduler")
    (tmp_path / "kube-scheduler").chmod(0o755)
    layers = (operator_image.base(), archive.pack_layer(tmp_path / "layer", files))
    image = archive.Image(
        f"localhost/prying:{version}", layers, ("kube-scheduler",), environment=images.PATH
    )
    nodes.load_images(cluster.sandbox, cluster.node, [image])
    return image.reference


async def test_an_operand_reaches_nothing_of_the_simulation(
    cluster: Cluster, prying_image: str, waiting: str
) -> None:
    """It would write what it reached and end, instead of deciding."""
    async with ApiClient(find(str(cluster.sandbox.kubeconfig)), field_manager="test") as api:
        world = await read_cluster(api)
        operand = Operand(prying_image, ("kube-scheduler",))
        simulator = JobSimulator(api, KUBEADM, operand, node=cluster.node.name)
        try:
            await simulator.prepare(world)
            options = RunOptions(NO_BINARY, default_configuration())
            namespace, _, name = waiting.partition("/")
            pod = world.get(kinds.PODS, name, namespace)
            found = await simulator.ask(explain, world, options, pod=pod)
        finally:
            await simulator.close()
    assert found.decision is not None
    assert found.decision.reason == "Unschedulable"
    assert found.groups
    await asyncio.to_thread(all_gone, cluster, 60)


def test_an_interrupted_command_leaves_nothing(cluster: Cluster, waiting: str) -> None:
    command = _start(cluster, waiting)
    until(lambda: any(name.startswith("pod/") for name in left(cluster)), 30, "it starts no Pod")
    command.send_signal(signal.SIGINT)
    command.communicate(timeout=60)
    assert command.returncode == 130
    all_gone(cluster, 60)


def _start(cluster: Cluster, waiting: str) -> subprocess.Popen[str]:
    return cluster.start_plugin("why", waiting, "--in-cluster")


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_command_that_is_killed_at_any_moment_leaves_nothing(
    cluster: Cluster, waiting: str
) -> None:
    for tenths in range(0, 60, 4):
        command = _start(cluster, waiting)
        time.sleep(1 + tenths / 10)
        command.kill()
        command.communicate()
    all_gone(cluster, 420)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("victim", ["pod", "operator"])
def test_nothing_stays_when_a_pod_is_killed(cluster: Cluster, waiting: str, victim: str) -> None:
    command = _start(cluster, waiting)
    until(lambda: any(name.startswith("pod/") for name in left(cluster)), 30, "it starts no Pod")
    (pod,) = [name for name in left(cluster) if name.startswith("pod/")]
    for name in [pod.partition("/")[2]] if victim == "pod" else cluster.operators:
        cluster.kubectl("-n", OPERATOR_NAMESPACE, "delete", "pod", name, "--force")
    command.communicate(timeout=60)
    assert command.returncode == (1 if victim == "pod" else 0)
    all_gone(cluster, 420)


@pytest.fixture
def own_image(cluster: Cluster) -> Iterator[str]:
    """The control plane runs a kube-scheduler with the plugin LongName, as users build theirs."""
    version = cluster.sandbox.kubernetes
    binary = binaries.provide_scheduler_with_plugin(version)
    image = replace(images.scheduler(binary, version), reference=f"localhost/own:{version}")
    nodes.load_images(cluster.sandbox, cluster.node, [image])
    cluster.operand_image(image.reference)
    name = f"kube-scheduler-{cluster.node.name}"
    running = f"/api/v1/namespaces/kube-system/pods/{name}"

    def runs() -> bool:
        spec = cluster.api.request("GET", running)["spec"]
        return bool(spec["containers"][0]["image"] == image.reference)

    until(runs, 180, f"{name} does not run the image")
    enabled = {"score": {"enabled": [{"name": "LongName", "weight": 3}]}}
    profile = {"schedulerName": "default-scheduler", "plugins": enabled}
    cluster.override({"profiles": [profile]}, timeout=300)
    yield image.reference
    cluster.operand_image(None)
    cluster.rest(timeout=300)


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_a_plugin_of_the_users_own_image_is_among_the_scores(
    cluster: Cluster, own_image: str
) -> None:
    name, node, _ = schedule_pod(cluster.api)
    done = cluster.plugin("why", f"default/{name}", "-o", "json")  # no flag: nothing here has it
    assert done.returncode == 0, done.stderr
    assert own_image in done.stderr
    scores = json.loads(done.stdout)["scores"][node]["plugins"]
    assert scores["LongName"] == 3 * len(node)
    assert scores.keys() > {"LongName", "NodeResourcesFit"}
