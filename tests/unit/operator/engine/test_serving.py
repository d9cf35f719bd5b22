"""The sources of the TLS settings of the operator's own port, in their order."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

import pytest

from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT, RKE2, Platform
from kube_scheduler_operator.kube import resource as kinds
from kube_scheduler_operator.kube.store import Store
from kube_scheduler_operator.operator.engine.serving import Serving, ServingSources
from kube_scheduler_operator.serving.certificate import ServingCertificate

from ..telemetry.handshakes import handshake

if TYPE_CHECKING:
    from ...conftest import CertificateFiles

MODERN = {"type": "Modern", "modern": {}}
SUITE = "ECDHE-ECDSA-AES256-GCM-SHA384"
CUSTOM = {"type": "Custom", "custom": {"ciphers": [SUITE], "minTLSVersion": "VersionTLS12"}}


def config(text: str) -> str:
    return f"apiVersion: operator.openshift.io/v1alpha1\nkind: GenericOperatorConfig\n{text}"


class World:
    """A port, and the store of its process."""

    def __init__(self, platform: Platform, files: CertificateFiles) -> None:
        self.store, self.version = Store(), 0
        certificate = ServingCertificate(files.certificate, files.key)
        self.serving = Serving(
            certificate, lambda: ServingSources.of(self.store, platform), platform
        )

    def configure(self, text: str) -> None:
        """Write the ConfigMap in which the cluster configures the operator."""
        name, namespace = OPENSHIFT.operator.config, OPENSHIFT.operator_namespace
        self.put(kinds.CONFIG_MAPS, name, namespace, data={"config.yaml": text})

    def put(self, resource: kinds.Resource, name: str, namespace: str = "", **fields: Any) -> None:
        self.version += 1
        metadata = {"name": name, "uid": "u", "resourceVersion": str(self.version)}
        if namespace:
            metadata["namespace"] = namespace
        self.store.put(resource, {"metadata": metadata, **fields})

    @property
    def versions(self) -> tuple[bool, bool]:
        """Whether a client of TLS 1.2 gets a connection, and one of 1.3."""
        return self._gets(ssl.TLSVersion.TLSv1_2), self._gets(ssl.TLSVersion.TLSv1_3)

    def gets(self, cipher: str) -> bool:
        return self._gets(ssl.TLSVersion.TLSv1_2, cipher)

    def _gets(self, version: ssl.TLSVersion, ciphers: str = "ALL") -> bool:
        context = self.serving.certificate.context
        try:
            return bool(handshake(context, version=version, ciphers=ciphers))
        except ssl.SSLError:
            return False


@pytest.fixture
def world(request: pytest.FixtureRequest, served: CertificateFiles) -> World:
    return World(getattr(request, "param", OPENSHIFT), served)


PLAIN = pytest.mark.parametrize("world", [KUBEADM, RKE2], indirect=True, ids=["kubeadm", "rke2"])


async def test_openshifts_profile_of_the_api_servers_is_followed_while_serving(
    world: World,
) -> None:
    assert await world.serving.refresh() is True, "Intermediate until it is known"
    assert world.versions == (True, True)
    world.put(kinds.API_SERVERS, "cluster", spec={"tlsSecurityProfile": MODERN})
    assert await world.serving.refresh() is True
    assert world.versions == (False, True)
    assert await world.serving.refresh() is False
    world.put(kinds.API_SERVERS, "cluster", spec={"tlsSecurityProfile": CUSTOM})
    assert await world.serving.refresh() is True
    assert (world.gets(SUITE), world.gets("ECDHE-ECDSA-AES128-GCM-SHA256")) == (True, False)
    world.put(kinds.API_SERVERS, "cluster", spec={})
    assert await world.serving.refresh() is True
    assert world.versions == (True, True)


@PLAIN
async def test_kubeschedulers_profile_is_followed_on_plain_clusters(world: World) -> None:
    assert await world.serving.refresh() is False, "the default"
    world.put(kinds.API_SERVERS, "cluster", spec={"tlsSecurityProfile": MODERN})
    assert await world.serving.refresh() is False, "not an object of this platform"
    world.put(kinds.KUBE_SCHEDULERS, "cluster", spec={"tlsSecurityProfile": MODERN})
    assert await world.serving.refresh() is True
    assert world.versions == (False, True)
    world.put(kinds.KUBE_SCHEDULERS, "cluster", spec={})
    assert await world.serving.refresh() is True
    assert world.versions == (True, True)


async def test_kubeschedulers_own_profile_has_no_effect_on_openshift(world: World) -> None:
    world.put(kinds.KUBE_SCHEDULERS, "cluster", spec={"tlsSecurityProfile": MODERN})
    await world.serving.refresh()
    assert world.versions == (True, True)


async def test_serving_info_of_the_config_map_comes_first(world: World) -> None:
    world.put(kinds.API_SERVERS, "cluster", spec={"tlsSecurityProfile": MODERN})
    world.configure(config("servingInfo: {minTLSVersion: VersionTLS12}"))
    await world.serving.refresh()
    assert world.versions == (True, True)
    world.configure(config(""))
    assert await world.serving.refresh() is True
    assert world.versions == (False, True)
    world.put(kinds.API_SERVERS, "cluster", spec={})
    world.configure(config("servingInfo: {minTLSVersion: VersionTLS13}"))
    await world.serving.refresh()
    assert world.versions == (False, True)
    world.store.forget(
        kinds.ObjectRef(kinds.CONFIG_MAPS, OPENSHIFT.operator_namespace, OPENSHIFT.operator.config)
    )
    await world.serving.refresh()
    assert world.versions == (True, True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "it is not YAML"),
        ("[]", "it must be an object of kind GenericOperatorConfig"),
        ("kind: ConfigMap", "it must be an object of kind GenericOperatorConfig"),
        (config("servingInfo: 1"), "servingInfo must be an object"),
        (
            config("servingInfo: {minTLSVersion: 1.3}"),
            'servingInfo.minTLSVersion: "1.3" is unknown',
        ),
    ],
)
async def test_a_malformed_config_map_is_reported_once_and_the_settings_stay(
    world: World, text: str, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    world.configure(config("servingInfo: {minTLSVersion: VersionTLS13}"))
    await world.serving.refresh()
    world.configure(text)
    assert await world.serving.refresh() is False
    assert await world.serving.refresh() is False
    assert world.versions == (False, True)
    assert len([r for r in caplog.records if problem in r.getMessage()]) == 1
    assert OPENSHIFT.operator.config in caplog.text


async def test_cipher_suites_that_the_port_cannot_have_are_reported(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    suites = "[TLS_X, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]"
    world.configure(config(f"servingInfo: {{cipherSuites: {suites}}}"))
    assert await world.serving.refresh() is True
    assert world.gets(SUITE)
    assert "does not support: TLS_X" in caplog.text


async def test_certificates_of_the_api_servers_clients_are_accepted(
    world: World, second_certificate: CertificateFiles
) -> None:
    context = world.serving.certificate.context
    await world.serving.refresh()
    assert handshake(context, client=second_certificate).client is None
    ca = {"client-ca-file": second_certificate.certificate.read_text()}
    world.put(kinds.CONFIG_MAPS, "extension-apiserver-authentication", "kube-system", data=ca)
    await world.serving.refresh()
    assert handshake(context, client=second_certificate).client
