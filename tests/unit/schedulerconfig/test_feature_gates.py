"""Whether a gate is on, where the flags say it of whole kinds of gates."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.schedulerconfig.feature_gates import Gates
from kube_scheduler_operator.schedulerconfig.versions import Version

# In 1.34: alpha and off; beta and on; generally available, so that nothing can turn it off.
OFF, ON, LOCKED = "StorageCapacityScoring", "DRASchedulerFilterTimeout", "PodSchedulingReadiness"


@pytest.mark.parametrize(
    ("explicit", "gate", "expected"),
    [
        ({}, OFF, False),
        ({}, ON, True),
        ({}, "NoSuchGate", None),
        ({"AllAlpha": True}, OFF, None),
        ({"AllAlpha": True}, ON, True),
        ({"AllAlpha": True}, LOCKED, True),
        ({"AllAlpha": False}, OFF, False),
        ({"AllBeta": False}, ON, None),
        ({"AllBeta": False}, LOCKED, True),
        ({"AllBeta": True}, ON, True),
        ({"AllBeta": True, ON: False}, ON, False),
    ],
)
def test_a_kind_of_gates_leaves_open_only_what_it_may_change(
    explicit: dict[str, bool], gate: str, expected: bool | None
) -> None:
    assert Gates(Version(1, 34), explicit).enabled(gate) is expected
