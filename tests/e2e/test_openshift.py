"""A real node that is laid out as OpenShift's are: bootstrap, rollout, certificates."""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster import agnhost, lifecycle, model, nodes, openshift, pki
from cluster.console import CommandError, run
from cluster.observe import CLUSTEROPERATOR, SCHEDULER, delete_pod, until
from kube_scheduler_operator.base.platform import OPENSHIFT

from .conftest import NAME_OF_OPENSHIFT, PODS_IN_DEFAULT, Cluster, up
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
    with up(
        NAME_OF_OPENSHIFT, 1, 0, with_operator=True, kind=lifecycle.ClusterKind(model.OPENSHIFT)
    ) as sandbox:
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


@pytest.mark.presubmit
def test_the_control_plane_has_its_own_scheduler(ocp: Cluster) -> None:
    known = [node["metadata"]["name"] for node in ocp.api.request("GET", "/api/v1/nodes")["items"]]
    assert known == [ocp.node.name], "the bootstrap machine has gone"
    pid, line = ocp.scheduler()
    assert pid
    assert "--tls-min-version=VersionTLS12" in line
    assert "--cert-dir=/var/run/kubernetes" in line
    pod = ocp.api.request("GET", f"{TARGET}/pods/openshift-kube-scheduler-{ocp.node.name}")
    assert pod["metadata"]["labels"]["app"] == "openshift-kube-scheduler"


@pytest.mark.presubmit
def test_an_edit_rolls_out(ocp: Cluster) -> None:
    line = ocp.edit(SCHEDULER, {"profile": "HighNodeUtilization"})
    assert line.outcome == "installed", line.message
    files = ocp.on_node("ls", "/etc/kubernetes/manifests").split()
    assert files == ["kube-scheduler-pod.yaml"]


@pytest.mark.presubmit
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


@pytest.mark.presubmit
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


# --- the operator's port ----------------------------------------------------------------------
SCRAPE = """\
import http.client, json, socket, ssl, sys
asked = json.load(sys.stdin)
context = ssl.create_default_context(cafile=asked["authority"])
if asked["version"]:
    context.minimum_version = context.maximum_version = ssl.TLSVersion[asked["version"]]
if asked["pair"]:
    context.load_cert_chain(*asked["pair"])
plain = socket.create_connection((asked["address"], asked["port"]), timeout=20)
try:
    connection = http.client.HTTPConnection(asked["address"])
    connection.sock = context.wrap_socket(plain, server_hostname=asked["server"])
    connection.request("GET", asked["path"])
    response = connection.getresponse()
    print(response.status, response.read().decode(), sep="\\n")
except (ssl.SSLError, ConnectionError) as error:
    print(0, repr(error), sep="\\n")
"""
"""One request in a node's network; prints status and body, or 0 if there is no TLS connection."""

MONITORS = "/apis/monitoring.coreos.com/v1/namespaces/{}/servicemonitors/{}"
PROMETHEUS = f"system:serviceaccount:{openshift.MONITORING}:prometheus-k8s"
APISERVER = "/apis/config.openshift.io/v1/apiservers/cluster"


def pair(cluster: Cluster, name: str, user: str, authority: str = "ca") -> list[str]:
    """Certificate and key of a client."""
    issued = pki.Authority(cluster.sandbox.state / "pki", authority).issue(name, user)
    return [str(path) for path in issued]


def scrape(
    cluster: Cluster,
    pod: dict[str, Any],
    endpoint: dict[str, Any],
    client: list[str],
    version: str = "",
) -> tuple[int, str]:
    """Scrape a Pod as the scrape class of the cluster's own Prometheus does; see SCRAPE."""
    folder = cluster.sandbox.state / "pki"
    asked = {
        "address": pod["status"]["podIP"],
        "port": 8443 if "operator" in pod["metadata"]["namespace"] else 10259,
        "path": endpoint["path"],
        "server": endpoint["tlsConfig"]["serverName"],
        "authority": str(pki.Authority(folder, "service-ca").certificate),
        "pair": client,
        "version": version,
    }
    command = nodes.enter(cluster.sandbox, cluster.node, [sys.executable, "-c", SCRAPE])
    status, _, body = run(*command, stdin=json.dumps(asked)).partition("\n")
    return int(status), body


