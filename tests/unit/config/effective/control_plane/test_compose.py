"""From the objects in the API to the configuration file and flags."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT, Platform
from kube_scheduler_operator.base.templates import canonical_json
from kube_scheduler_operator.config.effective.control_plane.compose import (
    Composition,
    compose,
)
from kube_scheduler_operator.config.language.command_line import CONFIG_PATH, probe_target
from kube_scheduler_operator.config.language.versions import Version

from .....control_plane_inputs import inputs_of

COMMON = (
    '{"apiVersion":"kubescheduler.config.k8s.io/v1",'
    '"clientConnection":{"kubeconfig":"/etc/kubernetes/scheduler.conf"},'
    '"enableContentionProfiling":false,"enableProfiling":false,'
    '"kind":"KubeSchedulerConfiguration",'
    '"leaderElection":{"leaderElect":true,"leaseDuration":"15s","renewDeadline":"10s",'
    '"resourceLock":"leases","resourceName":"kube-scheduler","resourceNamespace":"kube-system",'
    '"retryPeriod":"2s"}'
)
HIGH = (
    ',"profiles":[{"pluginConfig":[{"args":{"scoringStrategy":{"type":"MostAllocated"}},'
    '"name":"NodeResourcesFit"}],"plugins":{"score":{'
    '"disabled":[{"name":"NodeResourcesBalancedAllocation"}],'
    '"enabled":[{"name":"NodeResourcesFit","weight":5}]}},"schedulerName":"default-scheduler"}]'
)
NO_SCORING = (
    ',"profiles":[{"plugins":{"preScore":{"disabled":[{"name":"*"}]},'
    '"score":{"disabled":[{"name":"*"}]}},"schedulerName":"default-scheduler"}]'
)


def composition_of(
    scheduler: Any = None,
    *,
    minor: int = 35,
    stock_image: bool = True,
    platform: Platform = KUBEADM,
    **spec: Any,
) -> Composition:
    return compose(
        inputs_of(
            platform=platform,
            default_version=Version(1, minor),
            scheduler={"spec": scheduler or {}},
            kubescheduler={"spec": spec},
            stock=stock_image,
        )
    )


def overridden(overrides: Any, profile: str = "", **more: Any) -> Composition:
    return composition_of({"profile": profile}, unsupportedConfigOverrides=overrides, **more)


def blocking(composition: Composition) -> list[tuple[str, str, str]]:
    return [(f.condition, f.reason, f.path) for f in composition.findings if f.blocking]


@pytest.mark.parametrize(
    ("profile", "tail"),
    [
        ("", ""),
        ("LowNodeUtilization", ""),
        ("HighNodeUtilization", HIGH),
        ("NoScoring", NO_SCORING),
    ],
)
@pytest.mark.parametrize("minor", range(29, 37))
def test_the_file_of_each_profile_has_the_exact_bytes(profile: str, tail: str, minor: int) -> None:
    composition = composition_of({"profile": profile}, minor=minor)
    warned = {"HighNodeUtilization": [("OutvotedStrategy", "spec.profile")]}
    assert [(f.reason, f.path) for f in composition.findings] == warned.get(profile, [])
    assert not composition.blocking
    assert composition.config is not None
    assert canonical_json(composition.config) == COMMON + tail + "}\n"


def test_the_arguments_of_a_fresh_cluster() -> None:
    assert composition_of().arguments == (
        f"--config={CONFIG_PATH}",
        "--authentication-kubeconfig=/etc/kubernetes/scheduler.conf",
        "--authorization-kubeconfig=/etc/kubernetes/scheduler.conf",
        "--bind-address=127.0.0.1",
        "-v=2",
    )


@pytest.mark.parametrize(
    ("level", "verbosity"),
    [(None, 2), ("", 2), ("Normal", 2), ("Debug", 4), ("Trace", 6), ("TraceAll", 10)],
)
def test_log_levels(level: Any, verbosity: int) -> None:
    assert composition_of(logLevel=level).arguments[-1] == f"-v={verbosity}"


def test_verbosity_in_the_overrides_wins_over_the_log_level() -> None:
    found = overridden({"arguments": {"v": 7}}, logLevel="Debug").arguments
    assert [word for word in found if word.startswith("-v")] == ["-v=7"]


@pytest.mark.parametrize(
    ("spec", "reason", "path", "output"),
    [
        ({"profile": "NoScorin"}, "UnknownProfile", "spec.profile", 'did you mean "NoScoring"?'),
        ({"profile": "X"}, "UnknownProfile", "spec.profile", "use LowNodeUtilization, HighNode"),
        ({"profile": 5}, "UnknownProfile", "spec.profile", 'profile "5" is not known'),
        ({"profile": "BinPacking"}, "UnknownProfile", "spec.profile", "spec.base: BinPacking"),
    ],
)
def test_an_unknown_profile_blocks(spec: Any, reason: str, path: str, output: str) -> None:
    composition = composition_of(spec)
    assert composition.config is None
    assert composition.blocking
    (finding,) = composition.findings
    assert (finding.condition, finding.reason) == (names.TARGET_CONFIG_DEGRADED, reason)
    assert finding.path == path
    assert output in finding.message


def test_an_unknown_log_level_blocks() -> None:
    composition = composition_of(logLevel="trace")
    assert blocking(composition) == [
        (names.TARGET_CONFIG_DEGRADED, "UnknownLogLevel", "spec.logLevel")
    ]
    assert 'did you mean "Trace"?' in composition.findings[0].message


def test_a_missing_scheduler_blocks_and_the_message_has_the_command() -> None:
    composition = compose(inputs_of(KUBEADM, Version(1, 35), None, {}))
    assert composition.config is None
    assert composition.blocking
    (finding,) = composition.findings
    assert finding.reason == "SchedulerNotFound"
    assert "kubectl apply" in finding.message


def test_a_policy_is_not_used_and_changes_nothing() -> None:
    composition = composition_of({"policy": {"name": "old"}, "profile": "NoScoring"})
    (finding,) = composition.findings
    assert (finding.condition, finding.blocking) == (names.TARGET_CONFIG_DEGRADED, False)
    assert "Kubernetes 1.23 removed Policy" in finding.message
    assert composition.config == composition_of({"profile": "NoScoring"}).config
    assert composition_of({"policy": {"name": ""}}).findings == ()


def test_overrides_take_precedence() -> None:
    composition = overridden(
        {
            "enableProfiling": True,
            "leaderElection": {"leaseDuration": "60s"},
            "profiles": [{"plugins": {"score": {"disabled": None}}}],
        },
        "HighNodeUtilization",
    )
    assert not composition.blocking
    config: Any = composition.config
    assert config["enableProfiling"] is True
    assert config["leaderElection"]["leaseDuration"] == "60s"
    assert config["leaderElection"]["renewDeadline"] == "10s"
    assert config["profiles"][0]["plugins"] == {
        "score": {"enabled": [{"name": "NodeResourcesFit", "weight": 5}]}
    }


def test_a_warning_about_the_named_profile_is_at_its_field() -> None:
    other = {"profiles": [{"plugins": {"filter": {"enabled": [{"name": "NodePorts"}]}}}]}
    composition = overridden(other, "HighNodeUtilization")
    assert ("OutvotedStrategy", "spec.profile") in {
        (f.reason, f.path) for f in composition.findings
    }


def test_null_removes_a_field_and_empty_parents() -> None:
    composition = overridden(
        {
            "leaderElection": {"leaseDuration": None},
            "profiles": [
                {"pluginConfig": [], "plugins": {"score": {"enabled": [], "disabled": []}}}
            ],
        },
        "HighNodeUtilization",
    )
    assert not composition.blocking
    config: Any = composition.config
    assert "leaseDuration" not in config["leaderElection"]
    assert config["profiles"][0]["schedulerName"] == "default-scheduler"
    assert "plugins" not in config["profiles"][0]


def test_serving_info_becomes_flags() -> None:
    composition = overridden(
        {
            "servingInfo": {
                "cipherSuites": ["TLS_AES_128_GCM_SHA256"],
                "minTLSVersion": "VersionTLS13",
            }
        }
    )
    assert not composition.blocking
    assert composition.arguments[-3:] == (
        "-v=2",
        "--tls-cipher-suites=TLS_AES_128_GCM_SHA256",
        "--tls-min-version=VersionTLS13",
    )
    assert composition.config is not None
    assert "servingInfo" not in composition.config


OVERRIDES = "spec.unsupportedConfigOverrides"


@pytest.mark.parametrize(
    ("overrides", "reason", "path"),
    [
        pytest.param({"parallelism": 0}, "InvalidConfiguration", "parallelism", id="top level"),
        pytest.param(
            {"profiles": [{"plugins": {"score": {"enabled": [{"name": "A"}]}}}]},
            "UnknownPlugin",
            "profiles[0].plugins.score.enabled[0].name",
            id="merged profile",
        ),
        pytest.param(
            {"profiles": [{"schedulerName": "b", "percentageOfNodesToScore": 101}]},
            "InvalidConfiguration",
            "profiles[0].percentageOfNodesToScore",
            id="second profile, first in the overrides",
        ),
        pytest.param(
            {
                "profiles": [
                    {
                        "pluginConfig": [
                            {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 101}}
                        ]
                    }
                ]
            },
            "InvalidPluginArgs",
            "profiles[0].pluginConfig[0].args.hardPodAffinityWeight",
            id="second arguments, first in the overrides",
        ),
        pytest.param(
            {"extenders": [{"prioritizeVerb": "p"}]},
            "InvalidExtender",
            "extenders[0].weight",
            id="something missing",
        ),
        pytest.param(
            {"arguments": {"tls-min-version": "x"}},
            "InvalidArgument",
            "arguments.tls-min-version",
            id="flag",
        ),
        pytest.param(
            {"servingInfo": {"cipherSuites": ["x"]}},
            "InvalidArgument",
            "servingInfo.cipherSuites",
            id="serving",
        ),
        pytest.param(
            {"arguments": {"leader-elect-lease-duration": "5s"}},
            "InvalidLeaderElection",
            "arguments.leader-elect-lease-duration",
            id="leader election by flag",
        ),
    ],
)
def test_a_finding_names_the_field_that_the_user_wrote(
    overrides: Any, reason: str, path: str
) -> None:
    composition = overridden(overrides, "HighNodeUtilization")
    assert blocking(composition) == [(names.OVERRIDES_DEGRADED, reason, f"{OVERRIDES}.{path}")]


def test_a_plugin_of_a_custom_image_does_not_block() -> None:
    overrides = {"profiles": [{"plugins": {"score": {"enabled": [{"name": "Mine"}]}}}]}
    assert overridden(overrides).blocking
    assert not overridden(overrides, stock_image=False).blocking


FORKED: dict[str, Any] = {
    "arguments": {
        "master": "https://localhost:1234",
        "unsupported-kube-api-over-localhost": "true",
        "feature-gates": "OpenShiftGate=true",
    }
}
"""Flags of OpenShift's fork of kube-scheduler, with the node's own API server."""


def test_on_openshift_flags_of_the_fork_are_left_to_its_image() -> None:
    composition = overridden(FORKED, platform=OPENSHIFT)
    assert blocking(composition) == []
    assert "--unsupported-kube-api-over-localhost=true" in composition.arguments
    assert "--feature-gates=OpenShiftGate=true" in composition.arguments
    warned = {
        finding.path
        for finding in composition.findings
        if finding.condition == names.CONFIGURATION_WARNINGS and finding.reason == "UnknownArgument"
    }
    assert warned == {f"{OVERRIDES}.arguments.unsupported-kube-api-over-localhost"}


def test_on_openshift_another_api_server_is_refused_before_an_image_checks_the_flags() -> None:
    """The input of OpenShift's specification about the preferred host."""
    preferred_host = {
        "master": ["https://api-int.example.com:1234"],
        "unsupported-kube-api-over-localhost": ["true"],
    }
    composition = overridden({"arguments": preferred_host}, platform=OPENSHIFT)
    assert blocking(composition) == [
        (names.OVERRIDES_DEGRADED, "UnsafeArgument", f"{OVERRIDES}.arguments.master")
    ]


