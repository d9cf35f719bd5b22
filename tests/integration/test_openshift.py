"""The real operator on OpenShift's API: what it takes from there, and what it makes of it.

There are no nodes here, so nothing is installed; revisions are what counts.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from cluster import lifecycle, model, openshift, teardown
from cluster.api import Api, ApiError
from cluster.console import run
from cluster.observe import KUBESCHEDULER, until
from kube_scheduler_operator.base.platform import OPENSHIFT

from .conftest import REPOSITORY
from .harness import Operator, Proxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.model import Sandbox

NAME = f"oc-{hashlib.sha256(str(REPOSITORY).encode()).hexdigest()[:6]}"
TARGET = f"/api/v1/namespaces/{OPENSHIFT.target_namespace}"
MANAGED = "/api/v1/namespaces/openshift-config-managed"
CLUSTER = "/apis/config.openshift.io/v1"
CERTIFICATE = openshift.CLIENT_CERTIFICATE

pytestmark = pytest.mark.timeout(180, func_only=True)


@dataclass
class World:
    """A control plane with OpenShift's objects, and the operator on it."""

    sandbox: Sandbox
    api: Api

    @property
    def latest(self) -> int:
        """The newest revision that is complete."""
        status = self.api.request("GET", KUBESCHEDULER).get("status", {})
        return int(status.get("latestAvailableRevision", 0))

    def data(self, name: str) -> dict[str, str]:
        """The data of a ConfigMap of the newest revision."""
        path = f"{TARGET}/configmaps/{name}-{self.latest}"
        return dict(self.api.request("GET", path)["data"])

    @property
    def arguments(self) -> list[str]:
        """The command line of the newest revision."""
        pod = json.loads(self.data("kube-scheduler-pod")["pod.yaml"])
        return list(pod["spec"]["containers"][0]["args"])

    def condition(self, kind: str) -> str:
        """The message of a condition of the KubeScheduler; empty if it is False."""
        conditions = self.api.request("GET", KUBESCHEDULER).get("status", {}).get("conditions", [])
        found = next((c for c in conditions if c["type"] == kind), {})
        return str(found.get("message", "")) if found.get("status") == "True" else ""

    def next_revision(self, method: str, path: str, body: dict[str, Any]) -> None:
        """Make an edit and wait for the revision that it leads to."""
        before = self.latest
        self.api.request(method, path, body)
        until(lambda: self.latest > before, 30, f"no revision after {method} {path}")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    teardown.down(NAME)
    sandbox = lifecycle.up(NAME, 0, 0, with_operator=False, platform=model.OPENSHIFT)
    proxy = None
    operator = None
    try:
        kubectl = [str(sandbox.state / "bin/kubectl"), f"--kubeconfig={sandbox.kubeconfig}"]
        run(*kubectl, "apply", "--server-side", "-k", REPOSITORY / "crds")
        run(*kubectl, "wait", "--for=condition=Established", "--timeout=30s", "crd", "--all")
        run(*kubectl, "apply", "-f", REPOSITORY / "deploy/base/cluster/cluster.yaml")
        for namespace in (OPENSHIFT.target_namespace, OPENSHIFT.operator_namespace):
            run(*kubectl, "create", "namespace", namespace)
        proxy = Proxy(sandbox)
        operator = Operator(proxy, tmp_path_factory.mktemp("operator"))
        operator.start(
            "--platform=openshift",
            "--operand-image=quay.example/openshift/hyperkube@sha256:0123",
            f"--release-version={openshift.VERSION}",
        )
        found = World(sandbox, Api(sandbox))
        until(lambda: found.latest == 1, 30, lambda: f"no revision: {operator.text()[-3000:]}")
        yield found
    finally:
        if operator is not None:
            operator.kill()
        if proxy is not None:
            proxy.close()
        teardown.down(NAME)


