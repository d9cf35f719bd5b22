"""Upgrades by the real kubeadm on one control-plane node.

The addons are skipped, and the kubelet stays at its version, which Kubernetes supports.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from cluster import kubeadm
from cluster.api import ApiError
from cluster.console import run
from cluster.load import Load
from cluster.observe import KUBESCHEDULER, SCHEDULER, until

from ..conftest import MANIFEST, REPOSITORY
from ..documented import commands
from ..faults import kill_an_operator
from .conftest import V35, V36, V37, Clusters, KubeadmCluster, image_of, reported

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600, func_only=True)]

GATE = "CSIServiceAccountTokenSecrets"
REFUSED_BY_36 = {"arguments": {"feature-gates": [f"{GATE}=false"]}}
"""Kubernetes 1.36 locks this feature gate to true."""


def test_a_configuration_that_the_new_version_refuses_leaves_what_kubeadm_wrote(
    clusters: Clusters,
) -> None:
    cluster = clusters.get(1, V35)
    assert cluster.override(REFUSED_BY_36).outcome == "installed"
    warned = cluster.message("NextVersionUpgradeable", GATE)
    assert "1.36 would refuse the configuration of 1.35" in warned
    until(lambda: GATE in cluster.cluster_operator("Upgradeable")[1], 30, "Upgradeable is silent")
    assert cluster.cluster_operator("Upgradeable")[0] == "False"

    cluster.upgrade(V36)
    until(
        lambda: cluster.cluster_operator("Degraded")[0] == "True",
        180,
        lambda: f"the refusal is not reported: {cluster.state()}",
    )
    _, degraded = cluster.cluster_operator("Degraded")
    print(degraded)
    assert GATE in degraded
    assert "1.36" in degraded
    assert "1.35" in degraded
    assert "nodes that kubeadm has upgraded run it without the configuration" in degraded
    written, pid = cluster.on_node("cat", MANIFEST), cluster.scheduler()[0]
    assert image_of(V36) in written
    time.sleep(60)
    assert cluster.on_node("cat", MANIFEST) == written, "what kubeadm wrote stays"
    assert cluster.scheduler()[0] == pid
    assert "--config=" not in cluster.scheduler()[1]
    cluster.schedules()

    cluster.api.request("PATCH", KUBESCHEDULER, {"spec": {"unsupportedConfigOverrides": None}})
    cluster.follows(V36)
    until(lambda: cluster.cluster_operator("Degraded")[0] == "False", 60, "still Degraded")
    cluster.schedules()


def test_a_downgrade_is_followed(clusters: Clusters) -> None:
    cluster = clusters.get(1, V36)
    cluster.upgrade(V35)
    cluster.follows(V35)
    assert V35 in cluster.condition("VersionSkew")[1]
    cluster.schedules()


def test_a_scheduler_that_is_newer_than_its_api_server_is_reported(clusters: Clusters) -> None:
    cluster = clusters.get(1, V35)
    kubeadm.provide_version(cluster.sandbox, V36)
    cluster.operand_image(image_of(V36))
    message = cluster.message("VersionSkew", "newer than its API server")
    assert cluster.condition("VersionSkew")[0] == "True"
    assert f"kube-scheduler {V36} is newer than its API server {V35}" in message
    cluster.operand_image(image_of(V35))
    cluster.follows(V35)
    cluster.operand_image(None)
    until(lambda: cluster.condition("VersionSkew")[0] == "False", 60, lambda: cluster.state())


def test_pods_are_bound_through_two_upgrades(clusters: Clusters) -> None:
    cluster = clusters.get(1, V35)
    cluster.profile("HighNodeUtilization")
    with Load(cluster.api) as load:
        for version in (V36, V37):
            cluster.upgrade(version)
            cluster.follows(version)
    assert reported(load) == 0
    assert f"kube-scheduler is {V37} on every node" in cluster.condition("VersionSkew")[1]
    assert cluster.condition("KubeadmUpgrade")[0] == "False"
    for kind, status in {"Available": "True", "Degraded": "False"}.items():
        assert cluster.cluster_operator(kind)[0] == status
    assert cluster.condition("NextVersionUpgradeable")[0] == "Unknown", "1.38 has no release"
    assert cluster.api.request("GET", SCHEDULER)["spec"]["profile"] == "HighNodeUtilization"
    assert not any("kubeadm-config" in one for one in cluster.warnings())


@contextmanager
def operator_killed_again_and_again(cluster: KubeadmCluster) -> Iterator[list[int]]:
    """Kill the operator every few seconds; the list has an entry for each time."""
    over, kills = threading.Event(), []

    def kill() -> None:
        while not over.wait(random.uniform(2.0, 8.0)):
            with suppress(ApiError):
                kills.extend([1] * kill_an_operator(cluster))

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    try:
        yield kills
    finally:
        over.set()
        thread.join()


def test_an_operator_that_is_killed_in_between_disturbs_nothing(clusters: Clusters) -> None:
    cluster = clusters.get(1, V35)
    with operator_killed_again_and_again(cluster) as kills:
        cluster.upgrade(V36)
        time.sleep(30)
    print(f"{len(kills)} kills")
    assert kills
    cluster.follows(V36)
    cluster.schedules()


def test_after_an_uninstall_kubeadm_upgrades_as_on_an_untouched_cluster(
    clusters: Clusters,
) -> None:
    cluster = clusters.get(1, V36)
    uninstall(cluster)
    cluster.upgrade(V37)
    found = cluster.on_node("cat", MANIFEST)
    assert "kube-scheduler-operator" not in found
    assert "static-pod-resources" not in cluster.on_node("ls", "/etc/kubernetes").split()
    cluster.on_node("rm", MANIFEST)
    kubeadm.run_on(
        cluster.sandbox, cluster.node, "init", "phase", "control-plane", "scheduler",
        f"--kubernetes-version={V37}", version=V37,
    )  # fmt: skip
    assert found == cluster.on_node("cat", MANIFEST), "what kubeadm writes by itself"
    cluster.schedules()


def uninstall(cluster: KubeadmCluster) -> None:
    """Remove the operator as docs/operations.md has it."""
    script = commands("uninstall kustomize kubeadm")
    environment = {
        "PATH": f"{cluster.sandbox.state / 'bin'}:/usr/bin:/bin",
        "HOME": str(cluster.sandbox.state),
        "KUBECONFIG": str(cluster.sandbox.kubeconfig),
    }
    run("sh", "-ec", script, env=environment, cwd=REPOSITORY, timeout=600)
