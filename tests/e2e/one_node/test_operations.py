"""What users and their tools see: metrics, events, status, explain."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.observe import KUBESCHEDULER, OPERATOR_NAMESPACE, SCHEDULER, until

from ..conftest import PODS, Cluster

RESOURCES = "/etc/kubernetes/static-pod-resources"


def _operator_pod(cluster: Cluster) -> Any:
    path = f"{PODS}?labelSelector=app.kubernetes.io%2Fname%3Dkube-scheduler-operator"
    pods = [
        pod
        for pod in cluster.api.request("GET", path)["items"]
        if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
    ]
    return pods[0]


def _scrape(cluster: Cluster, token: str | None) -> tuple[int, str]:
    """GET /metrics from inside the node's network; status code and body."""
    address = _operator_pod(cluster)["status"]["podIP"]
    header = f"Authorization: Bearer {token}" if token else "Accept: text/plain"
    url = f"https://{address}:8443/metrics"
    program = (
        "import ssl, sys, urllib.request, urllib.error\n"
        f"name, _, value = {header!r}.partition(': ')\n"
        f"request = urllib.request.Request({url!r}, headers={{name: value}})\n"
        "try:\n"
        "    answer = urllib.request.urlopen(request, context=ssl._create_unverified_context())\n"
        "    print(answer.status); print(answer.read().decode())\n"
        "except urllib.error.HTTPError as error:\n"
        "    print(error.code); print(error.read().decode())\n"
    )
    text = cluster.on_node(sys.executable, "-c", program)
    code, _, body = text.partition("\n")
    return int(code), body


@pytest.mark.presubmit
def test_metrics_need_a_token_with_the_right_to_read_them(cluster: Cluster) -> None:
    code, body = _scrape(cluster, None)
    assert (code, "token" in body) == (401, True)
    cluster.kubectl("create", "serviceaccount", "scraper")
    try:
        token = cluster.kubectl("create", "token", "scraper").strip()
        code, body = _scrape(cluster, token)
        assert code == 403
        assert "nonResourceURL" in body
        cluster.kubectl(
            "create", "clusterrole", "scraper", "--verb=get", "--non-resource-url=/metrics"
        )
        cluster.kubectl(
            "create", "clusterrolebinding", "scraper", "--clusterrole=scraper",
            "--serviceaccount=default:scraper",
        )  # fmt: skip

        def is_allowed() -> bool:
            nonlocal body
            code, body = _scrape(cluster, token)
            return code == 200

        until(is_allowed, 30, "still refused")  # a refusal is remembered for ten seconds
    finally:
        cluster.kubectl("delete", "serviceaccount/scraper", "--ignore-not-found")
        cluster.kubectl("delete", "clusterrole/scraper", "--ignore-not-found")
        cluster.kubectl("delete", "clusterrolebinding/scraper", "--ignore-not-found")
    values = dict(
        line.rsplit(" ", 1) for line in body.splitlines() if line and not line.startswith("#")
    )
    assert float(values["kube_scheduler_operator_latest_available_revision"]) == cluster.latest
    node = f'kube_scheduler_operator_node_current_revision{{node="{cluster.node.name}"}}'
    assert float(values[node]) == cluster.current
    assert float(values["cluster_master_schedulable"]) == 0
    passed = float(values["kube_scheduler_operator_last_successful_pass_timestamp_seconds"])
    assert abs(time.time() - passed) < 120


@pytest.fixture
def few_revisions(cluster: Cluster) -> Iterator[None]:
    """As few of them are kept as possible."""
    limits = {"failedRevisionLimit": 1, "succeededRevisionLimit": 1}
    cluster.api.request("PATCH", KUBESCHEDULER, {"spec": limits})
    yield
    cluster.api.request("PATCH", KUBESCHEDULER, {"spec": dict.fromkeys(limits)})


