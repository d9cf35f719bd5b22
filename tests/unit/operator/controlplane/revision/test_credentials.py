"""Credentials that the cluster keeps for schedulers, and findings about missing ones."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.operator.controlplane.revision.credentials import (
    GatheredCredentials,
    gather_credentials,
    has_serving_certificate,
)
from kube_scheduler_operator.operator.model.plan import Create, Replace
from kube_scheduler_operator.operator.model.snapshot import Snapshot

from ..... import builders
from .....expect import findings

if TYPE_CHECKING:
    from ....conftest import CertificateFiles

CERTIFICATE = "kube-scheduler-client-cert-key"


@pytest.fixture
def pem(first_certificate: CertificateFiles) -> str:
    return first_certificate.certificate.read_text()


def bundle(name: str, text: str | None) -> dict[str, Any]:
    data = {} if text is None else {"ca-bundle.crt": text}
    return {"metadata": {"name": name, "namespace": "openshift-config-managed"}, "data": data}


def secret(namespace: str = "openshift-config-managed", **data: str) -> dict[str, Any]:
    metadata = {"name": CERTIFICATE, "namespace": namespace, "resourceVersion": "1"}
    return {"kind": "Secret", "metadata": metadata, "type": "kubernetes.io/tls", "data": data}


PAIR = {"tls.crt": "Yw==", "tls.key": "aw=="}
COPY = {
    **secret("openshift-kube-scheduler", **PAIR),
    "metadata": {
        "name": CERTIFICATE,
        "namespace": "openshift-kube-scheduler",
        "labels": dict(names.OWN_LABELS),
    },
}


def snapshot(pem: str, **fields: Any) -> Snapshot:
    given: dict[str, Any] = {
        "source_config_maps": {
            name: bundle(name, pem) for name in ("kube-apiserver-server-ca", "default-ingress-cert")
        },
        "source_secrets": {CERTIFICATE: secret(**PAIR)},
        "secrets": {CERTIFICATE: COPY},
        "infrastructure": {"status": {"apiServerInternalURI": "https://api-int:6443"}},
        **fields,
    }
    return builders.snapshot(now=datetime.now(UTC), platform=OPENSHIFT, **given)


def test_nothing_is_copied_where_nodes_have_a_kubeconfig() -> None:
    there = Snapshot(now=datetime.now(UTC), platform=KUBEADM, settings=Settings())
    assert gather_credentials(there) == GatheredCredentials()


def test_all_sources_exist(pem: str) -> None:
    found = gather_credentials(snapshot(pem))
    assert (found.actions, found.findings) == ((), ())
    assert set(found.parts) == set(OPENSHIFT.parts) - {names.CONFIG, names.POD}
    assert found.parts[names.CA_BUNDLE] == {"ca-bundle.crt": pem}
    kubeconfig = json.loads(found.parts[names.KUBECONFIG]["kubeconfig"])
    assert kubeconfig["clusters"][0]["cluster"]["server"] == "https://api-int:6443"


def test_the_same_input_gives_the_same_bytes(pem: str) -> None:
    assert gather_credentials(snapshot(pem)).parts == gather_credentials(snapshot(pem)).parts


def test_a_renewed_certificate_is_copied_without_a_new_revision(pem: str) -> None:
    renewed = {"tls.crt": "bmV3", "tls.key": "bmV3"}
    found = gather_credentials(snapshot(pem, source_secrets={CERTIFICATE: secret(**renewed)}))
    (action,) = found.actions
    assert isinstance(action, Replace)
    assert action.obj["data"] == renewed
    assert found.parts == gather_credentials(snapshot(pem)).parts


def test_a_first_certificate_is_copied(pem: str) -> None:
    found = gather_credentials(snapshot(pem, secrets={}))
    (action,) = found.actions
    assert isinstance(action, Create)
    assert action.obj["metadata"]["namespace"] == "openshift-kube-scheduler"


SOURCES = {
    "gone": ({}, "does not exist"),
    "without a key": ({CERTIFICATE: secret(**{"tls.crt": "Yw=="})}, "lacks tls.crt or tls.key"),
    "empty": (
        {CERTIFICATE: secret(**{"tls.crt": "Yw==", "tls.key": ""})},
        "lacks tls.crt or tls.key",
    ),
}


@pytest.mark.parametrize(("sources", "sentence"), SOURCES.values(), ids=SOURCES.keys())
def test_the_copy_of_a_deleted_certificate_stays_in_use(
    pem: str, sources: dict[str, Any], sentence: str
) -> None:
    found = gather_credentials(snapshot(pem, source_secrets=sources))
    assert found.actions == ()
    assert findings(found, "reason", "blocking") == [("ClientCertificateMissing", False)]
    assert sentence in found.findings[0].text
    assert 'the copy in "openshift-kube-scheduler" stays in use' in found.findings[0].text


def test_without_any_certificate_there_is_no_revision(pem: str) -> None:
    found = gather_credentials(snapshot(pem, source_secrets={}, secrets={}))
    assert findings(found, "reason", "blocking") == [("ClientCertificateMissing", True)]
    assert found.findings[0].text == (
        f'secret/{CERTIFICATE} in "openshift-config-managed": does not exist: schedulers cannot '
        "authenticate without it"
    )


SERVING = {
    "made": ({"tls.crt": "Yw==", "tls.key": "aw=="}, True),
    "without a key": ({"tls.crt": "Yw=="}, False),
    "empty": ({}, False),
}


@pytest.mark.parametrize(("data", "there"), SERVING.values(), ids=SERVING.keys())
def test_serving_certificate(pem: str, data: dict[str, str], there: bool) -> None:
    secrets = {"serving-cert": {"metadata": {"name": "serving-cert"}, "data": data}}
    assert has_serving_certificate(snapshot(pem, secrets=secrets)) is there
    assert not has_serving_certificate(snapshot(pem))


def test_a_missing_bundle_is_not_an_error(pem: str) -> None:
    sources = {"default-ingress-cert": bundle("default-ingress-cert", pem)}
    found = gather_credentials(snapshot(pem, source_config_maps=sources))
    assert found.parts[names.CA_BUNDLE] == {"ca-bundle.crt": pem}
    assert found.findings == ()


@pytest.mark.parametrize("sources", [{}, {"default-ingress-cert": bundle("x", None)}])
def test_without_any_bundle_there_is_no_revision(pem: str, sources: dict[str, Any]) -> None:
    found = gather_credentials(snapshot(pem, source_config_maps=sources))
    assert findings(found, "reason", "blocking") == [("CABundleMissing", True)]
    assert names.CA_BUNDLE not in found.parts


def test_a_malformed_bundle_is_named(pem: str) -> None:
    name = "kube-apiserver-server-ca"
    sources = {name: bundle(name, "oops"), "default-ingress-cert": bundle("x", pem)}
    found = gather_credentials(snapshot(pem, source_config_maps=sources))
    assert findings(found, "reason", "blocking") == [("CABundleMalformed", True)]
    assert found.findings[0].text == (
        f'configmap/{name} in "openshift-config-managed": data.ca-bundle.crt: is malformed: it '
        "must consist of PEM certificates"
    )


def test_a_missing_infrastructure_is_reported(pem: str) -> None:
    found = gather_credentials(snapshot(pem, infrastructure=None))
    assert findings(found, "reason", "blocking") == [("InfrastructureMissing", True)]
    assert "status.apiServerInternalURI" in found.findings[0].text


@pytest.mark.parametrize("infrastructure", [{}, {"status": {}}])
def test_a_missing_api_server_url_is_not_guessed(pem: str, infrastructure: Any) -> None:
    found = gather_credentials(snapshot(pem, infrastructure=infrastructure))
    assert names.KUBECONFIG not in found.parts
