"""TLS security profiles: the rows of OpenShift's table, and findings about others."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.cipher_suites import IANA
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT, Platform
from kube_scheduler_operator.config.effective.control_plane.compose import (
    Composition,
    compose,
)
from kube_scheduler_operator.config.effective.control_plane.tls_profiles import serving_info
from kube_scheduler_operator.config.language.flags import CIPHER_SUITES, validate_flags
from kube_scheduler_operator.config.language.versions import Version

from .....control_plane_inputs import inputs_of

MODERN = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"]
INTERMEDIATE = [
    *MODERN,
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
]
OLD = [
    *INTERMEDIATE,
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
]
GCM = ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"]
GCM_IANA = ["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]


def custom(ciphers: Any, version: Any = "VersionTLS12") -> dict[str, Any]:
    return {"type": "Custom", "custom": {"ciphers": ciphers, "minTLSVersion": version}}


PROFILES: dict[str, tuple[Any, str, list[str]]] = {
    "none": (None, "VersionTLS12", INTERMEDIATE),
    "without type": ({}, "VersionTLS12", INTERMEDIATE),
    "Intermediate": ({"type": "Intermediate", "intermediate": {}}, "VersionTLS12", INTERMEDIATE),
    "Modern": ({"type": "Modern", "modern": None}, "VersionTLS13", MODERN),
    "Old": ({"type": "Old"}, "VersionTLS10", OLD),
    "Custom": (custom(GCM), "VersionTLS12", GCM_IANA),
    "Custom in its own order": (custom(GCM[::-1], "VersionTLS11"), "VersionTLS11", GCM_IANA[::-1]),
}
each_profile = pytest.mark.parametrize(
    ("profile", "version", "suites"), PROFILES.values(), ids=PROFILES
)


def composed(
    profile: Any, *, minor: int = 35, platform: Platform = OPENSHIFT, **spec: Any
) -> Composition:
    """The composition for a cluster with this TLS profile, in the object of the platform."""
    setting = {} if profile is None else {"tlsSecurityProfile": profile}
    ours = platform is KUBEADM
    return compose(
        inputs_of(
            platform=platform,
            default_version=Version(1, minor),
            scheduler={"spec": {}},
            kubescheduler={"spec": {**spec, **(setting if ours else {})}},
            apiserver=None if ours else {"spec": setting},
            feature_gate={"status": {"featureGates": [{"version": "1"}]}},
        )
    )


def tls_flags(composition: Composition) -> list[str]:
    return [word for word in composition.arguments if word.startswith("--tls-")]


@each_profile
def test_a_profile_equals_openshifts(profile: Any, version: str, suites: list[str]) -> None:
    composition = composed(profile)
    info = {"minTLSVersion": version, "cipherSuites": suites}
    assert composition.observed_config == {"servingInfo": info}
    assert tls_flags(composition) == [
        f"--tls-cipher-suites={','.join(suites)}",
        f"--tls-min-version={version}",
    ]
    assert composition.findings == ()


def test_without_an_apiserver_it_is_intermediate() -> None:
    inputs = inputs_of(OPENSHIFT, Version(1, 35), {"spec": {}}, {})
    assert compose(inputs).observed_config == composed(None).observed_config


@each_profile
def test_on_plain_clusters_kubescheduler_has_the_same_profile(
    profile: Any, version: str, suites: list[str]
) -> None:
    composition = composed(profile, platform=KUBEADM)
    if profile is None:
        assert composition.observed_config == {}
        assert tls_flags(composition) == []
    else:
        assert composition.observed_config == composed(profile).observed_config
        assert tls_flags(composition) == tls_flags(composed(profile))
    assert composition.findings == ()


@pytest.mark.parametrize("minor", range(29, 37))
@pytest.mark.parametrize("platform", [KUBEADM, OPENSHIFT], ids=lambda platform: platform.name)
@each_profile
def test_the_flags_of_a_profile_are_valid_in_every_version(
    profile: Any, version: str, suites: list[str], platform: Platform, minor: int
) -> None:
    composition = composed(profile, minor=minor, platform=platform)
    assert not composition.blocking
    assert composition == composed(profile, minor=minor, platform=platform)
    flags = {"tls-cipher-suites": [",".join(suites)], "tls-min-version": [version]}
    assert list(validate_flags(flags, Version(1, minor))) == []


def test_kube_scheduler_supports_every_mapped_suite() -> None:
    assert set(IANA.values()) <= CIPHER_SUITES


def test_the_previous_observation_is_replaced() -> None:
    before = {"servingInfo": {"minTLSVersion": "VersionTLS11", "cipherSuites": ["DES-CBC3-SHA"]}}
    assert composed(None, observedConfig=before) == composed(None)


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("DHE-RSA-AES128-GCM-SHA256", 'did you mean "ECDHE-RSA-AES128-GCM-SHA256"?'),
        ("ECDHE-RSA-AES256-SHA384", "has no cipher suite"),
        ("ECDHE-ECDSA-AES256-SHA384", "has no cipher suite"),
        ("AES256-SHA256", "has no cipher suite"),
        ("quantum", '"quantum"; remove it'),
        ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "write ECDHE-RSA-AES256-GCM-SHA384"),
    ],
)
@pytest.mark.parametrize("platform", [KUBEADM, OPENSHIFT], ids=lambda platform: platform.name)
def test_an_unsupported_suite_is_omitted_and_reported(
    platform: Platform, name: str, output: str
) -> None:
    composition = composed(custom([*GCM, name]), platform=platform)
    assert composition.observed_config == composed(custom(GCM)).observed_config
    (finding,) = composition.findings
    assert (finding.condition, finding.blocking) == (names.INEFFECTIVE_SETTINGS, False)
    assert finding.path.endswith("spec.tlsSecurityProfile.custom.ciphers[2]")
    assert finding.path.startswith("APIServer/cluster ") == (platform is OPENSHIFT)
    assert output in finding.message


WRONG: dict[str, tuple[Any, str, str, str]] = {
    "type": ({"type": "Moderm"}, "UnknownTLSProfile", ".type", 'did you mean "Modern"?'),
    "type that is not a string": (
        {"type": {"a": 1}},
        "UnknownTLSProfile",
        ".type",
        "use Old, Intermediate",
    ),
    "no object": ("Modern", "Malformed", "", "such as {type: Intermediate}"),
    "no custom": ({"type": "Custom"}, "Malformed", ".custom", "needs minTLSVersion and ciphers"),
    "null": ({"type": "Custom", "custom": None}, "Malformed", ".custom", "needs minTLSVersion"),
}


@pytest.mark.parametrize(("profile", "reason", "path", "output"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("platform", [KUBEADM, OPENSHIFT], ids=lambda platform: platform.name)
def test_a_malformed_profile_falls_back_to_intermediate_and_is_reported(
    platform: Platform, profile: Any, reason: str, path: str, output: str
) -> None:
    composition = composed(profile, platform=platform)
    assert composition.observed_config == composed({"type": "Intermediate"}).observed_config
    (finding,) = composition.findings
    ours = platform is KUBEADM
    condition = names.TARGET_CONFIG_DEGRADED if ours else names.CONFIG_OBSERVATION_DEGRADED
    # On OpenShift all components then fall back to Intermediate; the scheduler must as well.
    assert (finding.condition, finding.blocking, finding.reason) == (condition, ours, reason)
    owner = "" if ours else "APIServer/cluster "
    assert finding.path == f"{owner}spec.tlsSecurityProfile{path}"
    assert output in finding.message


@pytest.mark.parametrize(
    ("profile", "path", "output"),
    [
        (custom(GCM, "TLS12"), "minTLSVersion", '"TLS12" is not a TLS version'),
        (
            custom(["ECDHE-RSA-AES256-GCM-SHA384"]),
            "ciphers",
            "because HTTP/2 below TLS 1.3 requires",
        ),
    ],
)
@pytest.mark.parametrize("platform", [KUBEADM, OPENSHIFT], ids=lambda platform: platform.name)
def test_a_profile_with_which_no_scheduler_starts_blocks(
    platform: Platform, profile: Any, path: str, output: str
) -> None:
    composition = composed(profile, platform=platform)
    assert composition.blocking
    (finding,) = composition.findings
    assert finding.path.endswith(f"spec.tlsSecurityProfile.custom.{path}")
    assert output in finding.message


@pytest.mark.parametrize(
    ("profile", "info", "paths"),
    [
        (custom(["x"], "VersionTLS13"), {"minTLSVersion": "VersionTLS13"}, ["ciphers[0]"]),
        (custom(["x"]), {"minTLSVersion": "VersionTLS12"}, ["ciphers[0]", "ciphers"]),
        (custom([]), {"minTLSVersion": "VersionTLS12"}, []),
        (custom([1]), {"minTLSVersion": "VersionTLS12"}, ["ciphers"]),
        (custom(GCM, ""), {"cipherSuites": GCM_IANA}, []),
        (custom(GCM, 12), {"cipherSuites": GCM_IANA}, ["minTLSVersion"]),
    ],
)
def test_empty_values_are_omitted(profile: Any, info: Any, paths: list[str]) -> None:
    found, problems = serving_info(profile)
    assert found == info
    assert [p.path for p in problems] == [
        ("custom", "ciphers", 0) if path.endswith("]") else ("custom", path) for path in paths
    ]


def test_a_profile_replaces_all_tls_flags_of_the_adoption() -> None:
    adopted = {"arguments": {"tls-cipher-suites": ["X"], "tls-min-version": ["VersionTLS10"]}}
    composition = composed(custom([], "VersionTLS13"), platform=KUBEADM, observedConfig=adopted)
    assert tls_flags(composition) == ["--tls-min-version=VersionTLS13"]
    assert composition.observed_config["arguments"] == adopted["arguments"]


def test_overrides_win_over_the_profile_field_by_field() -> None:
    overrides = {"servingInfo": {"minTLSVersion": "VersionTLS13"}}
    composition = composed({"type": "Intermediate"}, unsupportedConfigOverrides=overrides)
    assert tls_flags(composition) == [
        f"--tls-cipher-suites={','.join(INTERMEDIATE)}",
        "--tls-min-version=VersionTLS13",
    ]
