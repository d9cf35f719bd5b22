"""`managementState: Removed` gives back what was adopted, or written by kubeadm and followed."""

from __future__ import annotations

import base64
import re

import pytest

from cluster.observe import KUBESCHEDULER, until

from ..conftest import MANIFEST, REPOSITORY
from .conftest import V35, V36, V37, Clusters, KubeadmCluster, image_of

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600, func_only=True)]

RESOURCES = "/etc/kubernetes/static-pod-resources"
NEWEST = f"cat $(ls -t {RESOURCES}/kube-scheduler-stock/kube-scheduler*.yaml | head -n 1)"


def write(cluster: KubeadmCluster, text: str) -> None:
    """Replace the node's manifest at once."""
    encoded = base64.b64encode(text.encode()).decode()
    new = "/etc/kubernetes/.new"
    cluster.on_node("sh", "-ec", f"echo {encoded} | base64 -d > {new}; mv {new} {MANIFEST}")


def is_refused(cluster: KubeadmCluster, text: str, why: str) -> None:
    """Write a manifest, and wait until it is named, and replaced by the node's revision."""
    installed = cluster.on_node("cat", MANIFEST)
    write(cluster, text)
    print(cluster.message("StaticPodsDegraded", why))
    read = ("sh", "-c", f"cat {MANIFEST} || true")
    until(lambda: cluster.on_node(*read) == installed, 120, lambda: f"not back: {cluster.state()}")
    until(cluster.calm, 120, lambda: cluster.state())


def set_state(cluster: KubeadmCluster, state: str) -> None:
    cluster.api.request("PATCH", KUBESCHEDULER, {"spec": {"managementState": state}})


def remove(cluster: KubeadmCluster) -> None:
    set_state(cluster, "Removed")
    until(
        lambda: "nothing of the operator is left" in cluster.cluster_operator("Available")[1],
        180,
        lambda: f"not removed: {cluster.state()}",
    )


def manage(cluster: KubeadmCluster) -> None:
    latest = cluster.latest
    set_state(cluster, "Managed")
    until(lambda: cluster.calm() and cluster.current > latest, 180, lambda: cluster.state())


@pytest.mark.parametrize("upgraded", [False, True], ids=["adopted", "followed"])
def test_a_manifest_that_was_refused_does_not_come_back(clusters: Clusters, upgraded: bool) -> None:
    cluster = clusters.get(1, V35)
    version, next_version = V35, V36
    if upgraded:
        cluster.upgrade(V36)
        cluster.follows(V36)
        version, next_version = V36, V37
    before = cluster.on_node("sh", "-ec", NEWEST)
    assert image_of(version) in before
    refused = before.replace(image_of(version), image_of(next_version))
    is_refused(cluster, refused, "it is newer than the API server of the node")
    assert cluster.on_node("sh", "-ec", NEWEST) == before
    remove(cluster)
    assert cluster.on_node("cat", MANIFEST) == before
    cluster.schedules()
    manage(cluster)
    cluster.schedules()


def test_the_command_for_a_cluster_without_an_api_server_gives_it_back_as_well(
    clusters: Clusters,
) -> None:
    cluster = clusters.get(1, V36)
    before = cluster.on_node("sh", "-ec", NEWEST)
    is_refused(cluster, before.replace(image_of(V36), image_of(V37)), "is newer than")
    page = (REPOSITORY / "docs/operations.md").read_text()
    (command,) = re.findall(r"^cp .*kube-scheduler-stock.*$", page, re.M)
    set_state(cluster, "Unmanaged")
    cluster.on_node("sh", "-ec", command)
    until(lambda: "--config=" not in cluster.scheduler()[1], 60, "kubeadm's scheduler does not run")
    assert cluster.on_node("cat", MANIFEST) == before
    cluster.schedules()
    set_state(cluster, "Managed")
    until(
        lambda: cluster.calm() and "--config=" in cluster.scheduler()[1],
        180,
        lambda: cluster.state(),
    )