def operator_pod(cluster: Cluster) -> dict[str, Any]:
    """The operator's only Pod, which runs."""
    path = f"/api/v1/namespaces/{OPENSHIFT.operator_namespace}/pods"
    query = f"?labelSelector=app%3D{OPENSHIFT.operator.deployment}"
    (pod,) = cluster.api.request("GET", path + query)["items"]
    return dict(pod)


def scheduler_pod(cluster: Cluster) -> dict[str, Any]:
    path = f"{TARGET}/pods/openshift-kube-scheduler-{cluster.node.name}"
    return dict(cluster.api.request("GET", path))


def restarts(pod: dict[str, Any]) -> list[int]:
    return [one["restartCount"] for one in pod["status"]["containerStatuses"]]


def endpoints(cluster: Cluster, namespace: str, monitor: str) -> list[dict[str, Any]]:
    """The endpoints of a ServiceMonitor that has the scrape class with client certificates."""
    spec = cluster.api.request("GET", MONITORS.format(namespace, monitor))["spec"]
    assert spec["scrapeClass"] == "tls-client-certificate-auth"
    return list(spec["endpoints"])


@pytest.mark.presubmit
def test_prometheus_scrapes_with_its_client_certificate(ocp: Cluster) -> None:
    prometheus = pair(ocp, "prometheus", PROMETHEUS)
    pod = operator_pod(ocp)
    (endpoint,) = endpoints(ocp, OPENSHIFT.operator_namespace, "kube-scheduler-operator")
    status, body = scrape(ocp, pod, endpoint, prometheus)
    assert (status, "leader_election_master_status" in body) == (200, True), body
    metrics, resources = endpoints(ocp, OPENSHIFT.target_namespace, "kube-scheduler")
    status, body = scrape(ocp, scheduler_pod(ocp), metrics, prometheus)
    assert (status, "scheduler_pending_pods" in body) == (200, True), body
    # It is empty until the scheduler has the Lease, which takes the bootstrap machine's minutes.
    assert scrape(ocp, scheduler_pod(ocp), resources, prometheus)[0] == 200


def test_other_clients_do_not_read_the_operators_metrics(ocp: Cluster) -> None:
    pod = operator_pod(ocp)
    (endpoint,) = endpoints(ocp, OPENSHIFT.operator_namespace, "kube-scheduler-operator")
    status, body = scrape(ocp, pod, endpoint, [])
    assert (status, "token is required" in body) == (401, True), body
    status, body = scrape(ocp, pod, endpoint, pair(ocp, "another", "another-user"))
    assert (status, 'user "another-user" may not read /metrics' in body) == (403, True), body
    forged = pair(ocp, "forged-prometheus", PROMETHEUS, "service-ca")
    status, body = scrape(ocp, pod, endpoint, forged)
    assert status == 0, body


