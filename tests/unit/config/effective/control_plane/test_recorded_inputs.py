"""What users had set is recorded with a revision and can be read back."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.config.effective.control_plane.recorded_inputs import (
    KUBESCHEDULER_FIELDS,
    SCHEDULER_FIELDS,
    RecordedInputs,
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
