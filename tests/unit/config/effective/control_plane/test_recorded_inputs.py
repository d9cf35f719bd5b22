"""What users had set is recorded with a revision and can be read back."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.config.effective.control_plane.recorded_inputs import (
    KUBESCHEDULER_FIELDS,
    SCHEDULER_FIELDS,
    RecordedInputs,
    changed_objects,
    own_edits,
    read_inputs,
    record,
)


def test_only_inputs_of_a_revision_are_recorded_and_read_back() -> None:
    scheduler = {"metadata": {"name": "cluster"}, "spec": {"profile": "NoScoring", "policy": {}}}
    kubescheduler = {
        "spec": {
            "managementState": "Managed",
            "operatorLogLevel": "Debug",
            "logLevel": "Debug",
            "forceRedeploymentReason": "",
            "unsupportedConfigOverrides": {"arguments": {"v": None}},
            "observedConfig": None,
        },
        "status": {"latestAvailableRevision": 3},
    }
    assert read_inputs(record(scheduler, kubescheduler)) == RecordedInputs(
        {"profile": "NoScoring"},
        {
            "forceRedeploymentReason": "",
            "logLevel": "Debug",
            "unsupportedConfigOverrides": {"arguments": {"v": None}},
        },
    )


def test_every_setting_that_a_composition_reads_is_recorded() -> None:
    scheduler = dict.fromkeys(SCHEDULER_FIELDS, "x")
    kubescheduler = {key: {"a": ["b"]} for key in KUBESCHEDULER_FIELDS}
    assert {"profileCustomizations"} < SCHEDULER_FIELDS
    assert {"featureGates", "tlsSecurityProfile"} < KUBESCHEDULER_FIELDS
    text = record({"spec": scheduler}, {"spec": kubescheduler})
    assert read_inputs(text) == RecordedInputs(scheduler, kubescheduler)


def test_what_was_not_set_is_recorded_as_not_set() -> None:
    assert read_inputs(record({"spec": {}}, {"spec": {}})) == RecordedInputs({}, {})


def test_equal_inputs_have_equal_text() -> None:
    one = {"spec": {"logLevel": "Debug", "forceRedeploymentReason": "x"}}
    two = {"spec": dict(reversed(one["spec"].items()))}
    assert record(None, one) == record(None, two)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"scheduler":1,"kubescheduler":{}}', '{"scheduler":{}}',
             '{"scheduler":{},"kubescheduler":[]}', "null"]
)  # fmt: skip
def test_an_invalid_record_is_read_as_none(text: str) -> None:
    assert read_inputs(text) is None


def test_an_object_in_use_does_not_edit_the_observed_configuration() -> None:
    fragment: dict[str, Any] = {"profiles": {"batch": {"pluginConfig": []}}}
    observed = {"spec": {"logLevel": "Normal", "observedConfig": fragment}}
    before = read_inputs(record(None, {"spec": {"logLevel": "Normal"}}))
    after = read_inputs(record(None, observed, fragment["profiles"]))
    assert before is not None
    assert after is not None
    assert own_edits(before, after) == ()
    (edit,) = changed_objects(before, after)
    assert edit.name == "batch"


def test_every_edited_field_is_listed() -> None:
    before = RecordedInputs({"profile": "NoScoring"}, {"logLevel": "Normal"})
    after = RecordedInputs({}, {"logLevel": "Debug", "bindAddress": "::"})
    assert own_edits(before, after) == (
        "Scheduler: spec.profile",
        "KubeScheduler: spec.bindAddress, spec.logLevel",
    )