def test_elsewhere_a_flag_of_the_fork_is_refused() -> None:
    reasons = {reason for _, reason, _ in blocking(overridden(FORKED))}
    assert reasons == {"UnknownArgument", "UnknownFeatureGate"}


def test_on_openshift_a_known_flag_is_still_checked() -> None:
    overrides = {"arguments": {"secure-port": "70000"}}
    assert blocking(overridden(overrides, platform=OPENSHIFT))


def test_a_feature_gate_in_the_arguments_affects_validation() -> None:
    shape = {"shape": [{"utilization": 0, "score": 0}]}
    overrides: dict[str, Any] = {
        "profiles": [{"pluginConfig": [{"name": "VolumeBinding", "args": shape}]}]
    }
    assert overridden(overrides).blocking
    overrides["arguments"] = {"feature-gates": "StorageCapacityScoring=true"}
    assert not overridden(overrides).blocking


def observing(*stock: str, **spec: Any) -> Composition:
    return compose(
        inputs_of(
            platform=KUBEADM,
            default_version=Version(1, 35),
            scheduler={"spec": {}},
            kubescheduler={"spec": spec},
            stock_arguments=("kube-scheduler", *stock),
        )
    )


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "10.0.0.5"])
def test_the_bind_address_determines_flag_and_probe(
    address: str,
) -> None:
    assert "--bind-address=127.0.0.1" in composition_of().arguments
    composition = composition_of(bindAddress=address)
    assert composition.findings == ()
    assert [a for a in composition.arguments if "bind" in a] == [f"--bind-address={address}"]
    host, _ = probe_target(composition.arguments, KUBEADM)
    assert host == (address if address == "10.0.0.5" else "127.0.0.1")
    found = observing("--bind-address=127.0.0.2", bindAddress=address)
    assert f"--bind-address={address}" in found.arguments


