"""`servingInfo` decides real handshakes: the versions and cipher suites that a client can get."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

import pytest

from kube_scheduler_operator.base.cipher_suites import OPENSSL
from kube_scheduler_operator.config.effective.control_plane.tls_profiles import TYPES, serving_info
from kube_scheduler_operator.serving.certificate import ServingCertificate
from kube_scheduler_operator.serving.tls_settings import TLSSettings, TLSSettingsError

from ..operator.telemetry.handshakes import handshake

if TYPE_CHECKING:
    from ..conftest import CertificateFiles

pytestmark = pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")

ECDSA_128 = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
ECDSA_256 = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
OLD_SUITE = "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA"
VERSIONS = [
    ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3,
]  # fmt: skip


def offered(serving: ServingCertificate) -> list[str]:
    """The versions of which a client that knows one version only gets a connection."""
    found = []
    for version in VERSIONS:
        try:
            found.append(str(handshake(serving.context, version=version).version))
        except ssl.SSLError:
            continue
    return found


@pytest.fixture
def serving(served: CertificateFiles) -> ServingCertificate:
    return ServingCertificate(served.certificate, served.key)


@pytest.mark.parametrize(
    ("info", "versions"),
    [
        pytest.param({}, ["TLSv1.2", "TLSv1.3"], id="default"),
        pytest.param({"type": "Intermediate"}, ["TLSv1.2", "TLSv1.3"], id="intermediate"),
        pytest.param({"type": "Modern"}, ["TLSv1.3"], id="modern"),
        pytest.param({"type": "Old"}, ["TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"], id="old"),
        pytest.param({"minTLSVersion": "VersionTLS13"}, ["TLSv1.3"], id="version-only"),
        pytest.param(
            {"minTLSVersion": "VersionTLS11", "cipherSuites": [OLD_SUITE]},
            ["TLSv1.1", "TLSv1.2", "TLSv1.3"],
            id="old-suite",
        ),
        pytest.param(
            {"minTLSVersion": "VersionTLS12", "cipherSuites": ["TLS_AES_128_GCM_SHA256"]},
            ["TLSv1.3"],
            id="suites-of-1.3-only",
        ),
        pytest.param(
            {"cipherSuites": ["TLS_RSA_WITH_NULL_MD5"]}, ["TLSv1.3"], id="unknown-suites-only"
        ),
        pytest.param({"minTLSVersion": "", "cipherSuites": []}, ["TLSv1.2", "TLSv1.3"], id="empty"),
        pytest.param(
            {"minTLSVersion": None, "cipherSuites": None}, ["TLSv1.2", "TLSv1.3"], id="null"
        ),
    ],
)
def test_a_client_gets_the_versions_of_the_settings_and_no_others(
    serving: ServingCertificate, info: dict[str, Any], versions: list[str]
) -> None:
    settings, _ = TLSSettings.parse(serving_info(info)[0] if "type" in info else info)
    serving.use(settings)
    assert offered(serving) == versions


@pytest.mark.parametrize("suites", [[ECDSA_256], [ECDSA_128], [OLD_SUITE, ECDSA_256]])
def test_a_client_gets_only_the_cipher_suites_of_the_list(
    serving: ServingCertificate, suites: list[str]
) -> None:
    serving.use(TLSSettings.parse({"cipherSuites": suites})[0])
    for name in (ECDSA_128, ECDSA_256, OLD_SUITE):
        version, cipher = ssl.TLSVersion.TLSv1_2, OPENSSL[name]
        if name in suites:
            assert handshake(serving.context, version=version, ciphers=cipher).cipher == cipher
        else:
            with pytest.raises(ssl.SSLError):
                handshake(serving.context, version=version, ciphers=cipher)


@pytest.mark.parametrize("first", TYPES[:3])
@pytest.mark.parametrize("second", TYPES[:3])
def test_the_last_settings_count_whatever_was_before(
    serving: ServingCertificate, first: str, second: str
) -> None:
    alone, _ = TLSSettings.parse(serving_info({"type": second})[0])
    serving.use(TLSSettings.parse(serving_info({"type": first})[0])[0])
    assert serving.use(alone) is (first != second)
    serving.use(TLSSettings())
    serving.use(alone)
    expected = {"Old": 4, "Intermediate": 2, "Modern": 1}
    assert len(offered(serving)) == expected[second]


def test_suites_that_cannot_be_used_are_named_and_the_others_used() -> None:
    settings, unknown = TLSSettings.parse(
        {"cipherSuites": ["TLS_NO", ECDSA_128, "TLS_AES_128_GCM_SHA256"]}
    )
    assert settings == TLSSettings("VersionTLS12", (OPENSSL[ECDSA_128],))
    assert unknown == ["TLS_NO"]


@pytest.mark.parametrize(
    ("info", "message"),
    [
        ({"minTLSVersion": "VersionTLS14"}, 'minTLSVersion: "VersionTLS14" is unknown; did you'),
        ({"minTLSVersion": "1.3"}, "use VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13"),
        ({"minTLSVersion": 13}, 'minTLSVersion: "13" is unknown'),
        ({"cipherSuites": "all"}, "cipherSuites must be a list"),
        ({"cipherSuites": [1]}, "cipherSuites must be a list"),
    ],
)
def test_values_without_a_meaning_are_an_error(info: dict[str, Any], message: str) -> None:
    with pytest.raises(TLSSettingsError, match=message):
        TLSSettings.parse(info)
