"""Feature gates: who may name one, who wins, and what the scheduler never gets to see."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT
from kube_scheduler_operator.controlplane.compose import Composition, Inputs, Version, compose
from kube_scheduler_operator.schedulerconfig.feature_gates import known_gates

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
        Inputs(
            platform=OPENSHIFT,
            operand_version=Version(1, minor),
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
        Inputs(
            platform=KUBEADM,
            operand_version=Version(1, minor),
            scheduler={"spec": {"profileCustomizations": customizations}},
            kubescheduler={"spec": {"featureGates": gates, "observedConfig": observed}},
            **more,
        )
    )


def passed_on(composition: Composition) -> str | None:
    found = [word for word in composition.arguments if word.startswith("--feature-gates=")]
    assert len(found) <= 1
    return found[0].partition("=")[2] if found else None


def told(composition: Composition) -> list[tuple[str, str, bool]]:
    return [(f.condition, f.reason, f.blocking) for f in composition.findings]


OURS = entry("4.20.1", ["StorageCapacityScoring", "GangScheduling"], ["AllAlpha"])
EXPECTED = "AllAlpha=false,GangScheduling=true,StorageCapacityScoring=true"


def test_gates_are_sorted_and_stand_before_the_verbosity() -> None:
    composition = cluster(feature_gate(OURS))
    assert [word for word in composition.arguments if not word.startswith(TLS)][-2:] == [
        f"--feature-gates={EXPECTED}",
        "-v=2",
    ]
    assert told(composition) == []
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
def test_the_entry_of_the_payload_counts(entries: list[Any], version: str) -> None:
    composition = cluster(feature_gate(*entries), version=version)
    assert passed_on(composition) == EXPECTED
    assert told(composition) == []


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        (None, "it does not exist"),
        (feature_gate(), "no entry for version 4.20.1, only nothing"),
        (feature_gate(entry("4.19.1"), entry("4.19.2")), "only 4.19.1 or 4.19.2"),
        ({"status": {"featureGates": "x"}}, "no entry for version 4.20.1"),
    ],
)
def test_gates_that_are_not_to_be_found_stay_as_they_are(gate: Any, said: str) -> None:
    before = cluster(feature_gate(OURS))
    composition = cluster(gate, previous_arguments=before.arguments)
    assert composition.arguments == before.arguments
    assert told(composition) == [(names.CONFIG_OBSERVATION_DEGRADED, "FeatureGatesNotFound", False)]
    assert said in composition.findings[0].text
    assert passed_on(cluster(gate)) is None
    assert passed_on(cluster(gate, previous_arguments=("--feature-gates=A",))) is None


def test_a_gate_that_the_operand_does_not_know_is_not_passed_on() -> None:
    gates = entry("4.20.1", ["OpenShiftPodSecurityAdmission", "StorageCapacityScoring"])
    assert passed_on(cluster(feature_gate(gates))) == "StorageCapacityScoring=true"
    alone = cluster(feature_gate(entry("4.20.1", ["OpenShiftPodSecurityAdmission"])))
    assert passed_on(alone) is None
    assert told(alone) == []


def test_a_gate_that_is_locked_to_another_value_is_not_passed_on() -> None:
    locked = entry("4.20.1", ["AnyVolumeDataSource"], ["DynamicResourceAllocation"])
    composition = cluster(feature_gate(locked))
    assert passed_on(composition) == "AnyVolumeDataSource=true"
    assert told(composition) == []


def test_all_gates_of_a_release_pass_in_either_position() -> None:
    known = [*(known_gates(35) or ()), "NoSuchThing"]
    for gates in (entry("1", known), entry("1", (), known)):
        assert told(cluster(feature_gate(gates))) == []


@pytest.mark.parametrize("minor", [28, 99])
def test_without_a_record_no_gate_is_passed_on_and_that_is_told(minor: int) -> None:
    composition = cluster(feature_gate(OURS), minor=minor)
    assert passed_on(composition) is None
    assert told(composition) == [(names.INEFFECTIVE_SETTINGS, "FeatureGatesNotRecorded", False)]
    assert "none of its 3 gates" in composition.findings[0].message
    assert told(cluster(feature_gate(entry("4.20.1")), minor=minor)) == []


@pytest.mark.parametrize("value", ["x", {"a": 1}, [1], [{"name": 1}], [{}], None])
def test_malformed_entries_are_nothing(value: Any) -> None:
    gate = feature_gate({"version": "4.20.1", "enabled": value, "disabled": value})
    assert passed_on(cluster(gate)) is None


# --- plain clusters ---------------------------------------------------------------------------


def test_own_gates_are_passed_on_sorted() -> None:
    composition = plain({"StorageCapacityScoring": True, "AllAlpha": False})
    assert passed_on(composition) == "AllAlpha=false,StorageCapacityScoring=true"
    assert told(composition) == []
    assert composition.observed_config == {}


@pytest.mark.parametrize(
    ("gates", "reason", "path", "said"),
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
def test_an_own_gate_that_cannot_be_blocks_and_is_named(
    gates: Any, reason: str, path: str, said: str
) -> None:
    composition = plain(gates)
    assert told(composition) == [(names.TARGET_CONFIG_DEGRADED, reason, True)]
    assert composition.findings[0].path == path
    assert said in composition.findings[0].message


def test_what_is_not_on_record_is_left_to_the_preflight() -> None:
    for composition in (plain({"New": True}, minor=99), plain({"New": True}, stock_image=False)):
        assert passed_on(composition) == "New=true"
        assert told(composition) == []


def test_a_gate_that_was_adopted_goes_with_the_version_that_loses_it() -> None:
    adopted = "AllAlpha=false,VolumeCapacityPriority=true"
    assert passed_on(plain(adopted=adopted, minor=32)) == adopted
    assert passed_on(plain(adopted=adopted, minor=33)) == "AllAlpha=false"


def test_own_gates_join_those_of_the_adoption_and_win() -> None:
    adopted = "StorageCapacityScoring=true,AllBeta=true"
    assert passed_on(plain(adopted=adopted)) == adopted
    joined = plain({"AllBeta": False, "AllAlpha": False}, adopted=adopted)
    assert passed_on(joined) == "AllAlpha=false,AllBeta=false,StorageCapacityScoring=true"


def test_a_mistake_in_the_adopted_gates_is_found_there() -> None:
    composition = plain({"AllBeta": False}, adopted="AllAlpha", minor=99)
    assert [finding.path for finding in composition.findings] == [
        "spec.observedConfig.arguments.feature-gates"
    ]


def test_a_cluster_with_a_featuregate_has_no_second_place_for_gates() -> None:
    spec = {"featureGates": {"AllAlpha": True}, "tlsSecurityProfile": {"type": "Old"}}
    composition = cluster(feature_gate(OURS), spec=spec)
    assert composition.arguments == cluster(feature_gate(OURS)).arguments
    assert told(composition) == [(names.INEFFECTIVE_SETTINGS, "SetElsewhere", False)] * 2


# --- dynamic resource allocation --------------------------------------------------------------

DRA = "DynamicResourceAllocation"


@pytest.mark.parametrize(
    ("wish", "minor", "gates", "reason"),
    [
        *(("Enabled", minor, f"{DRA}=true", None) for minor in range(29, 34)),
        *(("Enabled", minor, None, "EnabledByDefault") for minor in range(34, 37)),
        *(("Disabled", minor, f"{DRA}=false", None) for minor in range(29, 35)),
        *(("Disabled", minor, None, "CannotBeDisabled") for minor in range(35, 37)),
        *(("", minor, None, None) for minor in range(29, 37)),
    ],
)
def test_dynamic_resource_allocation_does_what_its_name_says(
    wish: str, minor: int, gates: str | None, reason: str | None
) -> None:
    composition = plain(dynamic=wish, minor=minor)
    assert passed_on(composition) == gates
    expected = [(names.INEFFECTIVE_SETTINGS, reason, False)] if reason else []
    assert told(composition) == expected
    assert composition.config == plain(minor=minor).config


def test_an_unknown_wish_blocks() -> None:
    composition = plain(dynamic="enabled")
    assert told(composition) == [(names.TARGET_CONFIG_DEGRADED, "UnknownCustomization", True)]
    assert 'did you mean "Enabled"?' in composition.findings[0].message


def test_the_more_special_field_wins() -> None:
    composition = plain({DRA: False}, dynamic="Enabled", adopted=f"{DRA}=true", minor=33)
    assert passed_on(composition) == f"{DRA}=false"
    wished = {"spec": {"profileCustomizations": {"dynamicResourceAllocation": "Enabled"}}}
    composition = cluster(feature_gate(OURS), scheduler=wished, minor=33)
    assert passed_on(composition) == f"AllAlpha=false,{DRA}=true,StorageCapacityScoring=true"
