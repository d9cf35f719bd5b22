"""Pods without a node, by why they wait."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kube_scheduler_operator.operator.diagnostics.waiting_pods import (
    GATED,
    NOT_ATTEMPTED,
    UNKNOWN,
    UNSCHEDULABLE,
    Tally,
    cause,
)

CREATED = "2026-11-27T12:00:00Z"
FAILED = {"conditions": [{"type": "PodScheduled"}]}


def pod(created: str = CREATED, *, deleted: bool = False, **fields: Any) -> dict[str, Any]:
    metadata = {"creationTimestamp": created} | ({"deletionTimestamp": created} if deleted else {})
    return {"metadata": metadata, "spec": {}, "status": {}, **fields}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, NOT_ATTEMPTED),
        ({"status": {"conditions": [{"type": "DisruptionTarget"}]}}, NOT_ATTEMPTED),
        ({"status": FAILED}, UNSCHEDULABLE),
        # The API server writes the condition of a gated Pod, with the reason SchedulingGated.
        ({"spec": {"schedulingGates": [{"name": "a.b/c"}]}, "status": FAILED}, GATED),
        ({"spec": {"resourceClaims": True}}, UNKNOWN),
        ({"spec": {"workloadRef": True}}, UNKNOWN),
        ({"spec": {"schedulingGroup": True}}, UNKNOWN),
        ({"spec": {"schedulingGroup": True}, "status": FAILED}, UNSCHEDULABLE),
    ],
)
def test_the_cause_of_a_pod(fields: dict[str, Any], expected: str) -> None:
    assert cause(pod(**fields)) == expected


def test_a_tally_names_only_schedulers_that_are_known() -> None:
    tally = Tally({"default-scheduler", "packed"})
    later = "2026-11-27T13:00:00Z"
    for one in (
        pod(later),
        pod(),
        pod(spec={"schedulerName": "packed"}, status=FAILED),
        pod(spec={"schedulerName": "misspelt"}),
        pod(deleted=True),
    ):
        assert not tally(one), "no Pod is kept"
    counted = {key: number for key, number in tally.samples["waiting_pods"].items() if number}
    assert counted == {
        (NOT_ATTEMPTED, "default-scheduler"): 2,
        (UNSCHEDULABLE, "packed"): 1,
        (NOT_ATTEMPTED, ""): 1,
    }
    assert tally.oldest[NOT_ATTEMPTED, "default-scheduler"] == (
        datetime(2026, 11, 27, 12, tzinfo=UTC).timestamp()
    )
    assert tally.samples["waiting_pods"][GATED, "packed"] == 0, "a series without Pods"
