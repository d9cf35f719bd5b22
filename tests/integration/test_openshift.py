"""The real operator on OpenShift's API: what it takes from there, and what it makes of it.

There are no nodes here, so nothing is installed; revisions are what counts.
"""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import pytest

from cluster import openshift
from cluster.api import ApiError
from cluster.observe import KUBESCHEDULER, until
from cluster.version_operator import with_tls
from kube_scheduler_operator.base.platform import OPENSHIFT
from kube_scheduler_operator.config.effective.control_plane.tls_profiles import serving_info

from ..unit.deploy.overlays import DEPLOY, build
from .conftest import REPOSITORY
from .openshift_world import CLUSTER, TARGET, World, opened

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = f"oc-{hashlib.sha256(str(REPOSITORY).encode()).hexdigest()[:6]}"
MANAGED = "/api/v1/namespaces/openshift-config-managed"
CERTIFICATE = openshift.CLIENT_CERTIFICATE
TLS12, TLS13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3

pytestmark = pytest.mark.timeout(180, func_only=True)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with opened(NAME, tmp_path_factory.mktemp("operator")) as found:
        yield found


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


def test_the_operators_port_follows_its_config_map(world: World) -> None:
    """The cluster-version operator writes the profile there; the process stays the same."""
    operator, name = world.operator, OPENSHIFT.operator.config
    path = f"/api/v1/namespaces/{OPENSHIFT.operator_namespace}/configmaps"
    (shipped,) = (one for one in build(DEPLOY / "openshift") if one["metadata"]["name"] == name)
    process = operator.process
    world.api.create(path, shipped)
    until(lambda: operator.speaks(TLS12), 20, "the profile of the previous test is still in use")
    assert operator.speaks(TLS13)
    for profile, speaks in (("Modern", False), ("Intermediate", True)):
        info = serving_info({"type": profile, profile.lower(): {}})[0]
        edit = {"data": with_tls(shipped, info)["data"]}
        world.api.request("PATCH", f"{path}/{name}", edit)
        until(partial(lambda speaks: operator.speaks(TLS12) is speaks, speaks=speaks), 20, profile)
        assert operator.speaks(TLS13)
    assert operator.process is process
    assert process is not None
    assert process.poll() is None


def test_without_serving_info_the_port_follows_the_profile_of_the_api_servers(world: World) -> None:
    path = f"{CLUSTER}/apiservers/cluster"
    config = f"/api/v1/namespaces/{OPENSHIFT.operator_namespace}/configmaps"
    with suppress(ApiError):  # of the test before
        world.api.request("DELETE", f"{config}/{OPENSHIFT.operator.config}")
    profile = {"type": "Modern", "modern": {}}
    world.next_revision("PATCH", path, {"spec": {"tlsSecurityProfile": profile}})
    until(lambda: not world.operator.speaks(TLS12), 20, "it still accepts TLS 1.2")
    world.next_revision("PATCH", path, {"spec": {"tlsSecurityProfile": None}})
    until(lambda: world.operator.speaks(TLS12), 20, "it does not accept TLS 1.2 again")


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
    until(lambda: mirrored() == {"policy.cfg": "1"}, 60, "no copy")
    world.api.request("PATCH", f"{users}/my-policy", {"data": {"policy.cfg": "2"}})
    until(lambda: mirrored() == {"policy.cfg": "2"}, 60, "the copy does not follow")
    world.api.request("DELETE", f"{users}/my-policy")
    until(lambda: mirrored() is None, 60, "the copy stays without its source")
    world.api.create(users, {"metadata": {"name": "my-policy"}, "data": {"policy.cfg": "3"}})
    until(lambda: mirrored() == {"policy.cfg": "3"}, 60, "no copy of the new source")
    world.api.request("PATCH", f"{CLUSTER}/schedulers/cluster", {"spec": {"policy": {"name": ""}}})
    until(lambda: mirrored() is None, 60, "the copy stays without the reference")
    assert world.latest == before, "kube-scheduler does not read it, so nothing is rolled out"


def test_cluster_operator_reports_the_operator_before_its_schedulers(world: World) -> None:
    status = world.api.request("GET", f"{CLUSTER}/clusteroperators/kube-scheduler")["status"]
    versions = {one["name"]: one["version"] for one in status["versions"]}
    assert versions == {"raw-internal": openshift.VERSION}, "there are no nodes with schedulers"
