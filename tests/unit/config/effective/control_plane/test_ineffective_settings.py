"""Settings that are not about kube-scheduler: reported where they have no effect."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.objects import mapping
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT
from kube_scheduler_operator.config.effective.control_plane.compose import compose
from kube_scheduler_operator.config.language.versions import Version

from .....control_plane_inputs import inputs_of

TAINT = "node-role.kubernetes.io/control-plane:NoSchedule"


@pytest.mark.parametrize(
    ("spec", "reason", "output"),
    [
        ({"mastersSchedulable": True}, "DecidedByTaints", f"control-plane {TAINT}-"),
        ({"mastersSchedulable": False}, "DecidedByTaints", f"control-plane {TAINT}"),
        ({"defaultNodeSelector": "a=b"}, "DecidedByAdmission", "PodNodeSelector"),
        ({"mastersSchedulable": None, "defaultNodeSelector": ""}, None, ""),
    ],
)
def test_ineffective_settings_are_reported_on_plain_clusters_only(
    spec: dict[str, Any], reason: str | None, output: str
) -> None:
    composition = compose(inputs_of(KUBEADM, Version(1, 35), {"spec": spec}, {}))
    expected = [(names.INEFFECTIVE_SETTINGS, reason, False)] if reason else []
    assert [(f.condition, f.reason, f.blocking) for f in composition.findings] == expected
    for finding in composition.findings:
        assert finding.path.removeprefix("spec.") in spec
        assert output in finding.message
    assert composition.arguments == compose(inputs_of(KUBEADM, Version(1, 35), {}, {})).arguments

    gate = {"status": {"featureGates": [{"version": "4.20.1"}]}}
    elsewhere = inputs_of(OPENSHIFT, Version(1, 35), {"spec": spec}, {}, feature_gate=gate)
    assert compose(elsewhere).findings == ()


def test_an_unknown_api_server_url_blocks() -> None:
    gate = {"status": {"featureGates": [{"version": "4.20.1"}]}}

    def with_url(url: Any) -> Any:
        infrastructure = {"status": {"apiServerInternalURI": url}}
        return compose(
            inputs_of(
                OPENSHIFT,
                Version(1, 35),
                {"spec": {}},
                {},
                feature_gate=gate,
                infrastructure=infrastructure,
            )
        )

    assert with_url("https://api-int:6443").findings == ()
    (finding,) = with_url("").findings
    assert (finding.condition, finding.blocking) == (names.TARGET_CONFIG_DEGRADED, True)
    assert finding.path == "Infrastructure/cluster status.apiServerInternalURI"


@pytest.mark.parametrize("value", [None, "x", [], 1])
def test_other_types_are_read_as_empty_objects(value: Any) -> None:
    assert mapping(value) == {}


def test_an_unknown_annotated_state_is_reported_and_blocks_nothing() -> None:
    annotations = {names.MANAGEMENT_ANNOTATION: "removed"}
    composition = compose(
        inputs_of(KUBEADM, Version(1, 35), {}, {"metadata": {"annotations": annotations}})
    )
    (finding,) = composition.findings
    assert (finding.condition, finding.reason) == (names.TARGET_CONFIG_DEGRADED, "UnknownValue")
    assert names.MANAGEMENT_ANNOTATION in finding.path
    assert 'did you mean "Removed"?' in finding.message
    assert not finding.blocking
