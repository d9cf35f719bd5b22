"""Base BinPacking of a SchedulerProfile uses the fewest nodes, as the simulation shows before.

Five workloads with each base, on nodes without machines: what docs/packing.md shows.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
import yaml

from cluster.observe import until
from cluster.packing import NAMESPACE, NODES, PROFILES, WORKLOADS, Workload, used_nodes

from ..conftest import CONFIG_MAPS, SCHEDULER_PROFILES, Cluster
from ..hollow_nodes import hollow_nodes

pytestmark = pytest.mark.timeout(900, func_only=True)

PACKED, SPREAD = "BinPacking", "LowNodeUtilization"
OWN: Final = 1
"""Nodes that Pods of the cluster itself use."""


def test_base_bin_packing_uses_the_fewest_nodes(shared_cluster: Cluster, tmp_path: Path) -> None:
    cluster = shared_cluster
    cluster.rest_with_default_profile()
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for profile in PROFILES:
        kind = {"apiVersion": "kube-scheduler-operator.dev/v1alpha1", "kind": "SchedulerProfile"}
        body = {**kind, "metadata": {"name": profile.lower()}, "spec": {"base": profile}}
        cluster.api.create(SCHEDULER_PROFILES, body)
    until(lambda: _serves_all(cluster), 180, lambda: f"the profiles do not run: {cluster.status}")
    try:
        with hollow_nodes(cluster, NODES):
            for workload in WORKLOADS:
                simulated = _simulated(cluster, workload, tmp_path)
                used = {
                    profile: used_nodes(cluster.api, workload, profile.lower())
                    for profile in PROFILES
                }
                print(f"{workload.name}: bound {used}, simulated {simulated}")
                assert used[PACKED] <= min(used.values()) + 1, "chance may favour another one"
                assert used[PACKED] < used[SPREAD]
                for profile in (PACKED, SPREAD):
                    least, most = simulated[profile]
                    assert least - 1 <= used[profile] <= most + 1, profile
    finally:
        cluster.api.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
        cluster.rest()


def _serves_all(cluster: Cluster) -> bool:
    config = cluster.api.request("GET", f"{CONFIG_MAPS}/config-{cluster.current}")
    served = {profile["schedulerName"] for profile in _profiles(config["data"]["config.yaml"])}
    return served >= {profile.lower() for profile in PROFILES} and cluster.calm()


def _profiles(text: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = yaml.safe_load(text).get("profiles") or []
    return found


def _simulated(
    cluster: Cluster, workload: Workload, folder: Path
) -> dict[str, tuple[float, float]]:
    """The least and the most nodes that the workload uses, by profile."""
    file = folder / f"{workload.name}.yaml"
    file.write_text(yaml.safe_dump_all(workload.objects("default-scheduler")))
    command = ["simulate", "-f", str(file), "--repeat", "5", "-o", "json"]
    for profile in PROFILES:
        command += ["--profile", profile]
    done = cluster.plugin(*command)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    answers = {
        each["name"]: each["figures"]["nodesUsed"]
        for each in json.loads(done.stdout)["configurations"]
    }
    return {name: (each["least"] - OWN, each["most"] - OWN) for name, each in answers.items()}
