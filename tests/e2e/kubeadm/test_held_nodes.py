"""Nodes that wait for the real `kubeadm upgrade node` are repaired, and the upgrade goes on."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from cluster import kubeadm
from cluster.model import Node
from cluster.observe import until

from ..conftest import MANIFEST
from .conftest import V35, V36, Clusters, KubeadmCluster

pytestmark = [pytest.mark.soak, pytest.mark.timeout(5400, func_only=True)]

REPAIR = 120.0
"""Seconds within which a node is repaired."""


def removed(cluster: KubeadmCluster, node: Node) -> None:
    cluster.on_node("rm", MANIFEST, node=node)


def edited(cluster: KubeadmCluster, node: Node) -> None:
    cluster.on_node("sed", "-i", "s/-v=2/-v=4/", MANIFEST, node=node)


def renewed(cluster: KubeadmCluster, node: Node) -> None:
    kubeadm.run_on(cluster.sandbox, node, "certs", "renew", "scheduler.conf")


def manifest(cluster: KubeadmCluster, node: Node) -> str:
    """The manifest in place; empty while it is replaced."""
    return cluster.on_node("sh", "-c", f"cat {MANIFEST} || true", node=node)


def repaired(
    cluster: KubeadmCluster, node: Node, fault: Callable[[KubeadmCluster, Node], None]
) -> None:
    """Cause a fault, and wait until the node runs its revision again, with another process."""
    installed, (process, _) = manifest(cluster, node), cluster.scheduler(node)
    fault(cluster, node)
    begin = time.monotonic()

    def is_repaired() -> bool:
        same = manifest(cluster, node) == installed or fault is renewed
        pid, _ = cluster.scheduler(node)
        healthy = same and pid not in (0, process) and cluster.runs(node, V35)
        return healthy and cluster.condition("StaticPodsDegraded")[0] == "False"

    until(is_repaired, REPAIR, lambda: f"{fault.__name__}: not repaired: {cluster.state()}")
    print(f"{fault.__name__}: repaired after {time.monotonic() - begin:.0f} s")
    until(
        lambda: cluster.condition("HandEdits")[0] == "False",
        60,
        lambda: "HandEdits is not withdrawn",
    )


def test_three_faults_on_nodes_that_wait_and_then_the_upgrade_goes_on(clusters: Clusters) -> None:
    cluster = clusters.get(3, V35)
    first, second, third = cluster.sandbox.nodes
    cluster.upgrade(V36, first)
    cluster.follows(V36, (first,))
    cluster.message("KubeadmUpgrade", "run `kubeadm upgrade node` there")
    undisturbed = {node.name: cluster.schedulers[node.name] for node in (first, third)}
    for fault in (removed, edited, renewed):
        repaired(cluster, second, fault)
    now = cluster.schedulers
    assert {name: now[name] for name in undisturbed} == undisturbed
    cluster.schedules()
    cluster.upgrade(V36, second)
    removed(cluster, third)
    cluster.upgrade(V36, third)  # it waits for the scheduler's mirror Pod
    cluster.follows(V36)
    cluster.schedules()
