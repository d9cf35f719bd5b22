"""A real node that is laid out as OpenShift's are: bootstrap, rollout, certificates."""

from __future__ import annotations

import base64
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster import model, openshift
from cluster.observe import CLUSTEROPERATOR, SCHEDULER, until
from kube_scheduler_operator.base.platform import OPENSHIFT

from .conftest import NAME_OF_OPENSHIFT, Cluster, up
from .faults import pids

TARGET = f"/api/v1/namespaces/{OPENSHIFT.target_namespace}"
SOURCE = f"/api/v1/namespaces/openshift-config-managed/secrets/{openshift.CLIENT_CERTIFICATE}"
LEASE = (
    f"/apis/coordination.k8s.io/v1/namespaces/{OPENSHIFT.target_namespace}/leases/kube-scheduler"
)
ON_NODE = (
    "/etc/kubernetes/static-pod-resources/kube-scheduler-certs/secrets/"
    f"{openshift.CLIENT_CERTIFICATE}/tls.crt"
)


@pytest.fixture(scope="module")
def openshift_cluster() -> Iterator[Cluster]:
    with up(NAME_OF_OPENSHIFT, 1, 0, with_operator=True, platform=model.OPENSHIFT) as sandbox:
        yield Cluster(sandbox)


@pytest.fixture
def ocp(openshift_cluster: Cluster) -> Cluster:
    """The settled cluster."""
    until(openshift_cluster.calm, 120, lambda: f"not settled: {openshift_cluster.status}")
    return openshift_cluster


def holder(cluster: Cluster) -> str:
    return str(cluster.api.request("GET", LEASE)["spec"]["holderIdentity"])


def renew(cluster: Cluster, name: str) -> str:
    """Renew the client certificate where the cluster keeps it; the new one, PEM."""
    secret = openshift.client_certificate(cluster.sandbox, name)
    cluster.api.request("PATCH", SOURCE, {"data": secret["data"]})
    return base64.b64decode(secret["data"]["tls.crt"]).decode()


def arrives(cluster: Cluster, certificate: str) -> float:
    """Seconds until a renewed certificate is on the node."""
    begun = time.monotonic()
    until(lambda: cluster.on_node("cat", ON_NODE) == certificate, 60, "it does not arrive")
    return time.monotonic() - begun


def test_the_control_plane_has_its_own_scheduler(ocp: Cluster) -> None:
    known = [node["metadata"]["name"] for node in ocp.api.request("GET", "/api/v1/nodes")["items"]]
    assert known == [ocp.node.name], "the bootstrap machine has gone"
    pid, line = ocp.scheduler()
    assert pid
    assert "--tls-min-version=VersionTLS12" in line
    assert "--cert-dir=/var/run/kubernetes" in line
    pod = ocp.api.request("GET", f"{TARGET}/pods/openshift-kube-scheduler-{ocp.node.name}")
    assert pod["metadata"]["labels"]["app"] == "openshift-kube-scheduler"


def test_an_edit_rolls_out(ocp: Cluster) -> None:
    line = ocp.edit(SCHEDULER, {"profile": "HighNodeUtilization"})
    assert line.outcome == "installed", line.message
    files = ocp.on_node("ls", "/etc/kubernetes/manifests").split()
    assert files == ["kube-scheduler-pod.yaml"]


def test_the_cluster_operator_has_the_versions_of_the_release(ocp: Cluster) -> None:
    status = ocp.api.request("GET", CLUSTEROPERATOR)["status"]
    assert {one["name"]: one["version"] for one in status["versions"]} == {
        "operator": openshift.VERSION,
        "raw-internal": openshift.VERSION,
        "kube-scheduler": ocp.sandbox.kubernetes.removeprefix("v"),
    }


def test_the_upgrade_of_the_cluster_completes(ocp: Cluster) -> None:
    def completed() -> bool:
        path = "/apis/config.openshift.io/v1/clusterversions/version"
        history = ocp.api.request("GET", path)["status"]["history"]
        return (history[0]["state"], history[0]["version"]) == ("Completed", openshift.VERSION)

    until(completed, 120, "the release is not complete")


def test_pods_and_lease_are_found_by_their_usual_names(ocp: Cluster) -> None:
    namespace = OPENSHIFT.target_namespace
    for label in ("openshift-kube-scheduler", "installer", "guard"):
        assert ocp.kubectl("-n", namespace, "get", "pods", "-l", f"app={label}", "-o", "name")
    shown = ocp.kubectl(
        "-n", namespace, "get", "lease", "kube-scheduler", "-o", "jsonpath={.spec.holderIdentity}"
    )
    assert shown
    pod = f"openshift-kube-scheduler-{ocp.node.name}"
    assert ocp.kubectl("-n", namespace, "logs", pod, "-c", "kube-scheduler", "--tail=5")