def test_an_invalid_bind_address_is_reported_at_its_field() -> None:
    assert blocking(composition_of(bindAddress="localhost")) == [
        (names.TARGET_CONFIG_DEGRADED, "InvalidArgument", "spec.bindAddress")
    ]


def test_observed_flags_survive_the_adoption() -> None:
    before = observing("--cert-dir=/x", "--leader-elect=true")
    assert before.observed_config == {"arguments": {"cert-dir": ["/x"]}}
    after = composition_of(observedConfig=before.observed_config)
    assert after.arguments == before.arguments
    assert after.observed_config == before.observed_config
    assert "--cert-dir=/x" in after.arguments


def test_an_observed_gate_that_the_version_lacks_is_omitted() -> None:
    composition = observing("--feature-gates=NoSuchThing=true,AllAlpha=false")
    assert not composition.blocking
    assert "--feature-gates=AllAlpha=false" in composition.arguments
    gone = observing("--feature-gates=NoSuchThing=true")
    assert not any("feature-gates" in word for word in gone.arguments)


def test_an_invalid_observed_flag_is_reported_at_its_field() -> None:
    composition = observing("--tls-min-version=1.2")
    assert blocking(composition) == [
        (
            names.CONFIG_OBSERVATION_DEGRADED,
            "InvalidArgument",
            "spec.observedConfig.arguments.tls-min-version",
        )
    ]