def test_a_revision_has_openshifts_parts(world: World) -> None:
    bundle = world.data("serviceaccount-ca")["ca-bundle.crt"]
    assert bundle.count("BEGIN CERTIFICATE") == 2
    kubeconfig = json.loads(world.data("scheduler-kubeconfig")["kubeconfig"])
    assert kubeconfig["clusters"][0]["cluster"]["server"] == world.sandbox.node_server
    config = json.loads(world.data("config")["config.yaml"])
    assert config["leaderElection"]["resourceNamespace"] == "openshift-kube-scheduler"
    assert config["leaderElection"]["leaseDuration"] == "137s"


def test_gates_of_the_release_that_the_scheduler_knows_are_flags(world: World) -> None:
    (flag,) = (a for a in world.arguments if a.startswith("--feature-gates="))
    assert flag == (
        "--feature-gates=NodeInclusionPolicyInPodTopologySpread=true,SchedulerAsyncAPICalls=false"
    ), "the others are OpenShift's alone, and the scheduler would exit"


def test_the_tls_profile_is_followed(world: World) -> None:
    assert "--tls-min-version=VersionTLS12" in world.arguments, "Intermediate is the default"
    path = f"{CLUSTER}/apiservers/cluster"
    profile = {"type": "Modern", "modern": {}}
    world.next_revision("PATCH", path, {"spec": {"tlsSecurityProfile": profile}})
    assert "--tls-min-version=VersionTLS13" in world.arguments
    observed = world.api.request("GET", KUBESCHEDULER)["spec"]["observedConfig"]
    assert observed["servingInfo"]["minTLSVersion"] == "VersionTLS13"
    world.next_revision("PATCH", path, {"spec": {"tlsSecurityProfile": None}})
    assert "--tls-min-version=VersionTLS12" in world.arguments


def test_a_renewed_client_certificate_is_copied_and_makes_no_revision(world: World) -> None:
    before = world.latest
    renewed = openshift.client_certificate(world.sandbox, "renewed-scheduler")
    world.api.request("PATCH", f"{MANAGED}/secrets/{CERTIFICATE}", {"data": renewed["data"]})

    def copied() -> bool:
        copy = world.api.request("GET", f"{TARGET}/secrets/{CERTIFICATE}")
        return bool(copy["data"] == renewed["data"] and copy["type"] == "kubernetes.io/tls")

    until(copied, 30, "the copy is not renewed")
    assert world.latest == before


def test_a_deleted_copy_is_restored(world: World) -> None:
    path = f"{TARGET}/secrets/{CERTIFICATE}"
    world.api.request("DELETE", path)

    def back() -> bool:
        try:
            return bool(world.api.request("GET", path)["data"]["tls.key"])
        except ApiError:
            return False

    until(back, 30, "the copy does not come back")


def test_a_certificate_to_serve_with_becomes_flags(world: World) -> None:
    pair = openshift.client_certificate(world.sandbox, "serving")["data"]
    secret = {"metadata": {"name": "serving-cert"}, "type": "kubernetes.io/tls", "data": pair}
    world.next_revision("POST", f"{TARGET}/secrets", secret)
    certificate = "/etc/kubernetes/static-pod-certs/secrets/serving-cert/tls.crt"
    assert f"--tls-cert-file={certificate}" in world.arguments


def test_a_new_ca_is_a_new_revision(world: World) -> None:
    path = f"{MANAGED}/configmaps/default-ingress-cert"
    before = world.api.request("GET", path)["data"]["ca-bundle.crt"]
    other = (world.sandbox.state / "pki/front-proxy-ca.crt").read_text()
    world.next_revision("PATCH", path, {"data": {"ca-bundle.crt": before + other}})
    assert world.data("serviceaccount-ca")["ca-bundle.crt"].count("BEGIN CERTIFICATE") == 3