def test_the_operators_port_follows_the_tls_profile_of_the_cluster(ocp: Cluster) -> None:
    """By the ConfigMap that the cluster-version operator writes, and without a restart."""
    prometheus, before = pair(ocp, "prometheus", PROMETHEUS), operator_pod(ocp)
    (endpoint,) = endpoints(ocp, OPENSHIFT.operator_namespace, "kube-scheduler-operator")

    def statuses() -> tuple[int, int]:
        """Of a client that has TLS 1.2, and of one that has 1.3."""
        versions = ("TLSv1_2", "TLSv1_3")
        older, newer = (scrape(ocp, before, endpoint, prometheus, one)[0] for one in versions)
        return older, newer

    assert statuses() == (200, 200)
    ocp.api.request("PATCH", APISERVER, {"spec": {"tlsSecurityProfile": {"type": "Modern"}}})
    try:
        until(lambda: statuses() == (0, 200), 30, lambda: f"statuses: {statuses()}")
        namespace, name = OPENSHIFT.operator_namespace, OPENSHIFT.operator.config
        config = ocp.api.request("GET", f"/api/v1/namespaces/{namespace}/configmaps/{name}")
        assert "minTLSVersion: VersionTLS13" in config["data"]["config.yaml"]
    finally:
        ocp.api.request("PATCH", APISERVER, {"spec": {"tlsSecurityProfile": None}})
    until(lambda: statuses() == (200, 200), 30, lambda: f"statuses: {statuses()}")
    after = operator_pod(ocp)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert restarts(after) == restarts(before)


