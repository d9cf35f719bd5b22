"""What the real kubeadm does to control-plane nodes besides upgrades, and the rule for each."""

from __future__ import annotations

import time

import pytest
import yaml

from cluster import kubeadm, node_files
from cluster.api import ApiError
from cluster.model import Node
from cluster.observe import SCHEDULER, until

from ..conftest import MANIFEST, Cluster
from .conftest import V35, Clusters, KubeadmCluster

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600, func_only=True)]

CLUSTER_CONFIGURATION = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config"
FLAG = {"name": "authorization-webhook-cache-authorized-ttl", "value": "20s"}


@pytest.fixture
def cluster(clusters: Clusters) -> KubeadmCluster:
    """Three settled nodes of 1.35."""
    return clusters.get(3, V35)


def certificate(cluster: Cluster, node: Node) -> str:
    """The client certificate in a node's scheduler.conf."""
    found = yaml.safe_load(cluster.on_node("cat", "/etc/kubernetes/scheduler.conf", node=node))
    return str(found["users"][0]["user"]["client-certificate-data"])


def test_renewed_certificates_restart_one_scheduler_after_the_other(
    cluster: KubeadmCluster,
) -> None:
    before, latest = cluster.schedulers, cluster.latest
    old = {node.name: certificate(cluster, node) for node in cluster.sandbox.nodes}
    for node in cluster.sandbox.nodes:
        kubeadm.run_on(cluster.sandbox, node, "certs", "renew", "scheduler.conf")
    fewest = len(before)

    def restarted() -> bool:
        nonlocal fewest
        now = cluster.schedulers
        fewest = min(fewest, sum(pid > 0 for pid in now.values()))
        return all(pid not in (0, before[name]) for name, pid in now.items())

    begin = time.monotonic()
    until(restarted, 240, lambda: f"not restarted: {before} {cluster.schedulers}")
    print(f"all restarted after {time.monotonic() - begin:.0f} s, {fewest} ran at least")
    assert fewest >= 2
    for node in cluster.sandbox.nodes:
        assert certificate(cluster, node) != old[node.name]
    until(cluster.calm, 60, lambda: cluster.state())
    assert cluster.latest == latest, "the same revision"
    assert any("scheduler.conf changed: restarting" in event for event in cluster.events())
    cluster.schedules()


def configuration(cluster: Cluster) -> dict[str, object]:
    """ClusterConfiguration, as kubeadm stored it."""
    data = cluster.api.request("GET", CLUSTER_CONFIGURATION)["data"]
    found: dict[str, object] = yaml.safe_load(data["ClusterConfiguration"])
    return found


def configure(cluster: Cluster, found: dict[str, object]) -> None:
    """Store another ClusterConfiguration."""
    patch = {"data": {"ClusterConfiguration": yaml.safe_dump(found)}}
    cluster.api.request("PATCH", CLUSTER_CONFIGURATION, patch)


def test_changed_arguments_are_put_back_and_the_field_for_them_is_named(
    cluster: KubeadmCluster,
) -> None:
    stored = configuration(cluster)
    changed = {**stored, "scheduler": {"extraArgs": [FLAG]}}
    shown = f"--{FLAG['name']}={FLAG['value']}"
    node, *others = cluster.sandbox.nodes
    undisturbed = {one.name: cluster.schedulers[one.name] for one in others}
    before = cluster.on_node("cat", MANIFEST)
    configure(cluster, changed)
    (warning,) = [one for one in cluster.warnings() if "kubeadm-config" in one]
    print(warning)
    assert f"scheduler.extraArgs sets {shown}, which the operator does not use" in warning
    assert "spec.unsupportedConfigOverrides.arguments" in warning

    folder = node_files.root(cluster.sandbox, node) / "etc/kubernetes"
    (folder / "changed.yaml").write_text(yaml.safe_dump(changed))
    kubeadm.run_on(
        cluster.sandbox, node, "init", "phase", "control-plane", "scheduler",
        "--config=/etc/kubernetes/changed.yaml",
    )  # fmt: skip
    assert shown in cluster.on_node("cat", MANIFEST)
    message = cluster.message("StaticPodsDegraded", "has kubeadm's form")
    print(message)
    assert f"the manifest on {node.name} has kubeadm's form" in message
    assert "spec.unsupportedConfigOverrides.arguments" in message
    # The file does not exist for the moment in which it is replaced.
    read = ("sh", "-c", f"cat {MANIFEST} || true")
    until(lambda: cluster.on_node(*read) == before, 120, "not put back")
    until(cluster.calm, 120, lambda: cluster.state())
    assert {one.name: cluster.schedulers[one.name] for one in others} == undisturbed

    cluster.override({"arguments": {FLAG["name"]: FLAG["value"]}})
    for one in cluster.sandbox.nodes:
        assert shown in cluster.scheduler(one)[1]
    assert not any("kubeadm-config" in one for one in cluster.warnings())
    configure(cluster, stored)


def test_a_node_that_was_reset_holds_up_no_other_and_joins_again(cluster: KubeadmCluster) -> None:
    *others, gone = cluster.sandbox.nodes
    kubeadm.reset(cluster.sandbox, gone)
    latest = cluster.latest
    cluster.api.request("PATCH", SCHEDULER, {"spec": {"profile": cluster.another_profile()}})

    def revisions() -> dict[str, int]:
        found = cluster.status.get("nodeStatuses") or ()
        return {entry["nodeName"]: entry.get("currentRevision", 0) for entry in found}

    until(
        lambda: all(revisions()[node.name] > latest for node in others),
        300,
        lambda: f"the others do not follow: {cluster.state()}",
    )
    assert gone.name in cluster.message("NodeControllerDegraded", gone.name)
    cluster.schedules()

    cluster.api.request("DELETE", f"/api/v1/nodes/{gone.name}")
    until(lambda: gone.name not in revisions(), 60, lambda: cluster.state())
    until(lambda: cluster.cluster_operator("Degraded")[0] == "False", 60, lambda: cluster.state())
    cluster.on_node("rm", "-rf", "/etc/kubernetes/static-pod-resources", node=gone)
    joins(cluster, gone, V35)


def joins(cluster: KubeadmCluster, node: Node, version: str) -> None:
    """Let a machine join as a control-plane node; the operator brings it its revision."""
    undisturbed = {name: pid for name, pid in cluster.schedulers.items() if name != node.name}
    latest = cluster.latest
    kubeadm.join(cluster.sandbox, node, cluster.node)
    progressing = set()

    def joined() -> bool:
        try:
            progressing.add(cluster.cluster_operator("Progressing")[0])
            return cluster.runs(node, version) and cluster.calm()
        except ApiError:
            return False

    until(joined, 300, lambda: f"no revision on {node.name}: {cluster.state()}")
    assert progressing == {"False"}, "nodes that join are not a rollout"
    assert cluster.latest == latest
    now = cluster.schedulers
    assert {name: now[name] for name in undisturbed} == undisturbed