@pytest.mark.usefixtures("few_revisions")
def test_old_revisions_are_pruned_in_the_api_and_on_the_disk(cluster: Cluster) -> None:
    edited = cluster.profile(cluster.another_profile()).revision
    path = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/configmaps"

    def numbers(prefix: str) -> set[int]:
        found = [item["metadata"]["name"] for item in cluster.api.request("GET", path)["items"]]
        names = [name.removeprefix(prefix) for name in found if name.startswith(prefix)]
        return {int(name) for name in names if name.isdecimal()}

    kept: set[int] = set()

    def pruned() -> bool:
        # Read each time: another one may be pruned in between.
        kept.clear()
        kept.update(numbers("revision-status-"))
        return len(kept) <= 3 and all(
            numbers(prefix) == kept for prefix in ("config-", "kube-scheduler-pod-")
        )

    # What runs, what the node would go back to, and for the latter perhaps a proof of its failure.
    until(pruned, 60, lambda: f"of the revisions, {sorted(kept)} are still there")
    assert edited in kept
    names = cluster.on_node("ls", RESOURCES).split()
    on_disk = {
        int(name.rpartition("-")[2]) for name in names if name.startswith("kube-scheduler-pod-")
    }
    assert edited in on_disk
    # The installer got its list when it started, so one more old revision may be there.
    assert len(on_disk - kept) <= 2, (on_disk, kept)
    assert "kube-scheduler-stock" in names


def test_decisions_are_events_in_the_operators_namespace(cluster: Cluster) -> None:
    # A new operator, because the rate of events of one operator is limited.
    old = set(cluster.operators)
    for pod in old:
        cluster.api.request("DELETE", f"{PODS}/{pod}")
    until(lambda: not old & set(cluster.operators), 60, "the operator does not end")
    cluster.rest()
    line = cluster.profile(cluster.another_profile())
    reasons = ("StartingNewRevision", "NodeTargetRevisionChanged", "NodeCurrentRevisionChanged")

    def reported() -> bool:
        found = [e for e in cluster.events() if str(line.revision) in e]
        return all(any(e.startswith(reason) for e in found) for reason in reasons)

    until(reported, 30, f"not all of {reasons} are there")


@pytest.mark.presubmit
def test_kubectl_scheduler_status_is_one_screen(cluster: Cluster) -> None:
    done = cluster.plugin("status")
    assert done.returncode == 0, done.stderr + done.stdout
    assert f"Revision   {cluster.latest}" in done.stdout
    assert cluster.node.name in done.stdout
    assert len(done.stdout.splitlines()) < 25
    verbose = cluster.plugin("status", "--verbose").stdout
    assert "--config=" in verbose
    assert "kubeconfig" in verbose


def test_the_status_is_available_in_the_operators_pod(cluster: Cluster) -> None:
    """With the operator's own rights, for users without the plugin."""
    words = ("exec", "deploy/kube-scheduler-operator", "--", "kubectl-scheduler", "status")
    shown = cluster.kubectl("-n", OPERATOR_NAMESPACE, *words)
    assert f"Revision   {cluster.latest}" in shown


@pytest.mark.presubmit
def test_an_edit_can_be_listed_compared_and_undone(cluster: Cluster) -> None:
    path = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/configmaps"
    first = cluster.profile(cluster.another_profile()).revision
    profile = cluster.api.request("GET", SCHEDULER)["spec"]["profile"]
    second = cluster.profile(cluster.another_profile()).revision

    def newest() -> dict[str, Any]:
        entry: dict[str, Any] = json.loads(cluster.plugin("history", "-o", "json").stdout)[0]
        return entry

    until(lambda: newest()["outcome"] == "installed", 30, "the outcome is not written down")
    assert (newest()["revision"], newest()["nodes"]) == (second, [cluster.node.name])
    assert newest()["changes"], "no changes are listed"
    assert cluster.plugin("diff").returncode == 1
    assert cluster.plugin("diff", str(second), str(second)).returncode == 0

    undone = cluster.plugin("rollout", "undo", "--yes")
    assert undone.returncode == 0, undone.stderr
    watched = cluster.plugin("rollout", "watch", "--timeout", "120")
    assert watched.returncode == 0, watched.stdout + watched.stderr
    assert cluster.current == second + 1
    assert cluster.api.request("GET", SCHEDULER)["spec"]["profile"] == profile
    then, now = (cluster.api.request("GET", f"{path}/config-{n}") for n in (first, second + 1))
    assert then["data"] == now["data"]


