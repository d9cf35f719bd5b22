"""Edit a Scheduler or KubeScheduler, and a real kubelet runs the new revision."""

from __future__ import annotations

import json

import pytest

from cluster.observe import CLUSTEROPERATOR, KUBESCHEDULER, OPERATOR_NAMESPACE, SCHEDULER, until

from ..conftest import MANIFEST, Cluster

# The first test is about the adoption of the stock scheduler by a new operator.
pytestmark = [pytest.mark.core, pytest.mark.runs_first, pytest.mark.presubmit]


def test_the_stock_scheduler_is_adopted_under_its_own_name(cluster: Cluster) -> None:
    assert cluster.current >= 1
    pods = cluster.api.request(
        "GET", "/api/v1/namespaces/kube-system/pods?labelSelector=component%3Dkube-scheduler"
    )["items"]
    assert [pod["metadata"]["name"] for pod in pods] == [f"kube-scheduler-{cluster.node.name}"]
    assert pods[0]["metadata"]["labels"]["revision"] == str(cluster.current)
    kept = cluster.on_node(
        "cat", "/etc/kubernetes/static-pod-resources/kube-scheduler-stock/kube-scheduler.yaml"
    )
    assert "--leader-elect=true" in kept
    files = cluster.on_node("ls", "-A", "/etc/kubernetes/manifests").split()
    assert files == ["kube-scheduler.yaml"], "the kubelet runs every file in there"
    leases = cluster.api.request(
        "GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    )
    schedulers = [
        x["metadata"]["name"] for x in leases["items"] if "scheduler" in x["metadata"]["name"]
    ]
    assert schedulers == ["kube-scheduler"]


def test_a_profile_edit_reaches_the_running_process(cluster: Cluster) -> None:
    before, _ = cluster.scheduler()
    line = cluster.profile("HighNodeUtilization")
    assert line.outcome == "installed"
    pid, command = cluster.scheduler()
    assert pid not in (0, before)
    assert "--config=/etc/kubernetes/static-pod-resources/configmaps/config/config.yaml" in command
    path = f"/etc/kubernetes/static-pod-resources/kube-scheduler-pod-{line.revision}"
    config = json.loads(cluster.on_node("cat", f"{path}/configmaps/config/config.yaml"))
    assert config["profiles"][0]["plugins"]["score"]["enabled"] == [
        {"name": "NodeResourcesFit", "weight": 5}
    ]
    assert cluster.current == cluster.latest == line.revision
    status = cluster.revision_status
    outcome = "kube-scheduler-operator.dev/outcome"  # it is written after nodeStatuses
    until(lambda: status(line.revision).get(outcome) == "installed", 30, "no outcome")
    cluster.schedules()


def test_log_levels_become_verbosity(cluster: Cluster) -> None:
    line = cluster.edit(KUBESCHEDULER, {"logLevel": "TraceAll"})
    assert line.outcome == "installed"
    _, command = cluster.scheduler()
    assert "-v=10" in command.split()


def test_the_cluster_operator_reports_the_state(cluster: Cluster) -> None:
    until(lambda: cluster.cluster_operator("Available")[0] == "True", 30, "not Available")
    row = cluster.kubectl("get", "clusteroperator", "kube-scheduler").splitlines()
    assert row[0].split()[:6] == [
        "NAME",
        "VERSION",
        "AVAILABLE",
        "PROGRESSING",
        "DEGRADED",
        "SINCE",
    ]
    assert row[1].split()[2:5] == ["True", "False", "False"]
    versions = cluster.api.request("GET", CLUSTEROPERATOR)["status"]["versions"]
    assert {"name": "kube-scheduler", "version": cluster.sandbox.kubernetes} in versions


def test_a_misspelt_plugin_is_reported_and_nothing_is_touched(cluster: Cluster) -> None:
    before, latest = cluster.scheduler(), cluster.latest
    plugins = {"score": {"enabled": [{"name": "NodeResourcesFitt"}]}}
    line = cluster.override({"profiles": [{"plugins": plugins}]})
    assert line.outcome == "rejected"
    assert "NodeResourcesFitt" in line.message
    assert "NodeResourcesFit?" in line.message or 'NodeResourcesFit"' in line.message
    until(lambda: cluster.cluster_operator("Degraded")[0] == "True", 10, "not Degraded")
    assert "NodeResourcesFitt" in cluster.cluster_operator("Degraded")[1]
    assert cluster.scheduler() == before
    assert cluster.latest == latest
    cluster.schedules()


def test_a_configuration_that_kube_scheduler_refuses_is_rejected_before_anything_stops(
    cluster: Cluster,
) -> None:
    before, current = cluster.scheduler(), cluster.current
    # Each flag is right; kube-scheduler refuses them together.
    arguments = {"logging-format": "json", "vmodule": "scheduler=5"}
    line = cluster.override({"arguments": arguments})
    assert line.outcome == "refused", line
    assert "vmodule" in line.message
    assert cluster.scheduler() == before
    assert (
        cluster.revision_status(cluster.latest)["kube-scheduler-operator.dev/outcome"] == "refused"
    )
    # Taking it back costs no restart: nothing ever left the revision before.
    cluster.override(None)
    cluster.rest()
    assert cluster.scheduler() == before
    assert cluster.current == current
    # The next edit is tried at once.
    assert cluster.profile("NoScoring").outcome == "installed"


def test_a_new_force_redeployment_reason_rolls_out_the_same_configuration(cluster: Cluster) -> None:
    before, _ = cluster.scheduler()
    line = cluster.edit(KUBESCHEDULER, {"forceRedeploymentReason": f"test {cluster.latest}"})
    assert line.outcome == "installed"
    assert cluster.scheduler()[0] != before


def test_an_edit_during_a_rollout_is_rolled_out(cluster: Cluster) -> None:
    spec = cluster.api.request("GET", SCHEDULER)["spec"]
    if spec.get("profile") != "NoScoring":  # or the second edit would be back to what runs
        assert cluster.profile("NoScoring").outcome == "installed"
    latest = cluster.latest
    cluster.api.request("PATCH", SCHEDULER, {"spec": {"profile": "HighNodeUtilization"}})
    until(lambda: cluster.latest > latest, 30, "no revision")
    line = cluster.profile("LowNodeUtilization")
    assert line.outcome == "installed"
    assert cluster.current == cluster.latest
    config = json.loads(
        cluster.api.request("GET", f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/configmaps/config")[
            "data"
        ]["config.yaml"]
    )
    assert "profiles" not in config, "kube-scheduler's own defaults are what this profile is"
    assert cluster.scheduler()[0]


def test_the_node_keeps_exactly_one_manifest_with_restricted_rights(cluster: Cluster) -> None:
    assert cluster.on_node("stat", "-c", "%a", MANIFEST).strip() == "600"
