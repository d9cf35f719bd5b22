"""Observation: what the scheduler before us was given, remembered when it is gone."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.findings import Finding
from kube_scheduler_operator.base.platform import KUBEADM, RKE2, Platform
from kube_scheduler_operator.controlplane.observe import observe
from kube_scheduler_operator.model.inputs import Inputs
from kube_scheduler_operator.schedulerconfig.command_line import CONFIG_PATH
from kube_scheduler_operator.schedulerconfig.versions import Version

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
        Inputs(platform, Version(1, 35), {"spec": {}}, kubescheduler, stock_arguments=stock)
    )


def arguments(stock: tuple[str, ...], previous: Any = None) -> Any:
    observed, findings = observed_from(stock, previous)
    assert findings == ()
    assert set(observed) <= {"arguments"}
    return observed.get("arguments", {})


def test_a_stock_scheduler_says_nothing_of_its_own() -> None:
    assert observed_from(STOCK) == ({}, ())


@pytest.mark.parametrize(
    "ours",
    [
        "--v=4", "-v=4", "--profiling=true", "--contention-profiling=true", "--kube-api-qps=100",
        "--kube-api-burst=1", "--kube-api-content-type=x", "--leader-elect-lease-duration=30s",
        "--kubeconfig=/x", "--authentication-kubeconfig=/x", "--authorization-kubeconfig=/x",
    ],
)  # fmt: skip
def test_flags_that_we_own_or_that_a_configuration_file_disables_are_left_out(ours: str) -> None:
    assert arguments((*STOCK, ours)) == {}


def test_flags_of_the_user_are_kept_in_order_of_their_names() -> None:
    line = (*STOCK, "--tls-min-version=VersionTLS13", "--feature-gates=A=true", "--cert-dir", "/x")
    found = arguments((*line, "--feature-gates=B=true"))
    assert found == {
        "cert-dir": ["/x"],
        "feature-gates": ["A=true", "B=true"],
        "tls-min-version": ["VersionTLS13"],
    }
    assert list(found) == sorted(found)


def test_flags_that_name_files_of_rke2_which_our_pods_do_not_see_are_dropped() -> None:
    serving = "/var/lib/rancher/rke2/server/tls/kube-scheduler/kube-scheduler"
    line = (
        *STOCK, "--profiling=false", "--secure-port=10259", "--permit-port-sharing=true",
        f"--tls-cert-file={serving}.crt", f"--tls-private-key-file={serving}.key",
    )  # fmt: skip
    kept = {"permit-port-sharing": ["true"], "secure-port": ["10259"]}
    assert observed_from(line, platform=RKE2) == ({"arguments": kept}, ())


def test_another_value_than_the_platforms_is_kept() -> None:
    line = tuple(word.replace("127.0.0.1", "0.0.0.0") for word in STOCK)
    assert arguments(line) == {"bind-address": ["0.0.0.0"]}


def test_what_is_visible_wins_over_what_is_remembered() -> None:
    assert arguments(STOCK, {"arguments": {"cert-dir": ["/old"]}}) == {}


REMEMBERED = {"arguments": {"cert-dir": ["/x"]}}


@pytest.mark.parametrize("stock", [(), ("kube-scheduler", f"--config={CONFIG_PATH}", "--x=1")])
def test_it_is_remembered_when_only_our_own_pods_are_left(stock: tuple[str, ...]) -> None:
    assert arguments(stock, REMEMBERED) == {"cert-dir": ["/x"]}


@pytest.mark.parametrize(
    "previous",
    [
        None, "text", [], {"arguments": "text"}, {"arguments": {"x": "text"}},
        {"arguments": {"x": [1]}}, {"arguments": {"x": []}}, {"servingInfo": {"a": 1}},
    ],
)  # fmt: skip
def test_wrong_types_are_overwritten(previous: Any) -> None:
    assert observed_from((), previous) == ({}, ())


def test_observing_again_changes_nothing() -> None:
    observed, _ = observed_from((*STOCK, "--cert-dir=/x"))
    assert observed_from((), observed) == (observed, ())


def test_a_configuration_file_of_the_old_scheduler_blocks() -> None:
    _, (finding,) = observed_from((*STOCK, "--config=/etc/kubernetes/my.yaml"))
    assert finding.condition == names.CONFIG_OBSERVATION_DEGRADED
    assert finding.blocking
    assert "/etc/kubernetes/my.yaml" in finding.message
    assert "spec.unsupportedConfigOverrides" in finding.message
