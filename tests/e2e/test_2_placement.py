"""Profiles change where pods go: two workers, one of them loaded first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from cluster import lifecycle, nodes
from cluster.observe import delete_pod, schedule_pod, until

from .conftest import Cluster

ON_WORKERS = {"placement": "here"}


@pytest.fixture(scope="module")
def workers(_cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Two workers that run."""
    busy, idle = _cluster.sandbox.nodes[1:]
    for node in (busy, idle):
        lifecycle.start_node(_cluster.sandbox, node)
    yield busy.name, idle.name
    for node in (busy, idle):
        nodes.power_off(_cluster.sandbox, node)


@pytest.fixture
def loaded(cluster: Cluster, workers: tuple[str, str]) -> Iterator[str]:
    """The worker on which 60 % of the CPU is requested; nothing is on the other one."""
    busy, _ = workers
    for name in workers:
        labels = {"metadata": {"labels": ON_WORKERS}}
        cluster.api.request("PATCH", f"/api/v1/nodes/{name}", labels)
    node = cluster.api.request("GET", f"/api/v1/nodes/{busy}")
    millicores = int(node["status"]["allocatable"]["cpu"]) * 600
    schedule_pod(
        cluster.api,
        name="load",
        cpu=f"{millicores}m",
        selector={"kubernetes.io/hostname": busy},
    )
    yield busy
    delete_pod(cluster.api, "load")
    until(lambda: not _pods(cluster), 30, "the load did not go away")


def _pods(cluster: Cluster) -> list[str]:
    items = cluster.api.request("GET", "/api/v1/namespaces/default/pods")["items"]
    return [pod["metadata"]["name"] for pod in items]


def _place(cluster: Cluster, count: int, cpu: str) -> Counter[str]:
    """Where `count` pods, one after the other, are put."""
    placed: Counter[str] = Counter()
    names = []
    for _ in range(count):
        name, node, _ = schedule_pod(cluster.api, cpu=cpu, selector=ON_WORKERS)
        names.append(name)
        placed[node] += 1
    for name in names:
        delete_pod(cluster.api, name)
    until(lambda: set(_pods(cluster)) <= {"load"}, 60, "the pods did not go away")
    return placed


def test_high_node_utilization_packs(cluster: Cluster, loaded: str) -> None:
    cluster.profile("HighNodeUtilization")
    assert _place(cluster, 8, "50m") == {loaded: 8}


def test_low_node_utilization_spreads(cluster: Cluster, loaded: str) -> None:
    cluster.profile("LowNodeUtilization")
    placed = _place(cluster, 8, "50m")
    assert loaded not in placed
    assert placed.total() == 8


def test_no_scoring_does_not_look_at_load(cluster: Cluster, loaded: str) -> None:
    cluster.profile("NoScoring")
    placed = _place(cluster, 30, "5m")
    # A fair coin gives fewer than 5 of 30 once in 30,000 runs.
    assert len(placed) == 2
    assert min(placed.values()) >= 5, placed