UNSAFE = [
    ("master", "https://evil.example"),
    ("authentication-skip-lookup", "true"),
    ("authorization-always-allow-paths", "/*"),
    ("client-ca-file", "/tmp/x"),
    ("requestheader-client-ca-file", "/tmp/x"),
    ("vmodule", "a=1\n--master=x"),
    ("vmodule", "a=1\x00"),
]


@pytest.mark.parametrize(
    ("flag", "value"), [*UNSAFE, ("authentication-kubeconfig", "/tmp/x")], ids=str
)
def test_an_override_cannot_choose_whom_a_scheduler_trusts(flag: str, value: str) -> None:
    path = f"spec.unsupportedConfigOverrides.arguments.{flag}"
    for name in (flag, flag.replace("-", "_")):
        assert blocking(overridden({"arguments": {name: value}})) == [
            (names.OVERRIDES_DEGRADED, "UnsafeArgument", path)
        ]


@pytest.mark.parametrize(("flag", "value"), UNSAFE, ids=str)
def test_neither_can_observed_flags_that_another_writer_added(flag: str, value: str) -> None:
    composition = composition_of(observedConfig={"arguments": {flag: [value]}})
    assert blocking(composition) == [
        (
            names.CONFIG_OBSERVATION_DEGRADED,
            "UnsafeArgument",
            f"spec.observedConfig.arguments.{flag}",
        )
    ]