def test_a_malformed_ca_is_reported_and_changes_nothing(world: World) -> None:
    path = f"{MANAGED}/configmaps/default-ingress-cert"
    good = world.api.request("GET", path)["data"]["ca-bundle.crt"]
    before = world.latest
    kind = "TargetConfigControllerDegraded"
    world.api.request("PATCH", path, {"data": {"ca-bundle.crt": "oops"}})
    until(
        lambda: "default-ingress-cert" in world.condition(kind),
        30,
        "the missing CA is not reported",
    )
    assert "is malformed" in world.condition(kind)
    world.api.request("PATCH", path, {"data": {"ca-bundle.crt": good}})
    until(lambda: not world.condition(kind), 30, "it is not taken back")
    assert world.latest == before


def test_another_api_server_is_a_new_revision(world: World) -> None:
    path = f"{CLUSTER}/infrastructures/cluster/status"
    url = "https://api-int.example:6443"
    world.next_revision("PATCH", path, {"status": {"apiServerInternalURI": url}})
    kubeconfig = json.loads(world.data("scheduler-kubeconfig")["kubeconfig"])
    assert kubeconfig["clusters"][0]["cluster"]["server"] == url


def test_no_secret_is_in_a_revision_an_event_or_the_status(world: World) -> None:
    """The private keys that were used above; a certificate is not a secret."""
    keys = [path.read_text() for path in (world.sandbox.state / "pki").glob("*.key")]
    lists = (
        f"{TARGET}/configmaps",
        "/api/v1/events",
        "/apis/operator.openshift.io/v1/kubeschedulers",
        "/apis/config.openshift.io/v1/clusteroperators",
    )
    texts = json.dumps([world.api.request("GET", path) for path in lists])
    for key in keys:
        lines = [line for line in key.splitlines() if "PRIVATE KEY" not in line]
        assert lines
        encoded = base64.b64encode(key.encode()).decode()
        assert not any(secret in texts for secret in (*lines, encoded))


def test_the_policy_config_map_follows_its_source(world: World) -> None:
    """As the reference's own end-to-end tests do it: name it, edit it, delete it."""
    users, copy = "/api/v1/namespaces/openshift-config/configmaps", f"{TARGET}/configmaps"
    before = world.latest

    def mirrored() -> dict[str, str] | None:
        try:
            return dict(world.api.request("GET", f"{copy}/policy-configmap").get("data") or {})
        except ApiError:
            return None

    world.api.create(users, {"metadata": {"name": "my-policy"}, "data": {"policy.cfg": "1"}})
    policy = {"spec": {"policy": {"name": "my-policy"}}}
    world.api.request("PATCH", f"{CLUSTER}/schedulers/cluster", policy)
    until(lambda: mirrored() == {"policy.cfg": "1"}, 10, "no copy")
    world.api.request("PATCH", f"{users}/my-policy", {"data": {"policy.cfg": "2"}})
    until(lambda: mirrored() == {"policy.cfg": "2"}, 10, "the copy does not follow")
    world.api.request("DELETE", f"{users}/my-policy")
    until(lambda: mirrored() is None, 10, "the copy stays without its source")
    world.api.create(users, {"metadata": {"name": "my-policy"}, "data": {"policy.cfg": "3"}})
    until(lambda: mirrored() == {"policy.cfg": "3"}, 10, "no copy of the new source")
    world.api.request("PATCH", f"{CLUSTER}/schedulers/cluster", {"spec": {"policy": {"name": ""}}})
    until(lambda: mirrored() is None, 10, "the copy stays without the reference")
    assert world.latest == before, "kube-scheduler does not read it, so nothing is rolled out"


def test_cluster_operator_reports_the_operator_before_its_schedulers(world: World) -> None:
    status = world.api.request("GET", f"{CLUSTER}/clusteroperators/kube-scheduler")["status"]
    versions = {one["name"]: one["version"] for one in status["versions"]}
    assert versions == {"raw-internal": openshift.VERSION}, "there are no nodes with schedulers"
