"""What replaces settings of the cluster, and flags found at adoption, that have an error."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT
from kube_scheduler_operator.config.effective.control_plane.accepted_settings import (
    AcceptedSettings,
    SettingsInEffect,
    effective_settings,
)
from kube_scheduler_operator.config.effective.control_plane.compose import compose
from kube_scheduler_operator.config.effective.control_plane.inputs import Inputs
from kube_scheduler_operator.config.effective.control_plane.recorded_inputs import RecordedInputs
from kube_scheduler_operator.config.language.versions import Version

from .....control_plane_inputs import inputs_of, inputs_with

GATES = {"status": {"featureGates": [{"version": "1.2.3", "enabled": []}]}}
INPUTS = inputs_of(KUBEADM, Version(1, 35, 4), {"spec": {}}, {})
IN_CLUSTER = inputs_with(
    INPUTS,
    platform=replace(KUBEADM, cluster_config=True),
    feature_gate=GATES,
    infrastructure={"status": {"apiServerInternalURI": "https://api-int:6443"}},
)

ON_OPENSHIFT = inputs_with(IN_CLUSTER, platform=OPENSHIFT)


def effective(inputs: Inputs, accepted: AcceptedSettings) -> SettingsInEffect | None:
    errors = compose(inputs).errors
    assert errors, "the inputs have no error"
    return effective_settings(inputs, errors, accepted)


def accepted(**kubescheduler: Any) -> AcceptedSettings:
    return AcceptedSettings(3, RecordedInputs({}, kubescheduler))


@pytest.mark.parametrize(
    "custom",
    [
        {"minTLSVersion": "TLS13", "ciphers": []},
        {"minTLSVersion": "VersionTLS12", "ciphers": ["ECDHE-RSA-CHACHA20-POLY1305"]},
    ],
    ids=["unknown version", "not enough for HTTP/2"],
)
@pytest.mark.parametrize(
    ("settings", "flag", "note"),
    [
        (
            accepted(observedConfig={"servingInfo": {"minTLSVersion": "VersionTLS13"}}),
            "--tls-min-version=VersionTLS13",
            "(the value of revision 3 stays in use)",
        ),
        (AcceptedSettings(), "--tls-min-version=VersionTLS12", "(Intermediate is in effect)"),
    ],
    ids=["accepted", "never accepted"],
)
def test_the_tls_profile_of_the_cluster(
    custom: dict[str, Any], settings: AcceptedSettings, flag: str, note: str
) -> None:
    profile = {"type": "Custom", "custom": custom}
    inputs = inputs_with(IN_CLUSTER, apiserver={"spec": {"tlsSecurityProfile": profile}})
    found = effective(inputs, settings)
    assert found is not None
    assert flag in found.composition.arguments
    assert not found.composition.blocking
    (error,) = found.findings
    assert error.condition == names.CONFIG_OBSERVATION_DEGRADED
    assert error.path.startswith("APIServer/cluster spec.tlsSecurityProfile.custom")
    assert error.message.endswith(note)
    assert not error.blocking


def test_a_new_node_whose_scheduler_has_a_file_stops_no_edit() -> None:
    arguments = ("--config=/etc/own.yaml", "--permit-port-sharing=true")
    inputs = inputs_with(
        ON_OPENSHIFT, stock_arguments=arguments, kubescheduler={"spec": {"logLevel": "Debug"}}
    )
    found = effective(inputs, accepted(observedConfig={"arguments": {"secure-port": ["10270"]}}))
    assert found is not None
    assert "-v=4" in found.composition.arguments
    assert "--secure-port=10270" in found.composition.arguments
    assert "--permit-port-sharing=true" not in found.composition.arguments
    assert [error.reason for error in found.findings] == ["SchedulerHasConfigFile"]


@pytest.mark.parametrize(
    "inputs",
    [
        inputs_with(ON_OPENSHIFT, stock_arguments=("--config=/etc/own.yaml",)),
        inputs_with(INPUTS, stock_arguments=("--permit-port=1",)),
        inputs_with(INPUTS, scheduler=None),
        inputs_with(IN_CLUSTER, infrastructure={"status": {}}),
    ],
    ids=["file", "flag", "no Scheduler", "no API server"],
)
def test_before_the_first_revision_these_stop_it(inputs: Inputs) -> None:
    assert effective(inputs, AcceptedSettings()) is None


def test_the_flags_of_the_adopted_scheduler_stay_while_a_field_has_an_error() -> None:
    inputs = inputs_with(
        INPUTS,
        stock_arguments=("--tls-min-version=VersionTLS13", "--feature-gates=AllBeta=false"),
        kubescheduler={
            "spec": {"tlsSecurityProfile": {"type": "Moderne"}, "featureGates": {"Foo": True}}
        },
    )
    found = effective(inputs, AcceptedSettings())
    assert found is not None
    assert "--tls-min-version=VersionTLS13" in found.composition.arguments
    assert "--feature-gates=AllBeta=false" in found.composition.arguments
