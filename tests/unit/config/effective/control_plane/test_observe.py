"""The observed configuration: flags of the adopted scheduler, stored for later."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.findings import Finding
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT, RKE2, Platform
from kube_scheduler_operator.config.effective.control_plane.observe import observe
from kube_scheduler_operator.config.language.command_line import CONFIG_PATH
from kube_scheduler_operator.config.language.versions import Version

from .....control_plane_inputs import inputs_of

STOCK = (
    "kube-scheduler",
    "--authentication-kubeconfig=/etc/kubernetes/scheduler.conf",
    "--authorization-kubeconfig=/etc/kubernetes/scheduler.conf",
    "--bind-address=127.0.0.1",
    "--kubeconfig=/etc/kubernetes/scheduler.conf",
    "--leader-elect=true",
)


def observed_from(
    stock: tuple[str, ...], previous: Any = None, platform: Platform = KUBEADM
) -> tuple[dict[str, Any], tuple[Finding, ...]]:
    kubescheduler = {"spec": {"observedConfig": previous}}
    return observe(
        inputs_of(platform, Version(1, 35), {"spec": {}}, kubescheduler, stock_arguments=stock)
    )


def arguments(stock: tuple[str, ...], previous: Any = None) -> Any:
    observed, findings = observed_from(stock, previous)
    assert findings == ()
    assert set(observed) <= {"arguments"}
    return observed.get("arguments", {})


def test_a_stock_scheduler_has_no_observed_flags() -> None:
    assert observed_from(STOCK) == ({}, ())


@pytest.mark.parametrize(
    "owned",
    [
        "--v=2", "-v=2", "--profiling=true", "--contention-profiling=true", "--kube-api-qps=100",
        "--kube-api-burst=1", "--kube-api-content-type=x", "--leader-elect-lease-duration=30s",
        "--kubeconfig=/x", "--authentication-kubeconfig=/x", "--authorization-kubeconfig=/x",
    ],
)  # fmt: skip
def test_owned_flags_and_flags_ignored_with_a_file_are_omitted(owned: str) -> None:
    assert arguments((*STOCK, owned)) == {}


def test_the_verbosity_of_the_scheduler_before_the_operator_is_kept() -> None:
    assert arguments((*STOCK, "--v=4")) == {"v": ["4"]}
    assert arguments((), {"arguments": {"v": ["4"]}}) == {"v": ["4"]}


def test_openshift_derives_the_verbosity_from_its_own_field() -> None:
    observed, _ = observed_from((*STOCK, "-v=4"), platform=OPENSHIFT)
    assert "v" not in observed["arguments"]


def test_flags_of_the_user_are_kept_sorted_by_name() -> None:
    line = (*STOCK, "--tls-min-version=VersionTLS13", "--feature-gates=A=true", "--cert-dir", "/x")
    found = arguments((*line, "--feature-gates=B=true"))
    assert found == {
        "cert-dir": ["/x"],
        "feature-gates": ["A=true", "B=true"],
        "tls-min-version": ["VersionTLS13"],
    }
    assert list(found) == sorted(found)


def test_flags_with_files_of_rke2_are_omitted() -> None:
    serving = "/var/lib/rancher/rke2/server/tls/kube-scheduler/kube-scheduler"
    line = (
        *STOCK, "--profiling=false", "--secure-port=10259", "--permit-port-sharing=true",
        f"--tls-cert-file={serving}.crt", f"--tls-private-key-file={serving}.key",
    )  # fmt: skip
    kept = {"permit-port-sharing": ["true"], "secure-port": ["10259"]}
    assert observed_from(line, platform=RKE2) == ({"arguments": kept}, ())


def test_a_value_that_differs_from_the_platforms_is_kept() -> None:
    line = tuple(word.replace("127.0.0.1", "0.0.0.0") for word in STOCK)
    assert arguments(line) == {"bind-address": ["0.0.0.0"]}


def test_visible_flags_replace_stored_ones() -> None:
    assert arguments(STOCK, {"arguments": {"cert-dir": ["/old"]}}) == {}


STORED = {"arguments": {"cert-dir": ["/x"]}}


@pytest.mark.parametrize("stock", [(), ("kube-scheduler", f"--config={CONFIG_PATH}", "--x=1")])
def test_stored_flags_stay_while_only_the_operators_pods_are_visible(
    stock: tuple[str, ...],
) -> None:
    assert arguments(stock, STORED) == {"cert-dir": ["/x"]}


@pytest.mark.parametrize(
    "previous",
    [
        None, "text", [], {"arguments": "text"}, {"arguments": {"x": "text"}},
        {"arguments": {"x": [1]}}, {"arguments": {"x": []}}, {"servingInfo": {"a": 1}},
    ],
)  # fmt: skip
def test_wrong_types_are_overwritten(previous: Any) -> None:
    assert observed_from((), previous) == ({}, ())


def test_observation_is_idempotent() -> None:
    observed, _ = observed_from((*STOCK, "--cert-dir=/x"))
    assert observed_from((), observed) == (observed, ())


def test_a_configuration_file_of_the_old_scheduler_blocks() -> None:
    line = (*STOCK, "--config=/etc/kubernetes/my.yaml")
    assert observed_from(line) == ({}, ()), "read on the node"
    _, findings = observed_from(line, platform=OPENSHIFT)
    (finding,) = (one for one in findings if one.reason == "SchedulerHasConfigFile")
    assert finding.condition == names.CONFIG_OBSERVATION_DEGRADED
    assert finding.blocking
    assert "/etc/kubernetes/my.yaml" in finding.message
    assert "spec.unsupportedConfigOverrides" in finding.message
