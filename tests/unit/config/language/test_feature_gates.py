"""State of feature gates with AllAlpha and AllBeta."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.config.language.feature_gates import Gates, parse_gates
from kube_scheduler_operator.config.language.versions import Version

# In 1.34: alpha and off; beta and on; generally available and locked.
OFF, ON, LOCKED = "StorageCapacityScoring", "DRASchedulerFilterTimeout", "PodSchedulingReadiness"


@pytest.mark.parametrize(
    ("explicit", "gate", "expected"),
    [
        ({}, OFF, False),
        ({}, ON, True),
        ({}, "NoSuchGate", None),
        ({"AllAlpha": True}, OFF, True),
        ({"AllAlpha": True}, ON, True),
        ({"AllAlpha": True}, LOCKED, True),
        ({"AllAlpha": False}, OFF, False),
        ({"AllBeta": False}, ON, False),
        ({"AllBeta": False}, LOCKED, True),
        ({"AllBeta": True}, ON, True),
        ({"AllBeta": True, ON: False}, ON, False),
    ],
)
def test_all_alpha_and_all_beta_set_the_gates_of_their_stage(
    explicit: dict[str, bool], gate: str, expected: bool | None
) -> None:
    assert Gates(Version(1, 34), explicit).enabled(gate) is expected


def test_a_gate_may_be_of_the_component_kube() -> None:
    """kube-scheduler exits at another one: `component not registered: apiserver`."""
    for entry in ("A=true", "kube:A=true", " kube : A=true", ":A=true"):
        assert parse_gates([entry]) == {"A": True}
    with pytest.raises(ValueError, match='has no component "apiserver"; write A=true'):
        parse_gates(["B=true,apiserver:A=true"])
