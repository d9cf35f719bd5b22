"""An edit of the profile changes a real cluster as the simulation foretells.

The same pods are placed several times by a real kube-scheduler at a real API server with nodes
without machines, with LowNodeUtilization and with HighNodeUtilization. The simulation of the same
cluster has the same distribution: the median of its runs lies within the range of the real ones.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from kube_scheduler_operator.__main__ import kubectl_plugin
from kube_scheduler_operator.cli.simulation.answer import (
    ConfigurationResult,
    configuration_answer,
)
from kube_scheduler_operator.cli.simulation.picture import svg
from kube_scheduler_operator.config.language.merging.presets import profile_fragment
from kube_scheduler_operator.simulate.configuration import (
    default_configuration,
    simulated,
    with_profile,
)
from kube_scheduler_operator.simulate.kinds import NODES, PODS
from kube_scheduler_operator.simulate.placements import distribution, placements, spread
from kube_scheduler_operator.simulate.run_options import RunOptions
from kube_scheduler_operator.simulate.utilization import Utilization, utilization_of
from kube_scheduler_operator.simulate.world import World

from ..seeds import number
from .conftest import ApiServer, RefusedError
from .played_nodes import NEW
from .test_simulation_against_cluster import Client

NAMESPACE: Final = "placements"
COUNT: Final = number("KSO_PLACED_PODS", 60, soak=400)
NODE_COUNT: Final = number("KSO_PLACED_NODES", 9, soak=60)
REAL, SIMULATED = 5, 10
SECONDS: Final = 120
SIZES: Final = (("100m", "256Mi"), ("250m", "512Mi"), ("500m", "1Gi"), ("1", "2Gi"))
"""400 pods need 185 of the 240 CPUs of 60 nodes."""

Object = dict[str, Any]


def _node(number_: int) -> Object:
    name = f"placed-{number_:02d}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": "abc"[number_ % 3]}
    return {"metadata": {"name": name, "labels": labels}}


def _status() -> Object:
    amounts = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {"type": "Ready", "status": "True", "reason": "x", "message": "x"}
    return {
        "allocatable": amounts,
        "capacity": amounts,
        "conditions": [{**ready, "lastHeartbeatTime": now}],
    }


def _pods() -> list[Object]:
    chance = random.Random("placed pods")
    pods = []
    for at in range(COUNT):
        cpu, memory = chance.choice(SIZES)
        container = {
            "name": "c",
            "image": "i",
            "resources": {"requests": {"cpu": cpu, "memory": memory}},
        }
        spec = {"containers": [container], "automountServiceAccountToken": False}
        metadata = {"name": f"p{at:03d}", "labels": {"app": f"app-{at % 10}"}}
        pods.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    return pods


class RealCluster:
    """Nodes without machines, on which pods are placed again and again."""

    def __init__(self, api: ApiServer, binary: Path, folder: Path) -> None:
        self._api = Client(api)
        self._binary = binary
        self._folder = folder
        self._path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        with suppress(RefusedError):
            api.create_namespace(NAMESPACE)
        for at in range(NODE_COUNT):
            self._api.request("POST", "/api/v1/nodes", _node(at))
        self.beat()
        self._wait(self._untainted, "the nodes keep their taints")

    def beat(self) -> None:
        """What kubelets report, without which nodes are tainted after 40 seconds."""
        for at in range(NODE_COUNT):
            path = f"/api/v1/nodes/{_node(at)['metadata']['name']}/status"
            self._api.request("PATCH", path, {"status": _status()})

    def _untainted(self) -> bool:
        items = self._api.request("GET", "/api/v1/nodes")["items"]
        return not any(taint["key"] == NEW or "not-ready" in taint["key"]
                       for node in items for taint in node["spec"].get("taints") or ())  # fmt: skip

    def world(self) -> World:
        """The nodes, and the pods that exist."""
        world = World()
        for resource in (NODES, PODS):
            for obj in self._api.request("GET", resource.path())["items"]:
                world.add({**obj, "apiVersion": resource.api_version, "kind": resource.kind})
        world.complete()
        return world

    def place(self, config: Mapping[str, Any], pods: list[Object]) -> tuple[World, list[Object]]:
        """(the world with the pods placed, the pods as the API server completed them)."""
        self.beat()
        file = self._folder / f"config-{time.monotonic_ns()}.json"
        connection = {"kubeconfig": str(self._api.kubeconfig), "qps": 1000, "burst": 1000}
        file.write_text(json.dumps({**simulated(config), "clientConnection": connection}))
        command: list[str | Path] = [self._binary, f"--config={file}", "--secure-port=0"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as scheduler:
            try:
                submitted = [self._api.request("POST", self._path, pod) for pod in pods]
                self._wait(self._placed, "pods wait")
                world = self.world()
            finally:
                scheduler.kill()
        self._api.request("DELETE", f"{self._path}?gracePeriodSeconds=0")
        self._wait(lambda: not self._api.request("GET", self._path)["items"], "pods stay")
        return world, [{**pod, "apiVersion": "v1", "kind": "Pod"} for pod in submitted]

    def _placed(self) -> bool:
        items = self._api.request("GET", f"{self._path}?fieldSelector=spec.nodeName=")["items"]
        return not items

    def _wait(self, done: Any, what: str) -> None:
        end = time.monotonic() + SECONDS
        while not done():
            assert time.monotonic() < end, what
            time.sleep(0.1)

    def close(self) -> None:
        for at in range(NODE_COUNT):
            with suppress(RefusedError):
                self._api.request("DELETE", f"/api/v1/nodes/{_node(at)['metadata']['name']}")
        with suppress(RefusedError):
            self._api.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
        self._api.close()


@pytest.fixture(scope="module")
def real(
    api_server: ApiServer,
    nodes_of_ones_own: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RealCluster]:
    binary = api_server.binaries / "kube-scheduler"
    made = RealCluster(api_server, binary, tmp_path_factory.mktemp("real"))
    try:
        yield made
    finally:
        made.close()


@pytest.mark.timeout(900, func_only=True)
def test_the_simulated_median_lies_within_the_range_of_the_real_cluster(
    real: RealCluster, kube_scheduler_binary: Path, tmp_path: Path
) -> None:
    columns = []
    used = {}
    for profile in ("LowNodeUtilization", "HighNodeUtilization"):
        config = with_profile(default_configuration(), profile_fragment(profile))
        empty = real.world()
        found: list[Utilization] = []
        for _ in range(REAL):
            world, submitted = real.place(config, _pods())
            found.append(utilization_of(world))
        pods = World()
        for pod in submitted:
            pod["spec"].pop("nodeName", None)
            pods.add(pod)
        waiting = list(pods.all(PODS))
        subject = {f"{NAMESPACE}/{pod['metadata']['name']}" for pod in waiting}
        options = RunOptions(kube_scheduler_binary, config)
        outcomes = asyncio.run(placements(empty, options, waiting, subject, SIMULATED))
        expected = distribution(outcomes)
        actual = spread([each.used for each in found])
        fullest = spread([each.fullest for each in found])
        print(f"{profile}: nodes used, real {actual}, simulated {expected['nodesUsed']}; "
              f"fullest, real {fullest}, simulated {expected['fullestNodePercent']}")  # fmt: skip
        assert expected["pending"].most == 0
        assert actual.least <= expected["nodesUsed"].median <= actual.most
        used[profile] = actual.median
        columns.append(configuration_answer(ConfigurationResult(profile, outcomes), proposed=True))
    assert used["HighNodeUtilization"] < used["LowNodeUtilization"] == NODE_COUNT
    picture = tmp_path / "nodes.svg"
    picture.write_text(svg(f"{COUNT} pods on {NODE_COUNT} nodes", columns))
    assert picture.read_text().count("<rect") > 4 * NODE_COUNT


@pytest.mark.presubmit
def test_a_live_cluster_is_simulated_with_its_admission_and_not_written(
    real: RealCluster,
    api_server: ApiServer,
    kube_scheduler_binary: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The API server's LimitRange gives the pods requests that the file does not have."""
    real.beat()
    base = f"/api/v1/namespaces/{NAMESPACE}"
    limits = [{"type": "Container", "defaultRequest": {"cpu": "3"}, "default": {"cpu": "3"}}]
    limit_range = {"metadata": {"name": "limits"}, "spec": {"limits": limits}}
    api_server.request("POST", f"{base}/limitranges", limit_range)
    template = {"metadata": {"labels": {"app": "new"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]}}  # fmt: skip
    workload = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "new", "namespace": NAMESPACE},
        "spec": {"replicas": 1, "template": template},
    }
    file = tmp_path / "workload.json"
    file.write_text(json.dumps(workload))
    command = [
        "simulate",
        "-f",
        str(file),
        "--max",
        "--repeat",
        "1",
        "--platform",
        "kubeadm",
    ]
    command += ["--kubeconfig", str(api_server.kubeconfig), "-o", "json"]
    command += ["--kube-scheduler", str(kube_scheduler_binary)]
    try:
        code = kubectl_plugin(command)
        printed = capsys.readouterr()
        assert code == 0, printed
        found = json.loads(printed.out)
        assert found["configurations"][0]["figures"]["largest"]["median"] == NODE_COUNT
        assert found["refused"] == []
        file.write_text(json.dumps({**workload, "metadata": {"name": "new", "namespace": "none"}}))
        assert kubectl_plugin(command) == 0
        notes = json.loads(capsys.readouterr().out)["notes"]
        assert any("namespace none does not exist" in note for note in notes), notes
        assert api_server.request("GET", f"{base}/pods")["items"] == []
        assert api_server.request("GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments")[
            "items"
        ] == []  # fmt: skip
    finally:
        api_server.request("DELETE", f"{base}/limitranges/limits")
