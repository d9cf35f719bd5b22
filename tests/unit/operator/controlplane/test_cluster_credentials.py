"""The CA bundle and the kubeconfig of schedulers where the cluster keeps their credentials."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kube_scheduler_operator.base.platform import OPENSHIFT
from kube_scheduler_operator.operator.controlplane.revision.credentials import (
    BundleError,
    ca_bundle,
    client_certificate,
    kubeconfig,
)

NOW = datetime.now(UTC)


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """PEM of certificate authorities by name; the number is their validity in days."""
    folder = tmp_path_factory.mktemp("authorities")

    def make(name: Any, days: Any, *options: Any) -> Any:
        path = folder / f"{name}.crt"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:prime256v1", "-nodes", "-days", str(days), "-subj", f"/CN={name}",
             *options, "-keyout", str(folder / "key"), "-out", str(path)],
            check=True, capture_output=True,
        )  # fmt: skip
        return path.read_text()

    found = {name: make(name, days) for name, days in (("a", 2), ("b", 20), ("c", 200))}
    return {**found, "server": make("server", 2, "-addext", "basicConstraints=critical,CA:FALSE")}


def test_bundles_are_joined_in_order(authorities: dict[str, Any]) -> None:
    a, b, c = authorities["a"], authorities["b"], authorities["c"]
    assert ca_bundle([a + b, c], NOW) == a + b + c
    assert ca_bundle([c, a], NOW) == c + a


def test_a_duplicate_certificate_is_dropped(authorities: dict[str, Any]) -> None:
    a, b = authorities["a"], authorities["b"]
    assert ca_bundle([a + b, b + a, a], NOW) == a + b


def test_an_expired_authority_is_omitted(authorities: dict[str, Any]) -> None:
    a, b = authorities["a"], authorities["b"]
    assert ca_bundle([a, b], NOW + timedelta(days=3)) == b
    assert ca_bundle([a, b], NOW + timedelta(days=30)) == ""


def test_text_around_certificates_is_omitted(authorities: dict[str, Any]) -> None:
    a, b = authorities["a"], authorities["b"]
    windows = b.replace("\n", "\r\n")
    assert ca_bundle([f"# ours\n{a}\n# theirs\n{windows}"], NOW) == a + b


def test_an_expired_server_certificate_is_kept(authorities: dict[str, Any]) -> None:
    """Only expired authorities are dropped; dropping others could lock clients out."""
    assert ca_bundle([authorities["server"]], NOW + timedelta(days=3)) == authorities["server"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "-----BEGIN CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
        "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----",
    ],
)
def test_an_invalid_bundle_is_reported(text: Any) -> None:
    with pytest.raises(BundleError):
        ca_bundle([text], NOW)


def test_a_key_between_certificates_is_an_error(authorities: dict[str, Any]) -> None:
    text = authorities["a"] + "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n"
    with pytest.raises(BundleError):
        ca_bundle([text], NOW)


def test_the_kubeconfig_has_paths_only() -> None:
    assert OPENSHIFT.credentials is not None
    text = kubeconfig(OPENSHIFT.credentials, "https://api-int.example:6443")
    document = json.loads(text)
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    assert cluster == {
        "server": "https://api-int.example:6443",
        "certificate-authority": "/etc/kubernetes/static-pod-resources/configmaps/"
        "serviceaccount-ca/ca-bundle.crt",
    }
    secret = "/etc/kubernetes/static-pod-certs/secrets/kube-scheduler-client-cert-key"
    assert user == {"client-certificate": f"{secret}/tls.crt", "client-key": f"{secret}/tls.key"}
    assert document["current-context"] == document["contexts"][0]["name"] == "kube-scheduler"


def test_the_copy_of_the_client_certificate_has_the_operators_labels() -> None:
    source = {
        "metadata": {
            "name": "kube-scheduler-client-cert-key",
            "namespace": "openshift-config-managed",
            "annotations": {"auth.openshift.io/certificate-not-after": "2026-12-01T00:00:00Z"},
        },
        "type": "kubernetes.io/tls",
        "data": {"tls.crt": "Yw==", "tls.key": "aw=="},
    }
    copy = client_certificate(OPENSHIFT, source)
    assert copy["metadata"]["namespace"] == "openshift-kube-scheduler"
    assert copy["metadata"]["labels"] == {
        "app.kubernetes.io/managed-by": "kube-scheduler-operator",
        "app.kubernetes.io/part-of": "kube-scheduler-operator",
    }
    assert (copy["type"], copy["data"]) == (source["type"], source["data"])