def test_the_policy_config_map_is_mirrored_with_the_rights_of_the_operator(ocp: Cluster) -> None:
    users = "/api/v1/namespaces/openshift-config/configmaps"
    latest = ocp.latest
    ocp.api.create(users, {"metadata": {"name": "my-policy"}, "data": {"policy.cfg": "1"}})
    ocp.api.request("PATCH", SCHEDULER, {"spec": {"policy": {"name": "my-policy"}}})

    def copied() -> bool:
        found = ocp.api.request("GET", f"{TARGET}/configmaps")["items"]
        return any(one["metadata"]["name"] == "policy-configmap" for one in found)

    until(copied, 30, "no copy")
    ocp.api.request("PATCH", SCHEDULER, {"spec": {"policy": None}})
    until(lambda: not copied(), 30, "the copy stays")
    ocp.api.request("DELETE", f"{users}/my-policy")
    assert ocp.latest == latest


def test_a_flag_of_openshifts_fork_is_refused_by_a_stock_image(ocp: Cluster) -> None:
    before = ocp.scheduler()
    line = ocp.override({"arguments": {"unsupported-kube-api-over-localhost": "true"}})
    assert line.outcome == "refused", line
    status, message = ocp.condition("PreflightDegraded")
    assert status == "True"
    assert "unknown flag: --unsupported-kube-api-over-localhost" in message
    assert ocp.scheduler() == before
    ocp.override(None)


def test_a_renewed_certificate_arrives_and_no_scheduler_is_disturbed(ocp: Cluster) -> None:
    before, latest = ocp.scheduler(), ocp.latest
    seconds = arrives(ocp, renew(ocp, "renewed"))
    print(f"on the node after {seconds:.0f} s")
    assert (ocp.scheduler(), ocp.latest) == (before, latest)
    reasons = {e["reason"] for e in ocp.api.request("GET", f"{TARGET}/events")["items"]}
    assert "CertificateUpdated" in reasons


def test_a_renewed_certificate_arrives_while_no_operator_runs(ocp: Cluster) -> None:
    operators = pids("kube-scheduler-operator", "--platform=openshift")
    assert operators
    try:
        for pid in operators:
            os.kill(pid, signal.SIGSTOP)
        arrives(ocp, renew(ocp, "renewed-again"))
    finally:
        for pid in operators:
            os.kill(pid, signal.SIGCONT)


def test_the_syncer_is_small(ocp: Cluster) -> None:
    found = pids("cert-syncer", "--certs-dir")
    assert found
    sizes = [_resident(pid) for pid in found]
    print(f"resident: {', '.join(f'{size:.0f}' for size in sizes)} MiB")
    assert all(0 < size < 45 for size in sizes)


def _resident(pid: int) -> float:
    """MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    words: Any = next(line for line in lines if line.startswith("VmRSS")).split()
    return int(words[1]) / 1024


def test_no_account_on_the_node_is_an_administrator(ocp: Cluster) -> None:
    """No binding to cluster-admin, and no token of the operator on the disk."""
    path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    bindings = ocp.api.request("GET", path)["items"]
    ours = [
        subject["name"]
        for binding in bindings
        if binding["roleRef"]["name"] == "cluster-admin"
        for subject in binding.get("subjects", [])
        if "openshift-kube-scheduler" in str(subject)
    ]
    assert ours == []
    script = "grep -rlE 'token:|\"token\"' /etc/kubernetes/static-pod-resources || true"
    assert ocp.on_node("sh", "-c", script) == ""


@pytest.mark.soak
def test_the_lease_goes_from_the_bootstrap_machine_to_the_control_plane(ocp: Cluster) -> None:
    """It is one Lease, so two never were at work; OpenShift's lasts 137 s, for small clusters."""
    until(lambda: holder(ocp).startswith(f"{ocp.node.name}_"), 180, lambda: holder(ocp))
    ocp.schedules()
    status, message = ocp.cluster_operator("Available")
    assert status == "True", message


def test_a_hand_edit_that_keeps_the_label_stays_reported_until_the_next_revision(
    ocp: Cluster,
) -> None:
    """The documented way to enable profiling: the configuration, and a blank in the manifest."""
    number = ocp.current
    manifest = f"{OPENSHIFT.manifest_dir}/{OPENSHIFT.manifest_file}"
    config = f"{OPENSHIFT.resource_dir}/kube-scheduler-pod-{number}/configmaps/config/config.yaml"
    guard = f"{TARGET}/pods/openshift-kube-scheduler-guard-{ocp.node.name}"
    until(lambda: ocp.api.request("GET", guard)["status"]["phase"] == "Running", 60, "no guard")
    ocp.on_node("sed", "-i", 's/"enableProfiling":false/"enableProfiling":true/', config)
    ocp.on_node("sh", "-c", f"echo ' ' >> {manifest}")
    edited = ocp.on_node("cat", manifest)
    until(lambda: config in ocp.condition("HandEdits")[1], 60, "the file is not reported")
    until(lambda: manifest in ocp.condition("HandEdits")[1], 60, "the manifest is not reported")
    time.sleep(60)
    status, message = ocp.condition("HandEdits")
    assert status == "True"
    assert "stays until the next revision" in message
    assert ocp.on_node("cat", manifest) == edited
    assert '"enableProfiling":true' in ocp.on_node("cat", config)
    assert ocp.condition("StaticPodsDegraded")[0] == "False"
    assert ocp.scheduler()[0]
    assert ocp.current == number
    line = ocp.edit(SCHEDULER, {"profile": ""})
    assert line.outcome == "installed", line.message
    until(lambda: ocp.condition("HandEdits")[0] == "False", 60, "still reported")
