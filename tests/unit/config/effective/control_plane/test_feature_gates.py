"""Feature gates: their sources, precedence, and which ones the scheduler gets."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT
from kube_scheduler_operator.config.effective.control_plane.compose import (
    Composition,
    compose,
)
from kube_scheduler_operator.config.language.feature_gates import known_gates
from kube_scheduler_operator.config.language.versions import Version

from .....control_plane_inputs import inputs_of
from .....expect import findings

TLS = "--tls-"


def entry(version: str, enabled: Any = (), disabled: Any = ()) -> dict[str, Any]:
    return {
        "version": version,
        "enabled": [{"name": name} for name in enabled],
        "disabled": [{"name": name} for name in disabled],
    }


def feature_gate(*entries: Any) -> dict[str, Any]:
    return {"spec": {"featureSet": "TechPreviewNoUpgrade"}, "status": {"featureGates": [*entries]}}


def cluster(gate: Any, *, version: str = "4.20.1", minor: int = 35, **more: Any) -> Composition:
    return compose(
        inputs_of(
            platform=OPENSHIFT,
            default_version=Version(1, minor),
            scheduler=more.pop("scheduler", {"spec": {}}),
            kubescheduler={"spec": more.pop("spec", {})},
            payload_version=version,
            feature_gate=gate,
            **more,
        )
    )


def plain(
    gates: Any = None, *, minor: int = 35, dynamic: Any = None, adopted: str = "", **more: Any
) -> Composition:
    customizations = {"dynamicResourceAllocation": dynamic}
    observed = {"arguments": {"feature-gates": [adopted]}} if adopted else {}
    return compose(
        inputs_of(
            platform=KUBEADM,
            default_version=Version(1, minor),
            scheduler={"spec": {"profileCustomizations": customizations}},
            kubescheduler={"spec": {"featureGates": gates, "observedConfig": observed}},
            **more,
        )
    )


def passed(composition: Composition) -> str | None:
    found = [word for word in composition.arguments if word.startswith("--feature-gates=")]
    assert len(found) <= 1
    return found[0].partition("=")[2] if found else None


OURS = entry("4.20.1", ["StorageCapacityScoring", "GangScheduling"], ["AllAlpha"])
EXPECTED = "AllAlpha=false,GangScheduling=true,StorageCapacityScoring=true"


def test_gates_are_sorted_and_precede_the_verbosity() -> None:
    composition = cluster(feature_gate(OURS))
    assert [word for word in composition.arguments if not word.startswith(TLS)][-2:] == [
        f"--feature-gates={EXPECTED}",
        "-v=2",
    ]
    assert composition.findings == ()
    assert set(composition.observed_config) == {"servingInfo"}


@pytest.mark.parametrize(
    ("entries", "version"),
    [
        pytest.param([OURS], "4.20.1", id="the exact version"),
        pytest.param([entry("4.19.9", ["ContextualLogging"]), OURS], "4.20.1", id="among others"),
        pytest.param([OURS], "4.21.0", id="the only one"),
        pytest.param([OURS], "", id="the only one, version not given"),
    ],
)
def test_the_entry_of_the_payload_version_is_used(entries: list[Any], version: str) -> None:
    composition = cluster(feature_gate(*entries), version=version)
    assert passed(composition) == EXPECTED
    assert composition.findings == ()


@pytest.mark.parametrize(
    ("gate", "output"),
    [
        (None, "it does not exist"),
        (feature_gate(), "it has no entry for version 4.20.1; the scheduler keeps"),
        (feature_gate(entry("4.19.1"), entry("4.19.2")), "only for 4.19.1 or 4.19.2"),
        ({"status": {"featureGates": "x"}}, "no entry for version 4.20.1"),
    ],
)
def test_without_an_entry_for_the_version_the_current_gates_stay(gate: Any, output: str) -> None:
    before = cluster(feature_gate(OURS))
    composition = cluster(gate, previous_arguments=before.arguments)
    assert composition.arguments == before.arguments
    assert findings(composition, "condition", "reason", "blocking") == [
        (names.CONFIG_OBSERVATION_DEGRADED, "FeatureGatesNotFound", False)
    ]
    assert output in composition.findings[0].text
    assert passed(cluster(gate)) is None
    assert passed(cluster(gate, previous_arguments=("--feature-gates=A",))) is None


def test_an_unknown_gate_is_omitted() -> None:
    gates = entry("4.20.1", ["OpenShiftPodSecurityAdmission", "StorageCapacityScoring"])
    assert passed(cluster(feature_gate(gates))) == "StorageCapacityScoring=true"
    alone = cluster(feature_gate(entry("4.20.1", ["OpenShiftPodSecurityAdmission"])))
    assert passed(alone) is None
    assert alone.findings == ()


def test_a_gate_locked_to_another_value_is_omitted() -> None:
    locked = entry("4.20.1", ["AnyVolumeDataSource"], ["DynamicResourceAllocation"])
    composition = cluster(feature_gate(locked))
    assert passed(composition) == "AnyVolumeDataSource=true"
    assert composition.findings == ()


def test_all_gates_of_a_release_may_be_enabled_or_disabled() -> None:
    known = [*(known_gates(35) or ()), "NoSuchThing"]
    for gates in (entry("1", known), entry("1", (), known)):
        assert cluster(feature_gate(gates)).findings == ()


@pytest.mark.parametrize("minor", [28, 99])
def test_gates_of_an_unrecorded_version_are_omitted_and_reported(minor: int) -> None:
    composition = cluster(feature_gate(OURS), minor=minor)
    assert passed(composition) is None
    assert findings(composition, "condition", "reason", "blocking") == [
        (names.INEFFECTIVE_SETTINGS, "FeatureGatesNotRecorded", False)
    ]
    assert "none of its 3 gates" in composition.findings[0].message
    assert cluster(feature_gate(entry("4.20.1")), minor=minor).findings == ()


@pytest.mark.parametrize("value", ["x", {"a": 1}, [1], [{"name": 1}], [{}], None])
def test_malformed_entries_are_ignored(value: Any) -> None:
    gate = feature_gate({"version": "4.20.1", "enabled": value, "disabled": value})
    assert passed(cluster(gate)) is None


# --- plain clusters ---------------------------------------------------------------------------


def test_own_gates_are_sorted() -> None:
    composition = plain({"StorageCapacityScoring": True, "AllAlpha": False})
    assert passed(composition) == "AllAlpha=false,StorageCapacityScoring=true"
    assert composition.findings == ()
    assert composition.observed_config == {}


@pytest.mark.parametrize(
    ("gates", "reason", "path", "output"),
    [
        (
            {"StorageCapacityScorin": True},
            "UnknownFeatureGate",
            "spec.featureGates.StorageCapacityScorin",
            'did you mean "StorageCapacityScoring"?',
        ),
        (
            {"DynamicResourceAllocation": False},
            "InvalidArgument",
            "spec.featureGates.DynamicResourceAllocation",
            "is locked to true in 1.35; remove it",
        ),
        ({"AllAlpha": "x"}, "Malformed", "spec.featureGates.AllAlpha", "neither true nor false"),
        (["AllAlpha"], "Malformed", "spec.featureGates", "a map from feature gates"),
    ],
)
def test_an_invalid_own_gate_blocks_and_is_reported(
    gates: Any, reason: str, path: str, output: str
) -> None:
    composition = plain(gates)
    assert findings(composition, "condition", "reason", "blocking") == [
        (names.TARGET_CONFIG_DEGRADED, reason, True)
    ]
    assert composition.findings[0].path == path
    assert output in composition.findings[0].message


def test_unrecorded_gates_are_left_to_the_preflight() -> None:
    for composition in (plain({"New": True}, minor=99), plain({"New": True}, stock=False)):
        assert passed(composition) == "New=true"
        assert composition.findings == ()


def test_an_adopted_gate_is_omitted_in_versions_without_it() -> None:
    adopted = "AllAlpha=false,VolumeCapacityPriority=true"
    assert passed(plain(adopted=adopted, minor=32)) == adopted
    assert passed(plain(adopted=adopted, minor=33)) == "AllAlpha=false"


def test_own_gates_override_adopted_gates() -> None:
    adopted = "StorageCapacityScoring=true,AllBeta=true"
    assert passed(plain(adopted=adopted)) == adopted
    joined = plain({"AllBeta": False, "AllAlpha": False}, adopted=adopted)
    assert passed(joined) == "AllAlpha=false,AllBeta=false,StorageCapacityScoring=true"


def test_an_invalid_adopted_gate_is_reported_at_its_field() -> None:
    composition = plain({"AllBeta": False}, adopted="AllAlpha", minor=99)
    assert [finding.path for finding in composition.findings] == [
        "spec.observedConfig.arguments.feature-gates"
    ]


def test_fields_replaced_by_cluster_objects_are_ineffective_on_openshift() -> None:
    spec = {"featureGates": {"AllAlpha": True}, "tlsSecurityProfile": {"type": "Old"}}
    composition = cluster(feature_gate(OURS), spec=spec)
    assert composition.arguments == cluster(feature_gate(OURS)).arguments
    assert (
        findings(composition, "condition", "reason", "blocking")
        == [(names.INEFFECTIVE_SETTINGS, "SetElsewhere", False)] * 2
    )


# --- dynamic resource allocation --------------------------------------------------------------

DRA = "DynamicResourceAllocation"


@pytest.mark.parametrize(
    ("setting", "minor", "gates", "reason"),
    [
        *(("Enabled", minor, f"{DRA}=true", None) for minor in range(29, 34)),
        *(("Enabled", minor, None, "EnabledByDefault") for minor in range(34, 37)),
        *(("Disabled", minor, f"{DRA}=false", None) for minor in range(29, 35)),
        *(("Disabled", minor, None, "CannotBeDisabled") for minor in range(35, 37)),
        *(("", minor, None, None) for minor in range(29, 37)),
    ],
)
def test_dynamic_resource_allocation_sets_its_gate(
    setting: str, minor: int, gates: str | None, reason: str | None
) -> None:
    composition = plain(dynamic=setting, minor=minor)
    assert passed(composition) == gates
    expected = [(names.INEFFECTIVE_SETTINGS, reason, False)] if reason else []
    assert findings(composition, "condition", "reason", "blocking") == expected
    assert composition.config == plain(minor=minor).config


def test_an_unknown_customization_blocks() -> None:
    composition = plain(dynamic="enabled")
    assert findings(composition, "condition", "reason", "blocking") == [
        (names.TARGET_CONFIG_DEGRADED, "UnknownCustomization", True)
    ]
    assert 'did you mean "Enabled"?' in composition.findings[0].message


def test_more_specific_fields_take_precedence() -> None:
    composition = plain({DRA: False}, dynamic="Enabled", adopted=f"{DRA}=true", minor=33)
    assert passed(composition) == f"{DRA}=false"
    customized = {"spec": {"profileCustomizations": {"dynamicResourceAllocation": "Enabled"}}}
    composition = cluster(feature_gate(OURS), scheduler=customized, minor=33)
    assert passed(composition) == f"AllAlpha=false,{DRA}=true,StorageCapacityScoring=true"