def test_every_network_policy_is_put_back(ocp: Cluster) -> None:
    """The operator keeps those of the schedulers' namespace, the release the others."""
    spaces = (OPENSHIFT.operator_namespace, OPENSHIFT.target_namespace)

    def policies() -> dict[str, Any]:
        return {
            f"{path}/{one['metadata']['name']}": one["spec"]
            for namespace in spaces
            for path in [f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"]
            for one in ocp.api.request("GET", path)["items"]
        }

    before = policies()
    found = {tuple(path.split("/")[5::2]) for path in before}
    assert {(spaces[0], "default-deny-all"), (spaces[0], "kube-scheduler-operator"),
            (spaces[1], "default-deny-all"), (spaces[1], "installer-pruner")} <= found  # fmt: skip
    for path in before:
        ocp.api.request("DELETE", path)
    until(lambda: policies() == before, 30, lambda: f"deleted: {sorted(policies())}")
    for path in before:
        edit = {"spec": {"podSelector": {"matchLabels": {"edited": "yes"}}, "policyTypes": []}}
        ocp.api.request("PATCH", path, edit)
    until(lambda: policies() == before, 30, lambda: f"edited: {policies()}")


# --- certificates of the schedulers -----------------------------------------------------------
@pytest.mark.presubmit
def test_a_renewed_certificate_arrives_and_no_scheduler_is_disturbed(ocp: Cluster) -> None:
    before, latest = ocp.scheduler(), ocp.latest
    seconds = arrives(ocp, renew(ocp, "renewed"))
    print(f"on the node after {seconds:.0f} s")
    assert (ocp.scheduler(), ocp.latest) == (before, latest)

    def reasons() -> set[str]:
        return {e["reason"] for e in ocp.api.request("GET", f"{TARGET}/events")["items"]}

    until(lambda: "CertificateUpdated" in reasons(), 30, lambda: f"no event: {reasons()}")


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


def test_a_simulation_runs_beside_the_operator_and_is_isolated(ocp: Cluster) -> None:
    """Pod Security restricted and NetworkPolicies are enforced; the image runs `hyperkube`."""
    resources = {"requests": {"cpu": "1000"}}
    container = {"name": "c", "image": "registry.k8s.io/pause:3.10", "resources": resources}
    pod = {"metadata": {"name": "huge"}, "spec": {"containers": [container]}}
    ocp.api.request("POST", PODS_IN_DEFAULT, pod)
    try:
        done = ocp.plugin("why", "default/huge", "--in-cluster", "-o", "json")
    finally:
        delete_pod(ocp.api, "huge")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["groups"]
    assert f"Job {OPENSHIFT.operator_namespace}/" in done.stderr


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


def test_the_lease_goes_from_the_bootstrap_machine_to_the_control_plane(ocp: Cluster) -> None:
    """It is one Lease, so two never were at work; the other one tries again every 26 s."""
    until(lambda: holder(ocp).startswith(f"{ocp.node.name}_"), 60, lambda: holder(ocp))
    ocp.schedules()
    status, message = ocp.cluster_operator("Available")
    assert status == "True", message
    prometheus = pair(ocp, "prometheus", PROMETHEUS)
    for endpoint, metric in zip(
        endpoints(ocp, OPENSHIFT.target_namespace, "kube-scheduler"),
        ("scheduler_schedule_attempts_total", "kube_pod_resource_request"),
        strict=True,
    ):
        status_code, body = scrape(ocp, scheduler_pod(ocp), endpoint, prometheus)
        assert (status_code, metric in body) == (200, True), body


def test_a_hand_edit_that_keeps_the_label_stays_reported_until_the_next_revision(
    ocp: Cluster,
) -> None:
    """The documented way to enable profiling: the file, and a blank in a string of the manifest."""
    number = ocp.current
    manifest = f"{OPENSHIFT.manifest_dir}/{OPENSHIFT.manifest_file}"
    config = f"{OPENSHIFT.resource_dir}/kube-scheduler-pod-{number}/configmaps/config/config.yaml"
    guard = f"{TARGET}/pods/openshift-kube-scheduler-guard-{ocp.node.name}"
    until(lambda: ocp.api.request("GET", guard)["status"]["phase"] == "Running", 60, "no guard")
    ocp.on_node("sed", "-i", 's/"enableProfiling":false/"enableProfiling":true/', config)
    ocp.on_node("sed", "-i", "s#PreferredDuringScheduling# &#", manifest)
    edited = ocp.on_node("cat", manifest)
    until(lambda: config in ocp.condition("HandEdits")[1], 120, "the file is not reported")
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
    line = ocp.edit(SCHEDULER, {"profile": ocp.another_profile()})
    assert line.outcome == "installed", line.message
    until(lambda: ocp.condition("HandEdits")[0] == "False", 60, "still reported")


SCRAPE_WITH_TOKEN = """\
import ssl, sys, urllib.request
token = open("/var/run/secrets/kubernetes.io/serviceaccount/token").read()
request = urllib.request.Request(sys.argv[1], headers={"Authorization": f"Bearer {token}"})
print(urllib.request.urlopen(request, context=ssl._create_unverified_context()).read().decode())
"""


class Agnhost:
    """Pods with the image of OpenShift's end-to-end tests."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._made: list[tuple[str, str]] = []

    def pod(self, namespace: str, *arguments: str, **labels: str) -> str:
        """Create a pod; its name."""
        name = f"agnhost-{len(self._made)}"
        container = {
            "name": "agnhost",
            "image": agnhost.NAME,
            "args": [*(arguments or ("pause",))],
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "runAsNonRoot": True,
                "runAsUser": 1001,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        }
        account = "prometheus-k8s" if namespace == openshift.MONITORING else ""
        spec = {
            "containers": [container],
            "serviceAccountName": account,
            "automountServiceAccountToken": bool(account),
            "terminationGracePeriodSeconds": 0,
            # Pods of these names are on one node, whatever the tests before have configured.
            "nodeName": self._cluster.node.name,
        }
        body = {"metadata": {"name": name, "labels": labels}, "spec": spec}
        self._cluster.api.request("POST", f"/api/v1/namespaces/{namespace}/pods", body)
        self._made.append((namespace, name))
        return name

    def address(self, namespace: str, name: str) -> str:
        """The address of a pod, once it is Ready."""
        target = f"pod/{name}"
        self._cluster.kubectl(
            "-n", namespace, "wait", "--for=condition=Ready", "--timeout=120s", target
        )
        return self._cluster.kubectl(
            "-n", namespace, "get", target, "-o", "jsonpath={.status.podIP}"
        )

    def run(self, namespace: str, name: str, *command: str) -> str:
        """The output of a command in a pod."""
        return self._cluster.kubectl("-n", namespace, "exec", name, "--", *command)

    def connects(self, namespace: str, name: str, end: str) -> str:
        """What an attempt to connect shows: "" for a connection, TIMEOUT, REFUSED."""
        try:
            return self.run(namespace, name, "/agnhost", "connect", "--timeout=1s", end)
        except CommandError as error:
            return next(word for word in ("TIMEOUT", "REFUSED", str(error)) if word in str(error))

    def is_dropped(self, namespace: str, name: str, end: str) -> None:
        """Rules follow a moment after a Pod has its address."""
        failed = f"{end} is not isolated from {namespace}/{name}"
        until(lambda: self.connects(namespace, name, end) == "TIMEOUT", 20, failed)

    def remove(self) -> None:
        for namespace, name in self._made:
            delete_pod(self._cluster.api, name, namespace)


@pytest.fixture
def pods(ocp: Cluster) -> Iterator[Agnhost]:
    found = Agnhost(ocp)
    yield found
    found.remove()


def test_network_policies_admit_scrapes_and_isolate_all_other_pods(
    ocp: Cluster, pods: Agnhost
) -> None:
    """A dropped connection times out; one to a closed port that is reached is refused.

    That the operator reaches the API server, and guards and installers their node, is what the
    other tests of this cluster depend on.
    """
    target, monitoring = OPENSHIFT.target_namespace, openshift.MONITORING
    namespace = ocp.sandbox.operator_namespace
    serves = ("netexec", "--http-port=8443")
    client, free = pods.pod(monitoring), pods.pod("default", *serves)
    isolated, pruner = pods.pod(target, *serves), pods.pod(target, app="pruner")
    in_namespace = pods.pod(namespace, *serves)
    reachable = f"{pods.address('default', free)}:8443"
    pods.address(monitoring, client)
    chosen = f"-lapp={namespace}"
    path = "jsonpath={.items[0].status.podIP}"
    operator = ocp.kubectl("-n", namespace, "get", "pods", chosen, "-o", path)
    dns = ocp.kubectl("-n", "openshift-dns", "get", "pods", "-o", path)

    assert "leader_election_master_status" in pods.run(
        monitoring, client, "python3", "-c", SCRAPE_WITH_TOKEN, f"https://{operator}:8443/metrics"
    )
    pods.is_dropped(monitoring, client, f"{operator}:8080")
    assert pods.connects(monitoring, client, reachable) == ""
    assert pods.connects(monitoring, client, reachable.replace("8443", "8080")) == "REFUSED"
    for place, name in ((target, isolated), (namespace, in_namespace)):
        address = pods.address(place, name)
        pods.is_dropped(monitoring, client, f"{address}:8443")
        pods.is_dropped(place, name, reachable)
        pods.is_dropped(place, name, f"{dns}:5353")
    pods.address(target, pruner)
    assert pods.connects(target, pruner, f"{dns}:5353") == ""


def test_an_isolated_pod_is_reachable_while_a_policy_allows_it(ocp: Cluster, pods: Agnhost) -> None:
    policies = f"/apis/networking.k8s.io/v1/namespaces/{OPENSHIFT.target_namespace}/networkpolicies"
    client = pods.pod("default")
    server = pods.pod(OPENSHIFT.target_namespace, "netexec", "--http-port=8080", test="server")
    end = f"{pods.address(OPENSHIFT.target_namespace, server)}:8080"
    pods.address("default", client)
    pods.is_dropped("default", client, end)
    spec = {
        "podSelector": {"matchLabels": {"test": "server"}},
        "ingress": [{"ports": [{"port": 8080}], "from": [{"namespaceSelector": {
            "matchLabels": {"kubernetes.io/metadata.name": "default"}}}]}],
    }  # fmt: skip
    ocp.api.create(policies, {"metadata": {"name": "test"}, "spec": spec})
    until(lambda: pods.connects("default", client, end) == "", 20, "the policy allows nothing")
    ocp.api.request("DELETE", f"{policies}/test")
    pods.is_dropped("default", client, end)
