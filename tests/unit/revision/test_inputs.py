"""What users had set is kept with a revision and can be read back."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.revision.inputs import RecordedInputs, read_inputs, record


def test_only_what_decides_about_a_revision_is_recorded_and_read_back() -> None:
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
        "NoScoring",
        {
            "forceRedeploymentReason": "",
            "logLevel": "Debug",
            "unsupportedConfigOverrides": {"arguments": {"v": None}},
        },
    )


def test_what_was_not_set_is_recorded_as_not_set() -> None:
    assert read_inputs(record({"spec": {}}, {"spec": {}})) == RecordedInputs(None, {})


def test_the_same_inputs_are_the_same_text() -> None:
    one = {"spec": {"logLevel": "Debug", "forceRedeploymentReason": "x"}}
    two = {"spec": dict(reversed(one["spec"].items()))}
    assert record(None, one) == record(None, two)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"profile":1,"kubescheduler":{}}', '{"profile":"a"}',
             '{"profile":null,"kubescheduler":[]}', "null"]
)  # fmt: skip
def test_what_is_no_record_is_read_as_none(text: str) -> None:
    assert read_inputs(text) is None
