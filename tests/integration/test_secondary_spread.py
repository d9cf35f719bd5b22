"""Nodes that a real kube-scheduler chooses for the pods of a secondary scheduler."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.operator.secondary.content import pod_template
from kube_scheduler_operator.operator.secondary.desired import OperandDefaults

from ..desired import desired_secondary
from .conftest import ApiServer
from .played_nodes import make_node, until_known

SECONDS = 40
NAMESPACE = "spread"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
SCHEDULER = "spreads"
ZONE = "topology.kubernetes.io/zone"
IMAGE = "registry.k8s.io/kube-scheduler:v1.35.4"

pytestmark = pytest.mark.timeout(240, func_only=True)


@pytest.fixture(scope="module")
def api(
    api_server: ApiServer,
    kube_scheduler_binary: Path,
    nodes_of_ones_own: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ApiServer]:
    """With a scheduler whose profile is kube-scheduler's own, under another name."""
    folder = tmp_path_factory.mktemp("scheduler")
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(api_server.kubeconfig)},
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": SCHEDULER}],
    }
    (folder / "config.json").write_text(json.dumps(config))
    api_server.create_namespace(NAMESPACE)
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [str(kube_scheduler_binary), f"--config={folder / 'config.json'}", "--secure-port=0"],
            stdout=log,
            stderr=log,
        )
        try:
            yield api_server
        finally:
            process.kill()
            process.wait()
            api_server.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}")


@pytest.fixture
def group(api: ApiServer) -> Iterator[str]:
    """The name of a group of nodes; they are gone after the test, with all pods."""
    name = f"group-{time.monotonic_ns()}"
    yield name
    api.request("DELETE", PODS, {"gracePeriodSeconds": 0})
    api.request("DELETE", f"/api/v1/nodes?labelSelector=group%3D{name}")


def make_nodes(api: ApiServer, group: str, zones: Mapping[str, str]) -> None:
    """Nodes of a group: the first has sixteen times the room of the others, and so draws all.

    The scheduler knows them afterwards.
    """
    for number, (name, zone) in enumerate(zones.items()):
        labels = {"group": group, **({ZONE: zone} if zone else {})}
        cpu, memory = ("4", "8Gi") if number else ("64", "128Gi")
        make_node(api, name, {}, labels, cpu, memory)
    until_known(api, list(zones)[-1], PODS, SCHEDULER)


def placed(api: ApiServer, group: str, replicas: int, **spec: Any) -> Counter[str]:
    """Node -> how many of the pods that a SecondaryScheduler's ReplicaSet would make are there."""
    asked = {"namespace": NAMESPACE, "nodeSelector": {"group": group}, **spec}
    obj = {"metadata": {"name": group, "uid": "u"}, "spec": asked}
    wanted = desired_secondary(obj, KUBEADM, OperandDefaults(IMAGE), Version(1, 35, 4))
    assert wanted.content is not None, wanted.findings
    template = json.loads(json.dumps(pod_template(wanted.request, wanted.content)))
    template["metadata"]["labels"]["pod-template-hash"] = "one"
    template["spec"] |= {"schedulerName": SCHEDULER, "automountServiceAccountToken": False}
    template["spec"].pop("serviceAccountName")
    names = [f"{group}-{number}" for number in range(replicas)]
    for name in names:
        api.request("POST", PODS, {**template, "metadata": {**template["metadata"], "name": name}})
    deadline = time.monotonic() + SECONDS
    while True:
        nodes = [api.request("GET", f"{PODS}/{name}")["spec"].get("nodeName") for name in names]
        if all(nodes):
            api.request("DELETE", PODS, {"gracePeriodSeconds": 0})
            return Counter(nodes)
        assert time.monotonic() < deadline, nodes
        time.sleep(0.2)


def test_three_replicas_are_on_three_nodes_that_have_no_zones(api: ApiServer, group: str) -> None:
    make_nodes(api, group, dict.fromkeys(("plain-a", "plain-b", "plain-c"), ""))
    assert placed(api, group, 3) == {"plain-a": 1, "plain-b": 1, "plain-c": 1}
    # Without the spread constraints they are not, so this is not an accident.
    assert placed(api, group, 3, topologySpreadConstraints=[])["plain-a"] > 1


def test_two_replicas_are_in_two_zones(api: ApiServer, group: str) -> None:
    make_nodes(api, group, {"zoned-a": "a", "zoned-b": "a", "zoned-c": "b"})
    assert placed(api, group, 2)["zoned-c"] == 1
