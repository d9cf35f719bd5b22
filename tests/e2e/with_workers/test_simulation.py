"""Simulations in the cluster: the operand's own image decides, and nothing stays behind."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from cluster import binaries, images, nodes
from cluster.observe import OPERATOR_NAMESPACE, schedule_pod, until

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


def test_the_cluster_and_this_machine_give_the_same_answer(cluster: Cluster, waiting: str) -> None:
    binary = cluster.sandbox.state / "bin" / "kube-scheduler"
    there = cluster.plugin("why", waiting, "--in-cluster", "-o", "json")
    assert there.returncode == 0, there.stderr
    all_gone(cluster, 60)
    here = cluster.plugin("why", waiting, "--kube-scheduler", str(binary), "-o", "json")
    found = json.loads(there.stdout)
    assert found["groups"]
    assert ordered(found) == ordered(json.loads(here.stdout))


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