@pytest.mark.presubmit
def test_the_cache_of_a_scheduler_is_dumped_without_remains(cluster: Cluster) -> None:
    pid, _ = cluster.scheduler()
    done = cluster.plugin("dump-cache", "-o", "json")
    assert done.returncode == 0, done.stderr
    dump = json.loads(done.stdout)
    assert cluster.node.name in [node["name"] for node in dump["nodes"]]
    mirror = f"kube-scheduler-{cluster.node.name}"
    assert mirror in [pod["name"] for node in dump["nodes"] for pod in node["pods"]]
    assert cluster.scheduler()[0] == pid, "the signal killed it"
    labelled = f"{PODS}?labelSelector=app%3Dkube-scheduler-signal"
    until(lambda: not cluster.api.request("GET", labelled)["items"], 30, "the pod is left over")


def test_a_heap_profile_is_fetched_and_profiling_is_disabled_again(
    cluster: Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "heap"
    done = cluster.plugin("pprof", "heap", "-o", str(file))
    assert done.returncode == 0, done.stderr
    assert file.read_bytes()[:2] == b"\x1f\x8b", "pprof's format is gzip"

    def profiling() -> Any:
        return json.loads(cluster.plugin("status", "-o", "json").stdout)["profilingSince"]

    until(lambda: profiling() == 0, 120, "profiling stays enabled")
    assert cluster.plugin("rollout", "watch", "--timeout", "120").returncode == 0
    left = cluster.kubectl("get", "clusterrole,clusterrolebinding", "-o", "name")
    assert "kube-scheduler-pprof" not in left


def test_must_gather_has_the_logs_and_no_key(cluster: Cluster, tmp_path: Path) -> None:
    done = cluster.plugin("must-gather", "--dest", str(tmp_path / "report"))
    assert done.returncode == 0, done.stderr
    texts = {
        str(path.relative_to(tmp_path)): path.read_text()
        for path in (tmp_path / "report").rglob("*")
        if path.is_file()
    }
    logs = [text for path, text in texts.items() if path.endswith("current.log")]
    assert any("kube-scheduler" in path for path in texts if path.endswith("current.log"))
    assert any(logs)
    assert not any("PRIVATE KEY" in text for text in texts.values())


def test_kubectl_explain_describes_the_fields(cluster: Cluster) -> None:
    text = cluster.kubectl("explain", "kubescheduler.spec.logLevel")
    for word in ("Normal", "Debug", "Trace", "TraceAll", "10"):
        assert word in text


def test_the_operator_log_has_no_secrets_and_no_bodies(cluster: Cluster) -> None:
    log = cluster.kubectl("-n", OPERATOR_NAMESPACE, "logs", "deployment/kube-scheduler-operator")
    assert "BEGIN" not in log
    assert "client-key-data" not in log
    assert '"metadata"' not in log


def test_unmanaged_changes_nothing_and_is_reported(cluster: Cluster) -> None:
    cluster.api.request("PATCH", KUBESCHEDULER, {"spec": {"managementState": "Unmanaged"}})
    until(
        lambda: cluster.cluster_operator("Available")[0] == "Unknown", 20, "Unknown is not reported"
    )
    latest = cluster.latest
    cluster.api.request("PATCH", KUBESCHEDULER, {"spec": {"logLevel": "Debug"}})
    time.sleep(3)
    assert cluster.latest == latest
    assert "Unmanaged" in json.dumps(cluster.cluster_operator("Degraded"))
