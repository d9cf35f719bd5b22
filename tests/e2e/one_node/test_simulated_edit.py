"""An edit of the profile, simulated first and then made: 400 Pods on 60 nodes without machines.

The median of ten simulated runs lies within the range of five real ones, with both profiles.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from cluster import hollow
from cluster.observe import until
from kube_scheduler_operator.simulate import kinds
from kube_scheduler_operator.simulate.utilization import utilization_of
from kube_scheduler_operator.simulate.world import World

from ..conftest import Cluster
from ..hollow_nodes import hollow_nodes

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600, func_only=True)]

NAMESPACE: Final = "placed"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
DEPLOYMENTS: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
PROFILES: Final = ("LowNodeUtilization", "HighNodeUtilization")
NODES, REAL, SIMULATED = 60, 5, 10
SIZES: Final = (
    ("small", 160, "100m", "256Mi"), ("medium", 120, "250m", "512Mi"),
    ("large", 80, "500m", "1Gi"), ("largest", 40, "1", "2Gi"),
)  # fmt: skip
"""Deployments: name, replicas, and requests; 400 Pods need 126 of some 550 CPUs."""
COUNT: Final = sum(replicas for _, replicas, _, _ in SIZES)


def deployments() -> list[dict[str, Any]]:
    found = []
    for name, replicas, cpu, memory in SIZES:
        labels = {"app": name}
        container = {
            "name": "c",
            "image": "registry.example.com/nothing",
            "resources": {"requests": {"cpu": cpu, "memory": memory}},
        }
        spec = {
            "containers": [container],
            "nodeSelector": {hollow.LABEL: ""},
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
        }
        found.append({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        })  # fmt: skip
    return found


def used_nodes(cluster: Cluster) -> int:
    """Create the Deployments, wait until every Pod has a node, and remove them.

    Returns:
        The number of nodes with Pods, those of the cluster included, as `simulate` counts them.
    """
    for deployment in deployments():
        cluster.api.request("POST", DEPLOYMENTS, deployment)

    def pods() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = cluster.api.request("GET", PODS)["items"]
        return found

    def nodes() -> list[str]:
        return [pod["spec"]["nodeName"] for pod in pods() if pod["spec"].get("nodeName")]

    until(lambda: len(nodes()) == COUNT, 120, lambda: f"{len(nodes())} of {COUNT} Pods are placed")
    world = World()
    for kind in (kinds.NODES, kinds.PODS):
        for item in cluster.api.request("GET", kind.path())["items"]:
            world.add({**item, "apiVersion": kind.api_version, "kind": kind.kind})
    used = utilization_of(world).used
    cluster.api.request("DELETE", f"{DEPLOYMENTS}?propagationPolicy=Background")

    def gone() -> bool:
        # No kubelet ends them.
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        cluster.api.request("DELETE", PODS, options)
        return not pods() and not cluster.api.request("GET", DEPLOYMENTS)["items"]

    until(gone, 120, lambda: f"{len(pods())} Pods stay")
    return used


def test_the_simulated_median_lies_within_the_range_of_the_edits_that_are_made(
    shared_cluster: Cluster, tmp_path: Path
) -> None:
    cluster = shared_cluster
    cluster.rest_with_default_profile()
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    file = tmp_path / "workloads.yaml"
    file.write_text(yaml.safe_dump_all(deployments()))
    picture = tmp_path / "nodes.svg"
    command = ["simulate", "-f", str(file), "--repeat", str(SIMULATED), "--svg", str(picture)]
    for profile in PROFILES:
        command += ["--profile", profile]
    try:
        with hollow_nodes(cluster, NODES):
            begun = time.monotonic()
            done = cluster.plugin(*command, "-o", "json")
            assert done.returncode == 0, f"{done.stdout}{done.stderr}"
            answers = {
                each["name"]: each["figures"] for each in json.loads(done.stdout)["configurations"]
            }
            print(f"simulated {2 * SIMULATED} runs in {time.monotonic() - begun:.0f} s")
            print(cluster.plugin(*command).stdout)
            for profile in PROFILES:
                cluster.profile(profile)
                real = [used_nodes(cluster) for _ in range(REAL)]
                simulated = answers[profile]["nodesUsed"]
                print(f"{profile}: nodes used, real {real}, simulated {simulated}")
                assert min(real) <= simulated["median"] <= max(real)
    finally:
        cluster.api.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
    assert picture.read_text().count("<rect") > NODES
