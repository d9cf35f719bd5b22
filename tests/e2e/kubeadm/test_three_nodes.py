"""Three control-plane nodes of the real kubeadm, upgraded twice under load."""

from __future__ import annotations

import pytest
import yaml

from cluster import upgrades
from cluster.load import Load

from ..conftest import SCHEDULER_EXTENDERS
from ..workloads import create, delete, placed, pod, wait_for
from .conftest import V35, V36, V37, Clusters, KubeadmCluster, reported

pytestmark = [pytest.mark.soak, pytest.mark.timeout(7200, func_only=True)]


def configurations(cluster: KubeadmCluster) -> list[str]:
    """The configuration file of each node's scheduler."""
    found = []
    for node in cluster.sandbox.nodes:
        revision = cluster.current
        path = (
            f"/etc/kubernetes/static-pod-resources/kube-scheduler-pod-{revision}"
            "/configmaps/config/config.yaml"
        )
        found.append(cluster.on_node("cat", path, node=node))
    return found


@pytest.mark.parametrize(("begin", "end"), [(V35, V36), (V36, V37)])
def test_every_node_has_the_new_version_and_the_configuration_and_every_pod_is_bound(
    clusters: Clusters, begin: str, end: str
) -> None:
    cluster = clusters.get(3, begin)
    upgrades.configure(cluster.api)
    first, second, third = cluster.sandbox.nodes
    with Load(cluster.api) as load:
        cluster.upgrade(end, first)
        cluster.follows(end, (first,))
        skew = cluster.message("VersionSkew", end)
        assert f"{begin} on {second.name}, {third.name}; {end} on {first.name}" in skew
        cluster.message("KubeadmUpgrade", "run `kubeadm upgrade node` there")
        assert cluster.cluster_operator("Degraded")[0] == "False"
        for node in (second, third):  # without waiting for the operator
            cluster.upgrade(end, node)
        cluster.follows(end)
    assert reported(load) == 0
    assert f"kube-scheduler is {end} on every node" in cluster.condition("VersionSkew")[1]
    one, *others = configurations(cluster)
    assert [one, one] == others
    assert "MostAllocated" in one, "HighNodeUtilization"
    loaded = yaml.safe_load(one)
    assert len(loaded["extenders"]) == 1
    assert upgrades.PROFILE in [profile["schedulerName"] for profile in loaded["profiles"]]
    wait_for(cluster, f"{SCHEDULER_EXTENDERS}/{upgrades.EXTENDER}", Available="True")
    tolerations = [{"operator": "Exists"}]
    create(cluster, pod("of-profile", scheduler=upgrades.PROFILE, tolerations=tolerations))
    assert placed(cluster, "of-profile")
    delete(cluster, "of-profile")
