"""A real node whose files and labels are edited by hand: what it runs is known by content."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from cluster.observe import until

from ..conftest import Cluster

MANIFEST = "/etc/kubernetes/manifests/kube-scheduler.yaml"
MIRROR_PODS = "/api/v1/namespaces/kube-system/pods"
LARGEST = "9223372036854775807"


def guarded(cluster: Cluster) -> bool:
    """Whether the node's guard has looked at the disk and runs."""
    path = "/api/v1/namespaces/kube-scheduler-operator/pods?labelSelector=app%3Dguard"
    return any(
        status.get("ready")
        for pod in cluster.api.request("GET", path)["items"]
        if "deletionTimestamp" not in pod["metadata"]
        for status in pod["status"].get("containerStatuses", ())
    )


def looks(cluster: Cluster) -> dict[str, Any]:
    """Node -> what its guard reported before it started."""
    path = "/api/v1/namespaces/kube-scheduler-operator/pods?labelSelector=app%3Dguard"
    return {
        pod["spec"]["nodeName"]: json.loads(status["state"]["terminated"]["message"])
        for pod in cluster.api.request("GET", path)["items"]
        for status in pod["status"].get("initContainerStatuses", ())
        if "terminated" in status["state"]
    }


def content(cluster: Cluster, path: str) -> str:
    """A file of the node; empty while an installer replaces it."""
    return cluster.on_node("sh", "-c", f"cat {path} 2>/dev/null || true")


def edits(cluster: Cluster) -> tuple[str, str]:
    return cluster.condition("HandEdits")


def test_a_guard_reports_the_boot_that_the_kubelet_reports(cluster: Cluster) -> None:
    until(lambda: guarded(cluster), 120, "no guard")
    nodes = cluster.api.request("GET", "/api/v1/nodes")["items"]
    boots = {node["metadata"]["name"]: node["status"]["nodeInfo"]["bootID"] for node in nodes}
    for node, look in looks(cluster).items():
        assert look["boot"] == boots[node] != ""
        assert look["uptime"] > 0


@pytest.mark.presubmit
@pytest.mark.core
def test_a_manifest_edited_by_hand_that_keeps_its_label_is_noticed_and_put_back(
    cluster: Cluster,
) -> None:
    until(lambda: guarded(cluster), 120, "no guard")
    latest, before = cluster.latest, content(cluster, MANIFEST)
    cluster.on_node("sed", "-i", "s/-v=2/-v=4/", MANIFEST)
    begun = time.monotonic()
    until(lambda: edits(cluster)[0] == "True", 120, "not reported")
    reported = time.monotonic() - begun
    assert f"{MANIFEST} changed since revision {latest} was installed" in edits(cluster)[1]
    until(lambda: content(cluster, MANIFEST) == before, 60, "not put back")
    until(lambda: "-v=2" in cluster.scheduler()[1], 60, "the scheduler runs with the edit")
    until(cluster.calm, 60, lambda: f"not calm: {cluster.status}")
    print(f"reported after {reported:.0f} s, put back after {time.monotonic() - begun:.0f} s")
    assert edits(cluster)[0] == "False"
    assert cluster.latest == latest, "no new revision"
    cluster.schedules()


def test_an_edited_file_of_the_revision_is_put_back_and_the_scheduler_restarted(
    cluster: Cluster,
) -> None:
    until(lambda: guarded(cluster), 120, "no guard")
    pid, latest = cluster.scheduler()[0], cluster.latest
    path = (
        f"/etc/kubernetes/static-pod-resources/kube-scheduler-pod-{cluster.current}"
        "/configmaps/config/config.yaml"
    )
    before = content(cluster, path)
    cluster.on_node("sh", "-c", f"echo '# edited' >> {path}")
    until(lambda: edits(cluster)[0] == "True", 120, "not reported")
    until(lambda: content(cluster, path) == before, 60, "not put back")
    until(lambda: cluster.scheduler()[0] not in (0, pid), 60, "the scheduler was not restarted")
    until(cluster.calm, 60, lambda: f"not calm: {cluster.status}")
    assert cluster.latest == latest


def test_a_label_of_the_mirror_pod_makes_no_revision(cluster: Cluster) -> None:
    until(lambda: guarded(cluster), 120, "no guard")
    scheduler, latest = cluster.scheduler(), cluster.latest
    name = f"kube-scheduler-{cluster.node.name}"
    cluster.kubectl("-n", "kube-system", "label", "pod", name, f"revision={LARGEST}", "--overwrite")
    until(lambda: "does not count" in edits(cluster)[1], 90, "the label is not reported")
    time.sleep(5)
    assert (cluster.latest, cluster.scheduler()) == (latest, scheduler)
    # The next edit gets the next number, and the kubelet creates the mirror pod again.
    cluster.profile(cluster.another_profile())
    assert cluster.latest == latest + 1
    pod = cluster.api.request("GET", f"{MIRROR_PODS}/{name}")
    assert pod["metadata"]["labels"]["revision"] == str(latest + 1)
    until(lambda: edits(cluster)[0] == "False", 30, "still reported")
