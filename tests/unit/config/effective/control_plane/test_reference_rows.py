"""The unit tables of OpenShift's operator, row by row: the same inputs, and their result here.

Rows with another result have it in the column beside the reference's. The tables of its framework
have tests of their own; docs/openshift-comparison.md lists all.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import OPENSHIFT
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.config.effective.control_plane.compose import (
    Composition,
    compose,
)
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.operator.controlplane.cluster_operator import DEGRADED_INERTIA
from kube_scheduler_operator.operator.controlplane.revision.credentials import gather_credentials
from kube_scheduler_operator.operator.model.snapshot import Snapshot

from .....control_plane_inputs import inputs_of
from ....deploy.overlays import DEPLOY

VERSION = Version(1, 35)
KUBECONFIG = "/etc/kubernetes/static-pod-resources/configmaps/scheduler-kubeconfig/kubeconfig"
INTERMEDIATE = (
    "TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256,"
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,"
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,"
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"
)


def composed(desired: Any = None, /, overrides: Any = None, **more: Any) -> Composition:
    spec = {} if overrides is None else {"unsupportedConfigOverrides": overrides}
    inputs: dict[str, Any] = {
        "platform": OPENSHIFT,
        "default_version": VERSION,
        "scheduler": {"spec": desired or {}},
        "kubescheduler": {"spec": spec},
    }
    return compose(inputs_of(**{**inputs, **more}))


def blocking(composition: Composition) -> list[str]:
    return [finding.reason for finding in composition.findings if finding.blocking]


def after_defaults(composition: Composition) -> list[str]:
    """The arguments behind those that every scheduler of the reference has."""
    base = [
        "--config=/etc/kubernetes/static-pod-resources/configmaps/config/config.yaml",
        "--cert-dir=/var/run/kubernetes",
        f"--authentication-kubeconfig={KUBECONFIG}",
        f"--authorization-kubeconfig={KUBECONFIG}",
    ]
    tls = [f"--tls-cipher-suites={INTERMEDIATE}", "--tls-min-version=VersionTLS12"]
    assert list(composition.arguments[:4]) == base
    return [argument for argument in composition.arguments[4:] if argument not in tls]


# --- the configuration ------------------------------------------------------------------------
MOST_ALLOCATED = [
    {
        "schedulerName": "default-scheduler",
        "pluginConfig": [
            {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
        ],
        "plugins": {
            "score": {
                "enabled": [{"name": "NodeResourcesFit", "weight": 5}],
                "disabled": [{"name": "NodeResourcesBalancedAllocation"}],
            }
        },
    }
]
NO_SCORES = [
    {
        "schedulerName": "default-scheduler",
        "plugins": {
            "preScore": {"disabled": [{"name": "*"}]},
            "score": {"disabled": [{"name": "*"}]},
        },
    }
]


@pytest.mark.parametrize(
    ("profile", "profiles"),
    [
        ("LowNodeUtilization", None),
        ("HighNodeUtilization", MOST_ALLOCATED),
        ("NoScoring", NO_SCORES),
    ],
)
def test_manage_config_map_of_a_profile(profile: str, profiles: Any) -> None:
    composition = composed({"profile": profile})
    assert composition.config is not None
    assert composition.config.get("profiles") == profiles


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [({"scheduler": None}, "SchedulerNotFound"),
     ({"scheduler": {"spec": {"profile": "unknown-config"}}}, "UnknownProfile")],
    ids=["unknown-cluster", "unknown-profile"],
)  # fmt: skip
def test_manage_config_map_refuses(inputs: dict[str, Any], reason: str) -> None:
    assert blocking(composed(**inputs)) == [reason]


# --- the kubeconfig ---------------------------------------------------------------------------
def infrastructure(url: str) -> dict[str, Any]:
    return {"metadata": {"name": "cluster"}, "status": {"apiServerInternalURI": url}}


@pytest.mark.parametrize(
    ("found", "server", "reasons"),
    [
        (infrastructure("https://127.0.0.1:443"), "https://127.0.0.1:443", []),
        (infrastructure(""), None, ["NoAPIServerURL"]),
        (None, None, ["InfrastructureMissing"]),
    ],
    ids=["default", "no URL", "another name"],
)
def test_manage_scheduler_kubeconfig(found: Any, server: str | None, reasons: list[str]) -> None:
    snapshot = Snapshot(
        now=datetime(2026, 1, 1, tzinfo=UTC),
        platform=OPENSHIFT,
        settings=Settings(),
        infrastructure=found,
    )
    gathered = gather_credentials(snapshot)
    findings = [*gathered.findings, *composed(infrastructure=found).findings]
    about = [f.reason for f in findings if f.reason in ("NoAPIServerURL", "InfrastructureMissing")]
    assert about == reasons
    data = gathered.parts.get(names.KUBECONFIG)
    if server is None:
        assert data is None
    else:
        assert data is not None
        config = yaml.safe_load(data[names.KUBECONFIG_KEY])
        assert config["clusters"][0]["cluster"]["server"] == server


# --- feature gates ----------------------------------------------------------------------------
def gates(enabled: list[str], disabled: list[str]) -> dict[str, Any]:
    of_release = {
        "version": "4.20",
        "enabled": [{"name": name} for name in enabled],
        "disabled": [{"name": name} for name in disabled],
    }
    return {"status": {"featureGates": [of_release]}}


@pytest.mark.parametrize(
    ("enabled", "disabled", "flag"),
    [
        # APIPriorityAndFairness is not a gate any more, and kube-scheduler exits at an unknown one.
        (["APIPriorityAndFairness", "RotateKubeletServerCertificate"],
         ["SchedulerAsyncAPICalls"],
         "RotateKubeletServerCertificate=true,SchedulerAsyncAPICalls=false"),
        (["RotateKubeletServerCertificate", "InPlacePodVerticalScaling"], [],
         "InPlacePodVerticalScaling=true,RotateKubeletServerCertificate=true"),
        (["CSIMigrationAWS", "SELinuxMount"], ["CSIMigrationGCE", "DRAPartitionableDevices"],
         "DRAPartitionableDevices=false,SELinuxMount=true"),
    ],
    ids=["enabled and disabled", "enabled only", "mixed, with gates of old releases"],
)  # fmt: skip
def test_the_flag_has_the_gates_of_the_release_that_exist(
    enabled: list[str], disabled: list[str], flag: str
) -> None:
    composition = composed(feature_gate=gates(enabled, disabled))
    assert [a for a in composition.arguments if "feature-gates" in a] == [f"--feature-gates={flag}"]


@pytest.mark.parametrize(
    ("enabled", "disabled", "here"),
    [
        (["APIPriorityAndFairness", "RotateKubeletServerCertificate"],
         ["RetroactiveDefaultStorageClass"], ["RotateKubeletServerCertificate=true"]),
        (["APIPriorityAndFairness", "BuildCSIVolumes"], [], []),
        (["CSIMigration", "CSIMigrationAWS"], ["CSIMigrationGCE"], []),
        (["ExperimentalCriticalPodAnnotation", "RotateKubeletServerCertificate", "CSIBlockVolume"],
         ["LocalStorageCapacityIsolation"], ["RotateKubeletServerCertificate=true"]),
        (["APIPriorityAndFairness", "DownwardAPIHugePages", "OpenShiftPodSecurityAdmission",
          "RotateKubeletServerCertificate"], ["RetroactiveDefaultStorageClass"],
         ["RotateKubeletServerCertificate=true"]),
    ],
    ids=["default", "techpreview", "custom", "sorted", "of the Pods"],
)  # fmt: skip
def test_check_and_sort_feature_gates(
    enabled: list[str], disabled: list[str], here: list[str]
) -> None:
    """There all of them are flags."""
    composition = composed(feature_gate=gates(enabled, disabled))
    (line, *_) = [*(a for a in composition.arguments if "feature-gates" in a), ""]
    assert line == (f"--feature-gates={','.join(here)}" if here else "")


# --- flags and the Pod ------------------------------------------------------------------------
MASTER = {"master": "https://localhost:1234"}
LOCALHOST = {"unsupported-kube-api-over-localhost": "true"}


@pytest.mark.parametrize(
    ("overrides", "arguments"),
    [
        (None, []),
        ({"arguments": MASTER}, ["--master=https://localhost:1234"]),
        ({"arguments": MASTER | LOCALHOST},
         ["--master=https://localhost:1234", "--unsupported-kube-api-over-localhost=true"]),
        ({"arguments": {"fakeKey": ["value1", "value2"]}},
         ["--fakeKey=value1", "--fakeKey=value2"]),
        ({}, []),
    ],
    ids=["nothing", "master", "master and a flag of the fork", "a list of values", "empty"],
)  # fmt: skip
def test_manage_pod_and_unsupported_flags(overrides: Any, arguments: list[str]) -> None:
    composition = composed(overrides=overrides)
    assert blocking(composition) == []
    assert after_defaults(composition) == ["-v=2", *arguments]


def test_malformed_overrides_are_reported_instead_of_ignored() -> None:
    """The reference's row has text that is not JSON, which the API server does not store."""
    assert blocking(composed(overrides={"arguments": ["fakeKey1", "fakeKey2"]})) == ["Malformed"]


