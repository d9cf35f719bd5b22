"""Upgrades by the real kubeadm on one control-plane node.

The addons are skipped, and the kubelet stays at its version, which Kubernetes supports.
"""

from __future__ import annotations

import pytest

from cluster.load import Load
from cluster.observe import SCHEDULER

from .conftest import V35, V36, V37, Clusters

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600, func_only=True)]


def test_pods_are_bound_through_two_upgrades(clusters: Clusters) -> None:
    cluster = clusters.get(1, V35)
    cluster.profile("HighNodeUtilization")
    with Load(cluster.api) as load:
        for version in (V36, V37):
            cluster.upgrade(version)
            cluster.follows(version)
    waits, lost = load.finish()
    waits.sort()
    print(
        f"{len(waits)} pods bound, {lost} lost, {load.refused} not taken by the API server; "
        f"median {waits[len(waits) // 2]:.2f} s, p99 {waits[int(len(waits) * 0.99)]:.2f} s, "
        f"longest {waits[-1]:.1f} s"
    )
    assert lost == 0
    assert f"kube-scheduler is {V37} on every node" in cluster.condition("VersionSkew")[1]
    assert cluster.condition("KubeadmUpgrade")[0] == "False"
    for kind, status in {"Available": "True", "Degraded": "False", "Upgradeable": "True"}.items():
        assert cluster.cluster_operator(kind)[0] == status
    assert cluster.api.request("GET", SCHEDULER)["spec"]["profile"] == "HighNodeUtilization"
    assert not any("kubeadm-config" in one for one in cluster.warnings())