@pytest.mark.parametrize(
    "flag",
    ["config", "kubeconfig", "authentication-kubeconfig", "write-config-to", "version",
     "leader-elect", "leader_elect", "leader-elect-resource-name", "v=2 --config", "--config"],
)  # fmt: skip
def test_flags_of_the_operator_are_never_taken_from_the_observed_configuration(flag: str) -> None:
    composition = composition_of(observedConfig={"arguments": {flag: ["false"]}})
    assert composition.arguments == composition_of().arguments
    assert not composition.blocking


words = st.sampled_from(
    ["profiles", "plugins", "score", "enabled", "disabled", "name", "pluginConfig", "args",
     "weight", "schedulerName", "extenders", "leaderElection", "leaderElect", "arguments",
     "servingInfo", "cipherSuites", "minTLSVersion", "NodeResourcesFit", "scoringStrategy",
     "multiPoint", "v",
     "feature-gates", "apiVersion", "kind", "managedResources", "clientConnection", "a%41", ""]
)  # fmt: skip
leaves = st.none() | st.booleans() | st.integers(-2, 101) | st.floats(0, 2) | words
anything = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4),
    max_leaves=15,
)


@settings(max_examples=80, deadline=None)
@given(anything, anything, anything)
def test_invalid_settings_of_users_never_raise(overrides: Any, observed: Any, policy: Any) -> None:
    spec = {"unsupportedConfigOverrides": overrides, "observedConfig": observed}
    before = copy.deepcopy(spec)
    composition = composition_of({"policy": policy}, **spec)
    assert spec == before
    assert composition == composition_of({"policy": policy}, **copy.deepcopy(spec))
    if composition.config is not None:
        assert '":null' not in canonical_json(composition.config)


@settings(max_examples=80, deadline=None)
@given(anything, anything, anything, st.sampled_from([KUBEADM, OPENSHIFT]), st.integers(29, 38))
def test_invalid_settings_of_the_cluster_never_raise(
    profile: Any, gates: Any, infrastructure: Any, platform: Platform, minor: int
) -> None:
    def composed() -> Composition:
        inputs = inputs_of(
            platform=platform,
            default_version=Version(1, minor),
            scheduler={"spec": {"profileCustomizations": gates, "mastersSchedulable": profile}},
            kubescheduler={"spec": {"tlsSecurityProfile": profile, "featureGates": gates}},
            apiserver={"spec": {"tlsSecurityProfile": {"type": "Custom", "custom": profile}}},
            feature_gate={"status": {"featureGates": [{"version": "1", "enabled": gates}, gates]}},
            infrastructure={"status": infrastructure},
            payload_version="1",
        )
        return compose(copy.deepcopy(inputs))

    first, second = composed(), composed()
    assert first == second
    assert json.dumps(first.observed_config) == json.dumps(second.observed_config)
    assert first.config is not None


def test_the_serving_certificate_of_the_cluster_is_used() -> None:
    inputs = inputs_of(OPENSHIFT, Version(1, 35), {"spec": {}}, {}, serving_certificate=True)
    directory = "/etc/kubernetes/static-pod-certs/secrets/serving-cert"
    flags = list(compose(inputs).arguments)
    at = flags.index("-v=2")
    assert flags[at + 1 : at + 3] == [
        f"--tls-cert-file={directory}/tls.crt",
        f"--tls-private-key-file={directory}/tls.key",
    ]
    assert flags[at + 3].startswith("--tls-cipher-suites=")
    assert not compose(inputs).blocking


def test_other_platforms_have_no_serving_certificate() -> None:
    inputs = inputs_of(KUBEADM, Version(1, 35), {"spec": {}}, {}, serving_certificate=True)
    assert "--tls-cert-file" not in " ".join(compose(inputs).arguments)