CUSTOM = ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"]


@pytest.mark.parametrize(
    ("profile", "suites"),
    [
        (None, INTERMEDIATE),
        ({"type": "Custom", "custom": {"ciphers": CUSTOM, "minTLSVersion": "VersionTLS12"}},
         "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
    ],
    ids=["no APIServer", "custom"],
)  # fmt: skip
def test_manage_pod_tls_configuration(profile: Any, suites: str) -> None:
    apiserver = profile and {"spec": {"tlsSecurityProfile": profile}}
    composition = composed(apiserver=apiserver)
    assert f"--tls-cipher-suites={suites}" in composition.arguments
    assert "--tls-min-version=VersionTLS12" in composition.arguments
    observed = composition.observed_config["servingInfo"]
    assert ",".join(observed["cipherSuites"]) == suites


# --- the rest ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("condition", "reference", "here"),
    [
        ("NodeControllerDegraded", 600, 600),
        ("StaticPodsDegraded", 600, 30),
        ("TargetConfigControllerDegraded", 120, 0),
        ("RevisionControllerDegraded", 120, 120),
    ],
)
def test_new_degraded_inertia(condition: str, reference: int, here: int) -> None:
    assert DEGRADED_INERTIA.of(condition) == here <= reference


@pytest.mark.parametrize(
    "path",
    [
        path
        for folder in ("deploy", "crds", "operator/kube_scheduler_operator/bindata", "bindata")
        for path in sorted((DEPLOY.parent / folder).rglob("*.yaml"))
        if "templates" not in path.parts
    ],
    ids=lambda path: str(path.relative_to(DEPLOY.parent)),
)
def test_yaml_correctness(path: Any) -> None:
    """Templates are rendered and parsed by the tests of what they make."""
    documents = list(yaml.safe_load_all(path.read_text()))
    assert any(documents)
